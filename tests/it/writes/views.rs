//! Views: which of them take writes, and what a write does.

mod unwritable;
mod versions;
mod writable;
