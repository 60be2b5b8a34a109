//! Randomness and the clock, the two inputs that nothing else in this crate reads.

use rowgate_core::name::Ulid;

/// `N` bytes of a cryptographic generator that the operating system seeds.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    rand::random()
}

/// A new identifier, now.
pub(crate) fn ulid() -> Ulid {
    let now = jiff::Timestamp::now().as_millisecond();
    Ulid::from_parts(u64::try_from(now).unwrap_or(0), bytes())
}
