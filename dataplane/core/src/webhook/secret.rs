//! Secrets that sign webhooks, and how they are sealed at rest: bound to their subscription, under a key of the data plane's root.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use subtle::ConstantTimeEq as _;

const PREFIX: &str = "whsec_";
/// How many random bytes [`WebhookSecret::generate`] takes.
pub const SECRET_LEN: usize = 32;
/// How many random bytes [`SealingKey::seal`] takes: enough that chance never repeats them.
pub const NONCE_LEN: usize = 24;
/// What Standard Webhooks allows for a secret that was made elsewhere, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that signs deliveries. It has no `Display` and no `Serialize`; `Debug` prints a marker.
#[derive(Clone)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// A new secret from random bytes.
    #[must_use]
    pub fn generate(entropy: &[u8; SECRET_LEN]) -> WebhookSecret {
        WebhookSecret(entropy.to_vec())
    }

    /// Reads `whsec_<base64>`, standard alphabet and padded, of 24 to 64 bytes.
    #[must_use]
    pub fn parse(text: &str) -> Option<WebhookSecret> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        LENGTHS.contains(&bytes.len()).then_some(WebhookSecret(bytes))
    }

    /// The whole text: for the one answer that shows it, the Secret that is being written, and the signature keyed by it.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// What the text encodes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for WebhookSecret {
    fn eq(&self, other: &WebhookSecret) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for WebhookSecret {}

/// Seals secrets for the tenant's database; from [`crate::derive::Root::sealing_key`].
#[derive(Clone)]
pub struct SealingKey([u8; 32]);

impl SealingKey {
    pub(crate) fn new(bytes: [u8; 32]) -> SealingKey {
        SealingKey(bytes)
    }

    /// The nonce, and behind it the secret, encrypted and bound to the id of its `subscription` (XChaCha20-Poly1305).
    #[must_use]
    pub fn seal(&self, subscription: &str, secret: &WebhookSecret, nonce: &[u8; NONCE_LEN]) -> Vec<u8> {
        let payload = Payload { msg: secret.bytes(), aad: subscription.as_bytes() };
        let encrypted = self.cipher().encrypt(&XNonce::from(*nonce), payload);
        let encrypted = encrypted.expect("a secret is far below the cipher's bound");
        [&nonce[..], &encrypted].concat()
    }

    /// None if it was sealed under another root, for another subscription, or changed since.
    #[must_use]
    pub fn open(&self, subscription: &str, sealed: &[u8]) -> Option<WebhookSecret> {
        let (nonce, encrypted) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let payload = Payload { msg: encrypted, aad: subscription.as_bytes() };
        let bytes = self.cipher().decrypt(&XNonce::from(*nonce), payload).ok()?;
        LENGTHS.contains(&bytes.len()).then_some(WebhookSecret(bytes))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.0.into())
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(hidden)")
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Root;

    #[test]
    fn a_secret_reads_back_and_what_is_none_does_not() {
        let secret = WebhookSecret::generate(&[7; SECRET_LEN]);
        let text = secret.reveal();
        assert_eq!(text, format!("whsec_{}Bwc=", "BwcH".repeat(10)));
        assert_eq!(WebhookSecret::parse(&text), Some(secret));
        for wrong in [
            "",
            "whsec_",
            &text[6..],
            &text[..text.len() - 1],
            &format!("{text} "),
            &text.replace("whsec_", "WHSEC_"),
            &text.replace("Bwc=", "Bwd="),
            "whsec_c2hvcnQ=",
            &format!("whsec_{}", "AAAA".repeat(22)),
        ] {
            assert_eq!(WebhookSecret::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_sealed_secret_opens_for_its_subscription_under_its_root_only() {
        let (secret, nonce) = (WebhookSecret::generate(&[1; SECRET_LEN]), [2; NONCE_LEN]);
        let key = Root::new([3; 32]).sealing_key();
        let sealed = key.seal("a", &secret, &nonce);
        assert_eq!(sealed.len(), NONCE_LEN + SECRET_LEN + 16);
        assert!(!sealed.windows(8).any(|part| part == [1; 8]), "the secret stands in the clear");
        assert_eq!(key.open("a", &sealed), Some(secret));
        assert_eq!(key.open("b", &sealed), None);
        assert_eq!(Root::new([4; 32]).sealing_key().open("a", &sealed), None);
        for i in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[i] ^= 1;
            assert_eq!(key.open("a", &changed), None, "byte {i}");
            assert_eq!(key.open("a", &sealed[..i]), None, "{i} bytes");
        }
    }

    #[test]
    fn nothing_is_printed() {
        let secret = WebhookSecret::generate(&[1; SECRET_LEN]);
        let printed = format!("{secret:?} {:?}", Root::new([3; 32]).sealing_key());
        assert_eq!(printed, "WebhookSecret(hidden) SealingKey(hidden)");
    }
}
