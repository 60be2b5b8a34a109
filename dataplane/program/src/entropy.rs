//! The clock and randomness.

use rowgate_core::name::Ulid;

/// A new identifier, from the current time and random bytes.
#[must_use]
pub fn ulid() -> Ulid {
    let unix_ms = jiff::Timestamp::now().as_millisecond();
    Ulid::from_parts(u64::try_from(unix_ms).unwrap_or_default(), rand::random())
}

/// A number from 0 to 1, evenly distributed.
#[must_use]
pub fn fraction() -> f64 {
    rand::random()
}

/// Random bytes, for secrets and nonces.
#[must_use]
pub fn bytes<const N: usize>() -> [u8; N] {
    rand::random()
}
