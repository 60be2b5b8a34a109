//! Tokens: one that is taken is one that we signed, letter by letter.

use std::sync::LazyLock;

use rowgate_core::derive::Root;
use rowgate_core::jwt::{Claims, Signers};

const NOW: i64 = 1_700_000_000;

fn signers() -> Signers {
    let root = Root::new([7; 32]);
    Signers::new(root.signing_key(2), vec![root.signing_key(1)])
}

/// The token that `seeds/token/ours` holds; a fuzzer needs one to find out what is near it.
#[must_use]
pub fn ours() -> String {
    let id = "01k9zv5n2m8q4r6t0w3y7b1d5f";
    let (key, secret) = (id.parse().expect("an id"), id.parse().expect("an id"));
    signers().sign(&Claims::new(key, secret, "shop".parse().expect("a slug"), NOW, 60))
}

/// `data` is what stands after `Bearer`.
///
/// # Panics
/// When one of these does not hold.
pub fn check(data: &[u8]) {
    static SIGNERS: LazyLock<Signers> = LazyLock::new(signers);
    let Ok(text) = std::str::from_utf8(data) else { return };
    for now in [NOW, NOW - 3600, NOW + 3600, i64::MIN, i64::MAX] {
        if let Ok(claims) = SIGNERS.verify(text, now) {
            assert_eq!(SIGNERS.sign(&claims), text);
            assert_eq!(now, NOW, "{claims:?}");
        }
    }
}
