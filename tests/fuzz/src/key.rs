//! Key strings and names: what is taken has one spelling.

use rowgate_core::name::{EntityName, TenantSlug, Ulid};
use rowgate_core::secret::PresentedKey;

/// `data` is what a header or a part of a path holds.
///
/// # Panics
/// When one of these does not hold.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(key) = PresentedKey::parse(text) {
        assert_eq!(key.secret.reveal(&key.tenant), text);
        assert_eq!(key.secret.finder().len(), 12);
    }
    if let Ok(slug) = text.parse::<TenantSlug>() {
        assert_eq!(slug.as_str(), text);
    }
    if let Ok(name) = text.parse::<EntityName>() {
        assert_eq!(name.as_str(), text);
    }
    if let Ok(id) = text.parse::<Ulid>() {
        assert_eq!(id.as_str(), text);
    }
}
