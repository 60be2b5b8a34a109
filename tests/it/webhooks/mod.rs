//! Webhooks end to end.

mod for_json;
