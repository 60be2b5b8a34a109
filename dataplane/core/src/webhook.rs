//! Webhooks without IO: secrets and signatures, where a webhook may go, when it is tried again, and what becomes of a subscription.

pub mod destination;
pub mod retry;
pub mod secret;
pub mod signature;
pub mod step;
