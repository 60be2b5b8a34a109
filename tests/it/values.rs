//! Values of every type of PostgreSQL, written by SQL and read through HTTP.

mod fixed;
mod fixture;
mod random;
