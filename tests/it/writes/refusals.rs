//! Writes that are refused: each refusal says what to change, and nothing is stored.

mod details;
mod invalid_values;
mod policies;
mod required_fields;
mod rules;
