//! The hot path: one question of one API key to its tenant's database, in one batch, one write and one `Sync`.
//!
//! Read in this order: [`ask`] what goes in and comes out, [`lane`] the pool and the task of an exchange, [`key`] the
//! statement that checks the key and switches the role, `exchange` the batch and the reading of its answer.

pub mod ask;
pub mod failure;
pub mod lane;

pub use ask::{Ask, KeyRow, Page};
pub use failure::{Cause, Failure};
pub use lane::{Lane, Limits};
