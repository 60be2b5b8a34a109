//! What cannot be done: it is reported with its remedy, and the rest goes on.

mod answering;
mod closing;
pub(crate) mod crash;
mod locks;
mod messages;
mod refused;
