//! The tables of schema `dl` in the database of a tenant, and the sessions that stand there.

pub mod backends;
pub mod declared;
pub mod delivery;
pub mod events;
pub mod keys;
pub mod locks;
pub mod lookups;
pub mod read_limits;
pub mod replay;
pub mod scripts;
pub mod staging;
pub mod subscriptions;
