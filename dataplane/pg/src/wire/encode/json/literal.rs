//! Arrays and composites in PostgreSQL's text form, for those with a part that is only to be had as text.

use std::borrow::Cow;

use rowgate_sql::shape::{Attribute, Body, Encoding, Nested, Part};

use super::printed;
use crate::wire::failure::{Malformed, Unwritten};

/// PostgreSQL knows no more dimensions.
const MAX_DIMENSIONS: usize = 6;
const BROKEN_ARRAY: Malformed = Malformed("an array in an invalid text format");
const BROKEN_COMPOSITE: Malformed = Malformed("a composite in an invalid text format");
/// `int2vector` and `oidvector`, which print their elements with blanks between.
const VECTORS: [u32; 2] = [22, 30];

/// Recurses along the type, whose depth is bounded, and over an array's dimensions.
pub(super) fn nested(nested: &Nested, text: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    match &nested.body {
        Body::Array { element, .. } if VECTORS.contains(&nested.oid) => vector(element, text, out),
        Body::Array { element, delimiter } => {
            let mut rest = after_bounds(text)?;
            if rest == b"{}" {
                out.extend_from_slice(b"[]");
                return Ok(());
            }
            array(element, *delimiter, MAX_DIMENSIONS, &mut rest, out)?;
            if rest.is_empty() { Ok(()) } else { Err(BROKEN_ARRAY.into()) }
        }
        Body::Composite(attributes) => composite(attributes, text, out),
    }
}

/// What follows bounds such as `[0:1][-1:3]=`, which stand before arrays whose lower bounds are not all 1.
fn after_bounds(text: &[u8]) -> Result<&[u8], Malformed> {
    if text.first() != Some(&b'[') {
        return Ok(text);
    }
    let end = text.iter().position(|&byte| byte == b'=').ok_or(BROKEN_ARRAY)?;
    Ok(&text[end + 1..])
}

/// `{...}`, of at most so many dimensions.
fn array(
    element: &Part,
    delimiter: u8,
    dimensions: usize,
    rest: &mut &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unwritten> {
    if dimensions == 0 {
        return Err(BROKEN_ARRAY.into());
    }
    eat(b'{', rest).ok_or(BROKEN_ARRAY)?;
    out.push(b'[');
    loop {
        match rest.first() {
            Some(b'{') => array(element, delimiter, dimensions - 1, rest, out)?,
            Some(b'"') => {
                let text = quoted(rest, false).ok_or(BROKEN_ARRAY)?;
                part(element, &text, out)?;
            }
            _ => {
                let end = |byte: &u8| *byte == delimiter || *byte == b'}';
                let end = rest.iter().position(end).ok_or(BROKEN_ARRAY)?;
                match rest.split_at(end).0 {
                    b"" => return Err(BROKEN_ARRAY.into()),
                    b"NULL" => out.extend_from_slice(b"null"),
                    text => part(element, text, out)?,
                }
                *rest = &rest[end..];
            }
        }
        if eat(delimiter, rest).is_none() {
            break;
        }
        out.push(b',');
    }
    out.push(b']');
    eat(b'}', rest).ok_or(BROKEN_ARRAY.into())
}

fn vector(element: &Part, text: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    out.push(b'[');
    for (i, text) in text.split(|&byte| byte == b' ').filter(|text| !text.is_empty()).enumerate() {
        if 0 < i {
            out.push(b',');
        }
        part(element, text, out)?;
    }
    out.push(b']');
    Ok(())
}

/// `(...)`; nothing between two commas is NULL.
fn composite(attributes: &[Attribute], text: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    let mut rest = text;
    eat(b'(', &mut rest).ok_or(BROKEN_COMPOSITE)?;
    out.push(b'{');
    for (i, attribute) in attributes.iter().enumerate() {
        if 0 < i {
            eat(b',', &mut rest).ok_or(BROKEN_COMPOSITE)?;
            out.push(b',');
        }
        out.extend_from_slice(attribute.label.as_bytes());
        match rest.first() {
            Some(b'"') => {
                let text = quoted(&mut rest, true).ok_or(BROKEN_COMPOSITE)?;
                part(&attribute.part, &text, out)?;
            }
            _ => {
                let end = |byte: &u8| matches!(byte, b',' | b')');
                let end = rest.iter().position(end).ok_or(BROKEN_COMPOSITE)?;
                match rest.split_at(end).0 {
                    b"" => out.extend_from_slice(b"null"),
                    text => part(&attribute.part, text, out)?,
                }
                rest = &rest[end..];
            }
        }
    }
    out.push(b'}');
    if rest == b")" { Ok(()) } else { Err(BROKEN_COMPOSITE.into()) }
}

fn part(part: &Part, text: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    match &part.encoding {
        Encoding::Nested(inner) => nested(inner, text, out),
        scalar => printed::write(scalar, text, out),
    }
}

/// Takes `"..."`, in which a backslash stands before a character that is meant as it is; `doubled`: quotes and
/// backslashes may be written twice.
fn quoted<'a>(rest: &mut &'a [u8], doubled: bool) -> Option<Cow<'a, [u8]>> {
    eat(b'"', rest)?;
    let mut kept: Option<Vec<u8>> = None;
    let mut start = 0;
    let mut i = 0;
    loop {
        let skipped = match rest.get(i)? {
            b'\\' => true,
            b'"' if doubled && rest.get(i + 1) == Some(&b'"') => true,
            b'"' => break,
            _ => false,
        };
        if skipped {
            kept.get_or_insert_default().extend_from_slice(&rest[start..i]);
            start = i + 1;
            rest.get(start)?;
            i += 1;
        }
        i += 1;
    }
    let last = &rest[start..i];
    *rest = &rest[i + 1..];
    Some(match kept {
        Some(mut kept) => {
            kept.extend_from_slice(last);
            Cow::Owned(kept)
        }
        None => Cow::Borrowed(last),
    })
}

fn eat(byte: u8, rest: &mut &[u8]) -> Option<()> {
    *rest = rest.strip_prefix(&[byte])?;
    Some(())
}
