//! Webhooks: subscriptions, from the request that makes them to what receivers get.

mod api;
mod for_json;
