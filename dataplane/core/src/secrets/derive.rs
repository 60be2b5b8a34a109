//! Two roots from which every password, the pepper and the cursor key are derived, each under its own label.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::export_link::LinkKey;
use crate::jwt::SigningKey;
use crate::webhook::secret::SealingKey;

/// A root secret of 32 bytes: the operator's (owner and keys logins) or the data plane's (everything else).
/// Where it is missing or short the process refuses to start.
#[derive(Clone)]
pub struct Root([u8; 32]);

/// A derived password of 256 bits. Only a connection and a SCRAM verifier read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a root is 64 hexadecimal digits (32 bytes)")]
pub struct BadRoot;

impl Root {
    /// From 32 random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Root {
        Root(bytes)
    }

    /// From 64 hexadecimal digits, white space around them ignored.
    pub fn from_hex(text: &str) -> Result<Root, BadRoot> {
        let text = text.trim();
        if text.len() != 64 || !text.is_ascii() {
            return Err(BadRoot);
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| BadRoot)?;
        }
        Ok(Root(bytes))
    }

    /// The text that [`Root::from_hex`] reads back, for the one file that holds it.
    #[must_use]
    pub fn reveal_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The password of `role` on the PostgreSQL cluster `system_identifier`; another `generation` gives another.
    #[must_use]
    pub fn password(&self, system_identifier: &str, role: &str, generation: u32) -> Password {
        let bytes = self.bytes(&format!("password/{system_identifier}/{role}/{generation}"));
        Password(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The salt of that password's SCRAM verifier, fixed so that the verifier is too.
    #[must_use]
    pub fn salt(&self, system_identifier: &str, role: &str, generation: u32) -> [u8; 16] {
        let bytes = self.bytes(&format!("salt/{system_identifier}/{role}/{generation}"));
        bytes[..16].try_into().expect("16 of 32 bytes")
    }

    /// The pepper of the key digests.
    #[must_use]
    pub fn pepper(&self) -> Pepper {
        Pepper(self.bytes("pepper/1"))
    }

    /// The key that authenticates `$after`.
    #[must_use]
    pub fn cursor_key(&self) -> CursorKey {
        CursorKey(self.bytes("cursor/1"))
    }

    /// The key that seals the secrets of webhook subscriptions.
    #[must_use]
    pub fn sealing_key(&self) -> SealingKey {
        SealingKey::new(self.bytes("sealing/1"))
    }

    /// The key that signs the links to files of exports.
    #[must_use]
    pub fn export_link_key(&self) -> LinkKey {
        LinkKey::new(self.bytes("export-link/1"))
    }

    /// The key that signs tokens; another `generation` gives another. Every replica derives the same.
    #[must_use]
    pub fn signing_key(&self, generation: u32) -> SigningKey {
        SigningKey::new(generation, &self.bytes(&format!("token/{generation}")))
    }

    /// Tells whether another process holds the same root, without revealing it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.bytes("fingerprint/1")[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes(&self, label: &str) -> [u8; 32] {
        let mut out = [0; 32];
        Hkdf::<Sha256>::new(Some(b"rowgate"), &self.0)
            .expand(label.as_bytes(), &mut out)
            .expect("32 bytes are within HKDF's reach");
        out
    }
}

impl Password {
    /// A password that somebody gave us: the login of an administrator.
    #[must_use]
    pub fn given(text: impl Into<String>) -> Password {
        Password(text.into())
    }

    /// The clear text, for the SCRAM exchange of a connection that is being opened.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Keys the digests of API key secrets.
#[derive(Clone)]
pub struct Pepper([u8; 32]);

/// Keys the authentication of page cursors.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl Pepper {
    /// HMAC-SHA-256 of `text`.
    #[must_use]
    pub fn digest(&self, text: &[u8]) -> [u8; 32] {
        mac(&self.0, text)
    }
}

impl CursorKey {
    /// HMAC-SHA-256 of `payload`.
    #[must_use]
    pub fn tag(&self, payload: &[u8]) -> [u8; 32] {
        mac(&self.0, payload)
    }
}

pub(crate) fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    mac_of_parts(key, &[text])
}

/// HMAC-SHA-256 of the parts behind each other.
pub(crate) fn mac_of_parts(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

macro_rules! hidden {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(hidden)"))
            }
        }
    )*};
}
hidden!(Root, Password, Pepper, CursorKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_gives_another_secret_and_none_is_printed() {
        let root = Root::new([7; 32]);
        let a = root.password("1", "t_owner", 1);
        assert_ne!(a, root.password("2", "t_owner", 1));
        assert_ne!(a, root.password("1", "t_auth", 1));
        assert_ne!(a, root.password("1", "t_owner", 2));
        assert_eq!(a.reveal().len(), 43);
        assert_eq!(format!("{a:?} {root:?}"), "Password(hidden) Root(hidden)");
    }

    #[test]
    fn a_root_survives_its_file_and_a_short_one_is_refused() {
        let root = Root::new([200; 32]);
        assert_eq!(Root::from_hex(&format!("{}\n", root.reveal_hex())).map(|r| r.0).ok(), Some([200; 32]));
        assert!(Root::from_hex("abcd").is_err());
        assert!(Root::from_hex(&"zz".repeat(32)).is_err());
    }
}
