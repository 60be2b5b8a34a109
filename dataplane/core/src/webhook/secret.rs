//! The secret of a subscription: shown once, stored sealed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

/// What stands before the random part.
const PREFIX: &str = "whsec_";
/// Bytes of a secret that we make.
pub const SECRET_LEN: usize = 32;
/// Bytes of a nonce, random for each sealing.
pub const NONCE_LEN: usize = 24;

/// `whsec_` and base64, as the libraries of receivers take it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// From random bytes.
    #[must_use]
    pub fn generate(entropy: &[u8; SECRET_LEN]) -> WebhookSecret {
        WebhookSecret(format!("{PREFIX}{}", STANDARD.encode(entropy)))
    }

    /// Reads a secret of 16 to 64 bytes in the form that [`WebhookSecret::reveal`] gives.
    #[must_use]
    pub fn parse(text: &str) -> Option<WebhookSecret> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (16..=64).contains(&bytes.len()).then(|| WebhookSecret(text.to_owned()))
    }

    /// The clear text, for the one answer or Secret that shows it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the base64 stands for: the key of Standard Webhooks signatures.
    pub(super) fn decoded(&self) -> Vec<u8> {
        STANDARD.decode(&self.0[PREFIX.len()..]).expect("it was encoded, or decoded once")
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(hidden)")
    }
}

/// Seals the secrets of subscriptions; from [`crate::derive::Root::sealing_key`].
#[derive(Clone)]
pub struct SealingKey([u8; 32]);

impl SealingKey {
    pub(crate) fn new(bytes: [u8; 32]) -> SealingKey {
        SealingKey(bytes)
    }

    /// The secret, readable only with this key and as that of the same subscription: the nonce, then XChaCha20-Poly1305.
    #[must_use]
    pub fn seal(&self, subscription: &str, secret: &WebhookSecret, nonce: &[u8; NONCE_LEN]) -> Vec<u8> {
        let payload = Payload { msg: secret.0.as_bytes(), aad: subscription.as_bytes() };
        let sealed = self.cipher().encrypt(&XNonce::from(*nonce), payload).expect("a secret is short");
        [&nonce[..], &sealed].concat()
    }

    /// What [`SealingKey::seal`] sealed for that subscription.
    #[must_use]
    pub fn open(&self, subscription: &str, sealed: &[u8]) -> Option<WebhookSecret> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let payload = Payload { msg: sealed, aad: subscription.as_bytes() };
        let text = self.cipher().decrypt(&XNonce::from(*nonce), payload).ok()?;
        WebhookSecret::parse(std::str::from_utf8(&text).ok()?)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.0))
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

    #[test]
    fn a_sealed_secret_opens_with_its_key_and_for_its_subscription() {
        let secret = WebhookSecret::generate(&[7; SECRET_LEN]);
        let (key, other) = (SealingKey([1; 32]), SealingKey([2; 32]));
        let sealed = key.seal("one", &secret, &[3; NONCE_LEN]);
        assert_eq!(key.open("one", &sealed), Some(secret.clone()));
        assert_eq!(key.open("two", &sealed), None);
        assert_eq!(other.open("one", &sealed), None);
        for n in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[n] ^= 1;
            assert_eq!(key.open("one", &changed), None, "byte {n}");
            assert_eq!(key.open("one", &sealed[..n]), None, "{n} bytes");
        }
        assert!(!sealed.windows(8).any(|part| secret.0.as_bytes().windows(8).any(|it| it == part)));
    }

    #[test]
    fn a_secret_is_read_as_it_was_shown_and_printed_nowhere() {
        let secret = WebhookSecret::generate(&[7; SECRET_LEN]);
        assert_eq!(WebhookSecret::parse(secret.reveal()), Some(secret.clone()));
        for text in ["", "whsec_", "whsec_!!", "abc", "whsec_c2hvcnQ="] {
            assert_eq!(WebhookSecret::parse(text), None, "{text}");
        }
        assert_eq!(format!("{secret:?} {:?}", SealingKey([1; 32])), "WebhookSecret(hidden) SealingKey(hidden)");
    }
}
