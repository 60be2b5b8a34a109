//! Who asks: credentials, the keys that they name, and how often a key may ask.

pub mod credential;
pub(crate) mod key_cache;
pub mod key_context;
pub(crate) mod key_query;
pub(crate) mod last_used;
pub(crate) mod lookup;
pub(crate) mod lookup_limiter;
pub(crate) mod rate_limit;
pub mod token_keys;
