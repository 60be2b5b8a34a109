//! Entity tags: the version of a protected row, and what else a copy of it hangs on.
//!
//! A tag reads `"<version>-<basis>"`. The basis tells two representations of one version apart, as RFC 9110 wants it of a
//! strong tag (section 8.8.3): other fields, another permission set, another encoding. Whoever changes a row asks for its
//! version alone: a tag got with `$select`, compressed, or by another key names the same state of the row, and the
//! change made to it is the same. So `If-Match` looks at the version, and a cache, with `If-None-Match`, at all of it.

use sha2::{Digest as _, Sha256};

/// `dl_expected_ts` of a row: microseconds since 2000-01-01 UTC, as PostgreSQL holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub i64);

/// What a representation hangs on besides the row's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis([u8; 32]);

/// A strong tag of ours, in its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag(String);

/// What `If-Match` and `If-None-Match` hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    /// `*`
    Any,
    /// Never empty.
    List(Vec<Tag>),
}

/// One tag of a list, anybody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    pub is_weak: bool,
    /// In its quotes.
    opaque: String,
}

/// The text is no list of entity tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write * or entity tags in double quotes, with commas between them")]
pub struct NoTags;

impl Version {
    /// A `timestamptz` in PostgreSQL's binary form.
    #[must_use]
    pub fn from_binary(value: &[u8]) -> Option<Version> {
        value.try_into().ok().map(|bytes| Version(i64::from_be_bytes(bytes)))
    }
}

impl Basis {
    /// Of these parts, in this order; where one ends and the next begins matters.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Basis {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Basis(hash.finalize().into())
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl EntityTag {
    /// Of a row in the content coding of that name; empty: in none.
    #[must_use]
    pub fn new(version: Version, basis: &Basis, encoding: &str) -> EntityTag {
        let Basis(hash) = Basis::new([&basis.0[..], encoding.as_bytes()]);
        let [a, b, c, d, e, f, g, h, ..] = hash;
        let short = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        EntityTag(format!("\"{:016x}-{short:016x}\"", version.0))
    }

    /// Of what is no row and has no version: all of it is in `basis`. It is no tag that a write names.
    #[must_use]
    pub fn of_contents(basis: &Basis, encoding: &str) -> EntityTag {
        let Basis(hash) = Basis::new([&basis.0[..], encoding.as_bytes()]);
        let digits: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        EntityTag(format!("\"{digits}\""))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Tags {
    /// Of the values of all header lines of one name.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Tags, NoTags> {
        let text: Vec<&[u8]> = lines.into_iter().collect();
        let text = text.join(&b","[..]);
        let mut rest = std::str::from_utf8(&text).map_err(|_| NoTags)?;
        if trimmed(rest) == "*" {
            return Ok(Tags::Any);
        }
        let mut tags = Vec::new();
        loop {
            // A list may have empty elements.
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                break;
            }
            let (is_weak, quoted) = match rest.strip_prefix("W/") {
                Some(quoted) => (true, quoted),
                None => (false, rest),
            };
            let inner = quoted.strip_prefix('"').ok_or(NoTags)?;
            let end = inner.find('"').ok_or(NoTags)?;
            if !inner[..end].chars().all(|c| c == '!' || ('#'..='~').contains(&c) || !c.is_ascii()) {
                return Err(NoTags);
            }
            tags.push(Tag { is_weak, opaque: quoted[..end + 2].to_owned() });
            rest = inner[end + 1..].trim_start_matches([' ', '\t']);
            if !rest.is_empty() && !rest.starts_with(',') {
                return Err(NoTags);
            }
        }
        if tags.is_empty() { Err(NoTags) } else { Ok(Tags::List(tags)) }
    }

    /// Whether a cache that has these has `tag`. The comparison is the weak one, as for every `If-None-Match`.
    #[must_use]
    pub fn hold(&self, tag: &EntityTag) -> bool {
        match self {
            Tags::Any => true,
            Tags::List(tags) => tags.iter().any(|it| it.opaque == tag.0),
        }
    }
}

impl Tag {
    /// The version that a strong tag of ours names; `None`: it is weak, or not ours.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        let inner = self.opaque.strip_prefix('"')?.strip_suffix('"')?;
        let (version, basis) = inner.split_once('-')?;
        let number = |text: &str| {
            let is_ours = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            is_ours.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        number(basis)?;
        let version = number(version)?;
        (!self.is_weak).then_some(Version(version.cast_signed()))
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', ','])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tags(text: &str) -> Result<Tags, NoTags> {
        Tags::parse([text.as_bytes()])
    }

