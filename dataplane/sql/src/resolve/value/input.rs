//! A JSON value becomes what is stored in a column: for every type of PostgreSQL, with nothing rounded on the way.

use super::family::Family;
use super::{self as value, ValueRefusal};
use crate::catalog::{FieldType, TypeKind};
use crate::request::{Input, fields, items};
use crate::shape::{Body, Encoding, Nested, Part, label};
use crate::text::{Bind, quoted};

const JSON: u32 = 114;
const JSONB: u32 = 3802;
/// Of an array of PostgreSQL.
const MAX_DIMENSIONS: usize = 6;
/// In bytes, of an array or a composite as PostgreSQL reads it. Each level of it writes quotes twice, so that a tenant's types
/// could make any size of a body.
const MAX_TEXT: usize = 8 << 20;

/// The bind for `input` in a column of type `ty`, declared as what stands below domains: assigning it asks them.
pub(crate) fn bind(ty: &FieldType, input: &Input<'_>) -> Result<Bind, ValueRefusal> {
    if matches!(input, Input::Null) {
        return Ok(Bind { value: None, ..Bind::text(ty.base_oid, "") });
    }
    if matches!(ty.base_oid, JSON | JSONB) && ty.kind == TypeKind::Base {
        return Ok(Bind::text(ty.base_oid, input.json().into_owned()));
    }
    if let Some(nested) = &ty.nested {
        return Ok(Bind::text(nested.oid, whole(nested, input)?));
    }
    value::stored(ty, bare(Family::of(ty), input)?)
}

/// The text of a value that may stand for one of `family`.
fn bare<'a>(family: Family, input: &'a Input<'_>) -> Result<&'a str, ValueRefusal> {
    match (family, input) {
        (Family::Text(_) | Family::Bytea, Input::Bool(_) | Input::Number(_)) => Err(ValueRefusal::NoText),
        (Family::Bool, Input::Number(_)) => Err(ValueRefusal::Bool),
        (Family::Other, Input::Bool(_)) => Err(ValueRefusal::NoText),
        _ => scalar(input),
    }
}

/// The text of a value that is neither array nor object.
fn scalar<'a>(input: &'a Input<'_>) -> Result<&'a str, ValueRefusal> {
    match input {
        Input::Bool(true) => Ok("true"),
        Input::Bool(false) => Ok("false"),
        Input::Number(text) => Ok(text),
        Input::Text(text) if text.contains('\0') => Err(ValueRefusal::Nul),
        Input::Text(text) => Ok(text),
        Input::Null | Input::List(_) | Input::Object(_) => Err(ValueRefusal::NoScalar),
    }
}

/// The text form of an array or a composite.
fn whole(nested: &Nested, input: &Input<'_>) -> Result<String, ValueRefusal> {
    let mut out = String::new();
    match (&nested.body, input) {
        (Body::Array { element, delimiter }, Input::List(raw)) => {
            array(element, char::from(*delimiter), raw, &mut out)?;
        }
        (Body::Array { .. }, _) => return Err(ValueRefusal::NoList),
        (Body::Composite(attributes), Input::Object(raw)) => {
            let sent = fields(raw).map_err(|_| ValueRefusal::Escape)?;
            let is_known = |name: &str| attributes.iter().any(|attribute| attribute.label == label(name));
            if !sent.iter().all(|(name, _)| is_known(name)) {
                return Err(ValueRefusal::NoObject);
            }
            out.push('(');
            for (i, attribute) in attributes.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                let value = sent.iter().find(|(name, _)| label(name) == attribute.label);
                // An attribute without anything between the commas is NULL.
                match value.map_or(&Input::Null, |(_, value)| value) {
                    Input::Null => {}
                    value => quoted(&part(&attribute.part, value)?, '"', &mut out),
                }
                bounded(&out)?;
            }
            out.push(')');
        }
        (Body::Composite(_), _) => return Err(ValueRefusal::NoObject),
    }
    Ok(out)
}

/// Lists within lists are the dimensions of one array.
fn array(element: &Part, delimiter: char, raw: &str, out: &mut String) -> Result<(), ValueRefusal> {
    dimension(element, delimiter, raw, MAX_DIMENSIONS, out)
}

/// `left`: as many dimensions as may follow, which also bounds how often what stands in one is read.
fn dimension(
    element: &Part,
    delimiter: char,
    raw: &str,
    left: usize,
    out: &mut String,
) -> Result<(), ValueRefusal> {
    let left = left.checked_sub(1).ok_or(ValueRefusal::Dimensions)?;
    out.push('{');
    for (i, item) in items(raw).map_err(|_| ValueRefusal::Escape)?.enumerate() {
        if 0 < i {
            out.push(delimiter);
        }
        match &item.map_err(|_| ValueRefusal::Escape)? {
            Input::Null => out.push_str("NULL"),
            Input::List(raw) if !is_list(&element.encoding) => {
                dimension(element, delimiter, raw, left, out)?;
            }
            item => quoted(&part(element, item)?, '\\', out),
        }
        bounded(out)?;
    }
    out.push('}');
    Ok(())
}

fn bounded(text: &str) -> Result<(), ValueRefusal> {
    if MAX_TEXT < text.len() { Err(ValueRefusal::Quotes) } else { Ok(()) }
}

/// Whether a list is one element: JSON, or a domain over an array.
fn is_list(encoding: &Encoding) -> bool {
    let is_array = |nested: &Nested| matches!(nested.body, Body::Array { .. });
    is_json(encoding) || matches!(encoding, Encoding::Nested(nested) if is_array(nested))
}

fn is_json(encoding: &Encoding) -> bool {
    matches!(encoding, Encoding::Json | Encoding::Jsonb)
}

/// One element or attribute in its text form.
fn part(part: &Part, input: &Input<'_>) -> Result<String, ValueRefusal> {
    match &part.encoding {
        encoding if is_json(encoding) => Ok(input.json().into_owned()),
        Encoding::Nested(nested) => whole(nested, input),
        Encoding::Bytea => value::bytea(bare(Family::Bytea, input)?)
            .map(|bytes| bytes.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}"))),
        encoding => {
            let family = Family::of_part(encoding);
            let text = bare(family, input)?;
            value::judge(family, text)?;
            Ok(text.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shape::Attribute;
    use crate::text::Format;

    /// Composites with one attribute, within each other.
    fn composite(depth: usize) -> Nested {
        let encoding = match depth {
            1 => Encoding::Text,
            _ => Encoding::Nested(Arc::new(composite(depth - 1))),
        };
        let attribute = Attribute { label: label("a"), part: Part { oid: 25, encoding } };
        Nested { oid: 20_000, format: Format::Text, body: Body::Composite(vec![attribute]) }
    }

    /// Seen to fail without the bound: the last one took 64 MiB, and a body of a MiB as many GiB.
    #[test]
    fn quotes_within_quotes_are_bounded() {
        for (depth, n_quotes, refusal) in
            [(2, 3, None), (16, 10, None), (16, 1_000, Some(ValueRefusal::Quotes))]
        {
            let text = r#"\""#.repeat(n_quotes);
            let body = format!("{}\"{text}\"{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
            let written = whole(&composite(depth), &Input::Object(&body)).map(|text| text.len());
            assert_eq!(written.err(), refusal, "{depth} {n_quotes}");
        }
    }
}
