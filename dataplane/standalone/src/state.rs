//! The state folder: what standalone keeps from one start to the next, and what other commands read of it.

pub(crate) mod database;
pub(crate) mod folder;
pub mod found;
pub mod lock;
pub mod roots;
