//! Randomness and the wall clock. Nothing else in this crate and in the operator reads them, and `tests/tidy/entropy.rs` keeps it so.
//! Monotonic instants only measure pauses; they are read where they are needed.

use jiff::Timestamp;
use rowgate_core::name::Ulid;

/// `N` bytes of a cryptographic generator that the operating system seeds.
#[must_use]
pub fn bytes<const N: usize>() -> [u8; N] {
    rand::random()
}

/// A number from `low` to `high`, evenly distributed.
#[must_use]
pub fn between(low: f64, high: f64) -> f64 {
    rand::random_range(low..high)
}

/// The time of this machine.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A new identifier, now.
#[must_use]
pub fn ulid() -> Ulid {
    Ulid::from_parts(u64::try_from(now().as_millisecond()).unwrap_or(0), bytes())
}

/// A random UUID, version 4.
pub(crate) fn uuid() -> String {
    let random = u128::from_ne_bytes(bytes());
    let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
