//! Names, parsed once at the door: tenants, entities, fields, identifiers of keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is no name. The message says what a name may hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("is empty")]
    Empty,
    #[error("is longer than {0} characters")]
    TooLong(usize),
    #[error("starts or ends with a hyphen")]
    Hyphen,
    #[error("starts with two underscores, which GraphQL keeps for itself")]
    Reserved,
    #[error("holds {0:?}, which is not allowed there")]
    BadChar(char),
    #[error("is not a lower-case ULID of 26 characters")]
    NotUlid,
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

text_type! {
    /// A tenant's name in paths and keys: `^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`.
    TenantSlug
}
text_type! {
    /// The name of an exposed entity: `[_A-Za-z][_0-9A-Za-z]*`, not `__`, at most 63 characters.
    EntityName
}
text_type! {
    /// A lower-case ULID: 26 characters of Crockford's base 32. Keys, tenants, permission sets and replicas have one.
    Ulid
}

impl FromStr for TenantSlug {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if 40 < text.len() {
            return Err(NameError::TooLong(40));
        }
        if text.starts_with('-') || text.ends_with('-') {
            return Err(NameError::Hyphen);
        }
        match text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
            Some(c) => Err(NameError::BadChar(c)),
            None => Ok(TenantSlug(text.to_owned())),
        }
    }
}

impl FromStr for EntityName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let Some(first) = text.chars().next() else { return Err(NameError::Empty) };
        if 63 < text.len() {
            return Err(NameError::TooLong(63));
        }
        if text.starts_with("__") {
            return Err(NameError::Reserved);
        }
        if !matches!(first, '_' | 'A'..='Z' | 'a'..='z') {
            return Err(NameError::BadChar(first));
        }
        match text.chars().find(|c| !matches!(c, '_' | '0'..='9' | 'A'..='Z' | 'a'..='z')) {
            Some(c) => Err(NameError::BadChar(c)),
            None => Ok(EntityName(text.to_owned())),
        }
    }
}

impl EntityName {
    /// The name under which a plan knows a table that only links others. No manifest can give it: it holds a colon.
    #[must_use]
    pub fn of_link(schema: &str, object: &str) -> EntityName {
        EntityName(format!("through:{schema}.{object}"))
    }
}

impl FromStr for Ulid {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let alphabet = |c: char| ULID_ALPHABET.contains(&(c as u8)) && c.is_ascii();
        match text.len() == 26 && text.chars().all(alphabet) && text.as_bytes()[0] <= b'7' {
            true => Ok(Ulid(text.to_owned())),
            false => Err(NameError::NotUlid),
        }
    }
}

const ULID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl Ulid {
    /// A ULID from `unix_ms`, milliseconds since 1970, and ten random bytes.
    #[must_use]
    pub fn from_parts(unix_ms: u64, random: [u8; 10]) -> Ulid {
        let mut value = u128::from(unix_ms & 0xffff_ffff_ffff) << 80;
        for (i, byte) in random.iter().enumerate() {
            value |= u128::from(*byte) << (72 - 8 * i);
        }
        let text = (0..26).map(|i| ULID_ALPHABET[(value >> (125 - 5 * i)) as usize & 31] as char).collect();
        Ulid(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_follow_the_contract() {
        for good in ["a", "shop", "a-b", "0", &"x".repeat(40)] {
            assert!(good.parse::<TenantSlug>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "ä", "a/b", &"x".repeat(41)] {
            assert!(bad.parse::<TenantSlug>().is_err(), "{bad}");
        }
    }

    #[test]
    fn entity_names_are_names_that_graphql_can_spell() {
        for good in ["orders", "_x", "OrderLines2"] {
            assert!(good.parse::<EntityName>().is_ok(), "{good}");
        }
        for bad in ["", "__x", "2x", "a-b", "a b", "é"] {
            assert!(bad.parse::<EntityName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ulids_sort_by_time_and_parse_back() {
        let early = Ulid::from_parts(1, [255; 10]);
        let late = Ulid::from_parts(2, [0; 10]);
        assert!(early < late);
        assert_eq!(early.as_str().parse::<Ulid>(), Ok(early.clone()));
        assert_eq!(Ulid::from_parts(0, [0; 10]).as_str(), "0".repeat(26));
        assert_eq!(Ulid::from_parts(u64::MAX, [255; 10]).as_str(), format!("7{}", "z".repeat(25)));
    }
}
