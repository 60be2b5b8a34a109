//! The proof in the URL of an export's file: whoever shows it may read that file until it expires, without a key.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use crate::derive::mac_of_parts;
use crate::name::Ulid;

const ID_LEN: usize = 26;
const PAYLOAD_LEN: usize = 2 * ID_LEN + 4 + 8;
const TAG_LEN: usize = 32;
const TOKEN_LEN: usize = (PAYLOAD_LEN + TAG_LEN) / 3 * 4;

/// The key that signs links. Every replica derives the same.
#[derive(Clone)]
pub struct LinkKey([u8; 32]);

/// What a link is for. The export's id stands in the path, beside the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportLink {
    pub tenant: Ulid,
    /// The key that the export belongs to.
    pub key: Ulid,
    pub export: Ulid,
    /// Which attempt wrote the file.
    pub fence: u32,
    /// Seconds since 1970.
    pub expires: i64,
}

impl LinkKey {
    pub(crate) fn new(bytes: [u8; 32]) -> LinkKey {
        LinkKey(bytes)
    }

    /// The token for `link`: URL-safe base 64 of tenant, key, fence, expiry and an HMAC-SHA-256 over these and the export.
    #[must_use]
    pub fn sign(&self, link: &ExportLink) -> String {
        let mut token = Vec::with_capacity(PAYLOAD_LEN + TAG_LEN);
        token.extend_from_slice(link.tenant.as_str().as_bytes());
        token.extend_from_slice(link.key.as_str().as_bytes());
        token.extend_from_slice(&link.fence.to_be_bytes());
        token.extend_from_slice(&link.expires.to_be_bytes());
        let tag = self.tag(&link.export, &token);
        token.extend_from_slice(&tag);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The link that `token` is for `export`, if it was made with the same key and has not expired at `now`, in seconds since 1970.
    #[must_use]
    pub fn verify(&self, export: &str, token: &str, now: i64) -> Option<ExportLink> {
        let export: Ulid = export.parse().ok()?;
        // a text of another length is none, and is not decoded
        if token.len() != TOKEN_LEN {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (payload, given) = bytes.split_at_checked(PAYLOAD_LEN)?;
        if !bool::from(self.tag(&export, payload)[..].ct_eq(given)) {
            return None;
        }
        let (tenant, rest) = payload.split_at_checked(ID_LEN)?;
        let (key, rest) = rest.split_at_checked(ID_LEN)?;
        let (fence, expires) = rest.split_first_chunk::<4>()?;
        let id = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse().ok();
        let expires = i64::from_be_bytes(expires.try_into().ok()?);
        let link = ExportLink {
            tenant: id(tenant)?,
            key: id(key)?,
            export,
            fence: u32::from_be_bytes(*fence),
            expires,
        };
        (now < expires).then_some(link)
    }

    fn tag(&self, export: &Ulid, payload: &[u8]) -> [u8; TAG_LEN] {
        mac_of_parts(&self.0, &[export.as_str().as_bytes(), payload])
    }
}

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Root;

    fn ulid(number: u64) -> Ulid {
        Ulid::from_parts(number, [3; 10])
    }

    #[test]
    fn a_link_is_good_for_one_file_until_it_expires() {
        let key = Root::new([5; 32]).export_link_key();
        let link = ExportLink { tenant: ulid(1), key: ulid(2), export: ulid(3), fence: 4, expires: 1000 };
        let token = key.sign(&link);
        let verify = |export: &Ulid, token: &str, now| key.verify(export.as_str(), token, now);
        assert_eq!(verify(&link.export, &token, 999), Some(link.clone()));
        assert_eq!(verify(&link.export, &token, 1000), None, "it has expired");
        assert_eq!(verify(&ulid(9), &token, 0), None, "another export");
        assert_eq!(key.verify("x", &token, 0), None);
        let another = Root::new([6; 32]).export_link_key();
        assert_eq!(another.verify(link.export.as_str(), &token, 0), None, "another root");
        assert_eq!(format!("{key:?}"), "LinkKey(hidden)");
    }

    #[test]
    fn no_character_of_a_token_can_be_changed_left_out_or_added() {
        let key = Root::new([5; 32]).export_link_key();
        let link = ExportLink { tenant: ulid(1), key: ulid(2), export: ulid(3), fence: 4, expires: 1000 };
        let token = key.sign(&link);
        for at in 0..token.len() {
            let other = if token.as_bytes()[at] == b'A' { 'B' } else { 'A' };
            let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
            assert_eq!(key.verify(link.export.as_str(), &changed, 0), None, "{at}");
            assert_eq!(key.verify(link.export.as_str(), &token[..at], 0), None, "{at}");
        }
        assert_eq!(key.verify(link.export.as_str(), &format!("{token}A"), 0), None);
    }
}
