//! Webhooks: subscriptions, from the request that makes them to what receivers get.

mod api;
mod crash;
mod delivery;
mod fixture;
mod for_json;
