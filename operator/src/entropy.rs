//! Randomness and the wall clock. Nothing else in the operator reads them, and `tests/it/tidy/entropy.rs` keeps it so.
//! Monotonic instants only measure pauses; they are read where they are needed.

use jiff::Timestamp;
use rowgate_core::name::Ulid;

/// `N` bytes of a cryptographic generator that the operating system seeds.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    rand::random()
}

/// A number from `low` to `high`, evenly distributed.
pub(crate) fn between(low: f64, high: f64) -> f64 {
    rand::random_range(low..high)
}

/// The time of this machine.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// A new identifier, now.
pub(crate) fn ulid() -> Ulid {
    Ulid::from_parts(u64::try_from(now().as_millisecond()).unwrap_or(0), bytes())
}
