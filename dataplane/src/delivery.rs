//! Webhooks: what is captured is sent to receivers, in the name of the keys that own the subscriptions.

pub mod payload;
