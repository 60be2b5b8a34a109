//! Keys: their life, their rotation, their Secrets and their last use.

mod last_used;
mod life;
pub(crate) mod rotation;
mod secrets;
