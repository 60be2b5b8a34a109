//! Values of every type of PostgreSQL, written by SQL and read through HTTP, and written through HTTP again.

mod aggregates;
mod extremes;
mod fixed;
mod fixture;
mod random;
mod returned;