    fn basis(text: &str) -> Basis {
        Basis::new([text.as_bytes()])
    }

    #[test]
    fn a_list_of_tags_is_read_as_the_standard_writes_it() {
        let count = |text: &str| match tags(text) {
            Ok(Tags::Any) => "any".to_owned(),
            Ok(Tags::List(list)) => {
                list.iter().map(|tag| if tag.is_weak { 'w' } else { 's' }).collect::<String>()
            }
            Err(NoTags) => "none".to_owned(),
        };
        for (text, expected) in [
            ("*", "any"),
            (" * ", "any"),
            ("\"a\"", "s"),
            ("W/\"a\"", "w"),
            ("\"a\", W/\"b\" ,\"\"", "sws"),
            (",\"a\",,\"b,c\",", "ss"),
            ("\"\u{e4}\"", "s"),
            ("", "none"),
            (",", "none"),
            ("a", "none"),
            ("\"a", "none"),
            ("\"a\" \"b\"", "none"),
            ("\"a b\"", "none"),
            ("w/\"a\"", "none"),
            ("*, \"a\"", "none"),
            ("\"a\", *", "none"),
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
        let lines = Tags::parse([&b"\"a\""[..], b"\"b\""]);
        assert!(matches!(lines, Ok(Tags::List(list)) if list.len() == 2));
        assert_eq!(Tags::parse([&b"\"\xff\""[..]]), Err(NoTags));
    }

    #[test]
    fn a_strong_tag_of_ours_names_its_version_and_no_other_does() {
        for version in [0, 1, -1, i64::MAX, i64::MIN, 812_345_678_901_234] {
            let tag = EntityTag::new(Version(version), &basis("x"), "");
            let read = |text: &str| match tags(text) {
                Ok(Tags::List(list)) => list[0].version(),
                _ => None,
            };
            assert_eq!(read(tag.as_str()), Some(Version(version)), "{tag:?}");
            assert_eq!(read(&format!("W/{}", tag.as_str())), None);
            assert_eq!(read(&tag.as_str().to_uppercase()).filter(|it| it.0 != version), None);
        }
        for foreign in ["\"a\"", "\"-\"", "\"+000000000000001-0000000000000000\"", "\"1-2\""] {
            assert!(
                matches!(tags(foreign), Ok(Tags::List(list)) if list[0].version().is_none()),
                "{foreign}"
            );
        }
    }

    #[test]
    fn another_version_basis_or_encoding_is_another_tag() {
        let all = [(1, "a", ""), (2, "a", ""), (1, "b", ""), (1, "a", "gzip"), (1, "a", "br")];
        let made =
            all.map(|(version, text, encoding)| EntityTag::new(Version(version), &basis(text), encoding));
        for (i, tag) in made.iter().enumerate() {
            for (j, other) in made.iter().enumerate() {
                assert_eq!(tags(tag.as_str()).expect("a tag").hold(other), i == j, "{tag:?} {other:?}");
            }
            assert!(
                tags(&format!("\"x\", W/{}", tag.as_str())).expect("tags").hold(tag) && Tags::Any.hold(tag)
            );
        }
        assert_ne!(Basis::new([&b"ab"[..], b"c"]), Basis::new([&b"a"[..], b"bc"]));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"["W/*,a-f0-9 \\é-]{0,40}"#) {
            if let Ok(Tags::List(list)) = tags(&text) {
                prop_assert!(list.iter().all(|tag| !tag.is_weak || tag.version().is_none()));
            }
        }
    }
}
