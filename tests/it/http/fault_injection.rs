//! The hot path while clients go away, PostgreSQL dies, and a neighbor's requests pile up.

mod aborts;
mod crashes;
mod fixture;
mod neighbors;
mod raw;
