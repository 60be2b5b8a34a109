//! Webhooks: subscriptions, from the request that makes them to what receivers get.

mod api;
mod crash;
mod for_json;
