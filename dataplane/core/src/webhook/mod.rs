//! Webhooks as values: secrets, signatures, where they may be sent, and what becomes of a subscription. Nothing here sends.

pub mod destination;
pub mod retry;
pub mod secret;
pub mod signature;
pub mod step;
