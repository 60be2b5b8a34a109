//! SCRAM-SHA-256 verifiers computed by us, so that no password ever stands in a statement or a server log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::derive::{Password, mac};

/// One iteration: the passwords carry 256 bits, so stretching them would only slow every connection down
/// (5.5 to 3.0 ms measured).
const ITERATIONS: u32 = 1;

/// What `ALTER ROLE ... PASSWORD` takes: `SCRAM-SHA-256$1:<salt>$<StoredKey>:<ServerKey>` (RFC 5802, RFC 7677).
#[must_use]
pub fn verifier(password: &Password, salt: &[u8; 16]) -> String {
    let salted = salted_password(password.reveal().as_bytes(), salt);
    let stored_key = Sha256::digest(mac(&salted, b"Client Key"));
    let server_key = mac(&salted, b"Server Key");
    format!(
        "SCRAM-SHA-256${ITERATIONS}:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored_key),
        STANDARD.encode(server_key)
    )
}

/// More than this is made for no login: every role may set a password of its own, and say in its verifier how long the one who logs in
/// has to compute. PostgreSQL's own passwords take as much.
pub const MAX_ROUNDS: u32 = 4096;

/// How many rounds the server's first message (RFC 5802) asks for, if that is more than [`MAX_ROUNDS`].
#[must_use]
pub fn beyond_rounds(message: &[u8]) -> Option<u64> {
    let rounds = message.split(|byte| *byte == b',').find_map(|part| part.strip_prefix(b"i="))?;
    let rounds: u64 = std::str::from_utf8(rounds).ok()?.parse().ok()?;
    (u64::from(MAX_ROUNDS) < rounds).then_some(rounds)
}

fn salted_password(password: &[u8], salt: &[u8]) -> [u8; 32] {
    let mut first = Hmac::<Sha256>::new_from_slice(password).expect("HMAC takes keys of any length");
    first.update(salt);
    first.update(&1u32.to_be_bytes());
    let mut last: [u8; 32] = first.finalize().into_bytes().into();
    let mut sum = last;
    #[expect(clippy::reversed_empty_ranges, reason = "empty as long as one iteration is enough")]
    for _ in 1..ITERATIONS {
        last = mac(password, &last);
        sum.iter_mut().zip(last).for_each(|(s, l)| *s ^= l);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Root;

    #[test]
    fn a_password_that_takes_long_to_prove_is_seen_before_it_is_proved() {
        let first = |rounds: &str| format!("r=nonce,s=c2FsdA==,i={rounds}").into_bytes();
        for (rounds, beyond) in [
            ("1", None),
            ("4096", None),
            ("4097", Some(4097)),
            ("99999999999", Some(99_999_999_999)),
            ("x", None),
        ] {
            assert_eq!(beyond_rounds(&first(rounds)), beyond, "{rounds}");
        }
        assert_eq!(beyond_rounds(b"e=other-error"), None);
    }

    #[test]
    fn a_verifier_has_the_form_that_postgresql_stores() {
        let root = Root::new([1; 32]);
        let text = verifier(&root.password("1", "r", 1), &root.salt("1", "r", 1));
        assert!(text.starts_with("SCRAM-SHA-256$1:"), "{text}");
        assert_eq!(text.len(), "SCRAM-SHA-256$1:".len() + 24 + 1 + 44 + 1 + 44);
    }
}
