//! The programs as a person starts them: their output, their exit codes, and the example shop.

mod psql;
mod serve;
mod set_relationship;
mod setup;
mod shop;
mod standalone;
