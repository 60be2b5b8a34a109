//! Webhooks: what is captured is sent to receivers, in the name of the keys that own the subscriptions.
//!
//! `follow` keeps a `runner` for each tenant that has subscriptions; it claims those for which something is there, and each is
//! delivered by a `worker`, batch by batch. `batch` is what goes at once of what the owner key is given next, `message` is what is sent, and
//! `rowgate_core::webhook::step` decides what becomes of the subscription. `sweep` looks after what no delivery does.

mod batch;
mod claimed;
pub(crate) mod facts;
pub(crate) mod follow;
pub(crate) mod message;
pub(crate) mod payload;
mod redrive;
mod runner;
pub mod sender;
mod sweep;
pub(crate) mod tenant;
mod worker;
