//! API key strings: `<tenant>:dlk_<12 that find the key><43 random><6 of CRC-32>`, all base 62.

use std::fmt;

use crate::derive::Pepper;
use crate::name::{TenantSlug, Ulid};

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX: &str = "dlk_";
/// How many characters find the key without being secret.
pub const FINDER_LEN: usize = 12;
const RANDOM_LEN: usize = 43;
const CHECK_LEN: usize = 6;
/// How many random bytes [`ApiKeySecret::generate`] takes.
pub const ENTROPY_LEN: usize = 2 * (FINDER_LEN + RANDOM_LEN);

/// The secret part of an API key, `dlk_...`. It has no `Display` and no `Serialize`; `Debug` prints a marker.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeySecret(String);

/// HMAC-SHA-256 of a secret under the pepper: all that the database knows of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

/// By what the database finds a caller's key: both name one secret of one key, which must live.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// Of a key string.
    Secret(KeyDigest),
    /// Of a token whose signature was checked.
    Token { key: Ulid, secret: Ulid },
    /// Of a key in whose name the data plane itself delivers, which shows no secret. No request makes one.
    Owner(Ulid),
}

impl Credential {
    /// Whether it shows no secret, so that any of the key's will do.
    #[must_use]
    pub fn is_of_owner(&self) -> bool {
        matches!(self, Credential::Owner(_))
    }

    /// One of the same kind that no key has, as far as anybody can make one: for what is to be looked for in vain.
    #[must_use]
    pub fn of_nobody(self) -> Credential {
        match self {
            Credential::Secret(KeyDigest(digest)) => Credential::Secret(KeyDigest(digest.map(|byte| !byte))),
            Credential::Token { key, secret: _ } => {
                // the time in it is none at which a secret was made
                Credential::Token { key, secret: Ulid::from_parts(0, [0; 10]) }
            }
            Credential::Owner(_) => Credential::Owner(Ulid::from_parts(0, [0; 10])),
        }
    }
}

/// A key string as a caller sent it: well-formed, not yet known to be anybody's.
#[derive(Clone)]
pub struct PresentedKey {
    pub tenant: TenantSlug,
    pub secret: ApiKeySecret,
}

/// Not a key string. There is one answer to every reason, so there is one error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an API key has the form <tenant>:dlk_<61 letters and digits>")]
pub struct NotAKey;

impl ApiKeySecret {
    /// A new secret from random bytes.
    #[must_use]
    pub fn generate(entropy: &[u8; ENTROPY_LEN]) -> ApiKeySecret {
        // Two random bytes a character: the bias against an even choice is below one in a thousand.
        let mut body: String = entropy
            .chunks_exact(2)
            .map(|pair| BASE62[((usize::from(pair[0]) << 8 | usize::from(pair[1])) * 62) >> 16] as char)
            .collect();
        body.push_str(&check(&body));
        ApiKeySecret(format!("{PREFIX}{body}"))
    }

    /// The digest that the database stores.
    #[must_use]
    pub fn digest(&self, pepper: &Pepper) -> KeyDigest {
        KeyDigest(pepper.digest(self.0.as_bytes()))
    }

    /// The 12 characters that may be shown to tell one key from another.
    #[must_use]
    pub fn finder(&self) -> &str {
        &self.0[PREFIX.len()..PREFIX.len() + FINDER_LEN]
    }

    /// The whole key string, for the Secret that is being written.
    #[must_use]
    pub fn reveal(&self, tenant: &TenantSlug) -> String {
        format!("{tenant}:{}", self.0)
    }
}

impl PresentedKey {
    /// Reads `<tenant>:dlk_...`; a wrong checksum is settled here, without the database.
    pub fn parse(text: &str) -> Result<PresentedKey, NotAKey> {
        let (tenant, secret) = text.split_once(':').ok_or(NotAKey)?;
        let tenant = tenant.parse().map_err(|_| NotAKey)?;
        let body = secret.strip_prefix(PREFIX).ok_or(NotAKey)?;
        let well_formed = body.len() == FINDER_LEN + RANDOM_LEN + CHECK_LEN
            && body.bytes().all(|c| c.is_ascii_alphanumeric())
            && check(&body[..FINDER_LEN + RANDOM_LEN]) == body[FINDER_LEN + RANDOM_LEN..];
        match well_formed {
            true => Ok(PresentedKey { tenant, secret: ApiKeySecret(secret.to_owned()) }),
            false => Err(NotAKey),
        }
    }
}

fn check(body: &str) -> String {
    let mut rest = u64::from(crc32fast::hash(body.as_bytes()));
    let mut out = [b'0'; CHECK_LEN];
    for slot in out.iter_mut().rev() {
        *slot = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    out.iter().map(|&c| c as char).collect()
}

impl fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeySecret(hidden)")
    }
}

impl fmt::Debug for PresentedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PresentedKey({}, hidden)", self.tenant)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Root;

    fn entropy(seed: u8) -> [u8; ENTROPY_LEN] {
        std::array::from_fn(|i| (i as u8).wrapping_mul(167).wrapping_add(seed))
    }

    #[test]
    fn a_key_reads_back_and_a_typing_error_does_not() {
        let shop: TenantSlug = "shop".parse().expect("a slug");
        let text = ApiKeySecret::generate(&entropy(3)).reveal(&shop);
        assert_eq!(text.len(), "shop:dlk_".len() + 61);
        assert_eq!(PresentedKey::parse(&text).expect("its own output").secret.reveal(&shop), text);
        for i in "shop:dlk_".len()..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[i] = if wrong[i] == b'a' { b'b' } else { b'a' };
            let wrong = String::from_utf8(wrong).expect("ASCII");
            assert!(PresentedKey::parse(&wrong).is_err(), "{wrong}");
        }
        for wrong in
            ["", ":", "shop", "Shop:dlk_x", "shop:dlk_", &text[..text.len() - 1], &format!("{text}0")]
        {
            assert!(PresentedKey::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_digest_depends_on_pepper_and_secret_and_nothing_is_printed() {
        let (a, b) = (ApiKeySecret::generate(&entropy(1)), ApiKeySecret::generate(&entropy(2)));
        let pepper = Root::new([1; 32]).pepper();
        assert_ne!(a.digest(&pepper), b.digest(&pepper));
        assert_ne!(a.digest(&pepper), a.digest(&Root::new([2; 32]).pepper()));
        assert_eq!(format!("{a:?} {:?}", a.digest(&pepper)), "ApiKeySecret(hidden) KeyDigest(hidden)");
    }

    #[test]
    fn the_credential_of_nobody_is_another_of_the_same_kind() {
        let digest =
            Credential::Secret(ApiKeySecret::generate(&entropy(1)).digest(&Root::new([1; 32]).pepper()));
        let id = |n| Ulid::from_parts(n, [7; 10]);
        let token = Credential::Token { key: id(1), secret: id(2) };
        for credential in [digest, token] {
            let nobody = credential.clone().of_nobody();
            assert_ne!(nobody, credential);
            assert_eq!(std::mem::discriminant(&nobody), std::mem::discriminant(&credential));
        }
    }
}
