//! A JSON value becomes what is stored in a column: for every type of PostgreSQL, with nothing rounded on the way.

use super::family::Family;
use super::value::{self, Misfit};
use crate::body::Input;
use crate::catalog::{FieldType, TypeKind};
use crate::shape::{Body, Encoding, Nested, Part, label};
use crate::text::Bind;

const JSON: u32 = 114;
const JSONB: u32 = 3802;

/// The bind for `input` in a column of type `ty`, declared as what stands below domains: assigning it asks them.
pub(super) fn bind(ty: &FieldType, input: &Input) -> Result<Bind, Misfit> {
    if matches!(input, Input::Null) {
        return Ok(Bind { value: None, ..Bind::text(ty.base_oid, "") });
    }
    if matches!(ty.base_oid, JSON | JSONB) && ty.kind == TypeKind::Base {
        let mut text = String::new();
        input.write_json(&mut text);
        return Ok(Bind::text(ty.base_oid, text));
    }
    if let Some(nested) = &ty.nested {
        return Ok(Bind::text(nested.oid, whole(nested, input)?));
    }
    let text = scalar(input)?;
    let is_quoted = matches!(input, Input::Text(_));
    match Family::of(ty) {
        Family::Text(_) if !is_quoted => Err(Misfit::NoText),
        Family::Bool if matches!(input, Input::Number(_)) => Err(Misfit::Bool),
        Family::Other if matches!(input, Input::Bool(_)) => Err(Misfit::NoText),
        _ => value::stored(ty, text),
    }
}

/// The text of a value that is neither array nor object.
fn scalar(input: &Input) -> Result<&str, Misfit> {
    match input {
        Input::Bool(true) => Ok("true"),
        Input::Bool(false) => Ok("false"),
        Input::Number(text) => Ok(text),
        Input::Text(text) if text.contains('\0') => Err(Misfit::Nul),
        Input::Text(text) => Ok(text),
        Input::Null | Input::List(_) | Input::Object(_) => Err(Misfit::NoScalar),
    }
}

/// The text form of an array or a composite.
fn whole(nested: &Nested, input: &Input) -> Result<String, Misfit> {
    let mut out = String::new();
    match (&nested.body, input) {
        (Body::Array { element, delimiter }, Input::List(items)) => {
            array(element, char::from(*delimiter), items, &mut out)?;
        }
        (Body::Array { .. }, _) => return Err(Misfit::NoList),
        (Body::Composite(attributes), Input::Object(fields)) => {
            let is_known = |name: &str| attributes.iter().any(|attribute| attribute.label == label(name));
            if !fields.iter().all(|(name, _)| is_known(name)) {
                return Err(Misfit::NoObject);
            }
            out.push('(');
            for (i, attribute) in attributes.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                let value = fields.iter().find(|(name, _)| label(name) == attribute.label);
                // An attribute without anything between the commas is NULL.
                match value.map_or(&Input::Null, |(_, value)| value) {
                    Input::Null => {}
                    value => quoted(&part(&attribute.part, value)?, '"', &mut out),
                }
            }
            out.push(')');
        }
        (Body::Composite(_), _) => return Err(Misfit::NoObject),
    }
    Ok(out)
}

/// Lists within lists are the dimensions of one array.
fn array(element: &Part, delimiter: char, items: &[Input], out: &mut String) -> Result<(), Misfit> {
    out.push('{');
    for (i, item) in items.iter().enumerate() {
        if 0 < i {
            out.push(delimiter);
        }
        match item {
            Input::Null => out.push_str("NULL"),
            Input::List(items) if !is_json(&element.encoding) => array(element, delimiter, items, out)?,
            item => quoted(&part(element, item)?, '\\', out),
        }
    }
    out.push('}');
    Ok(())
}

fn is_json(encoding: &Encoding) -> bool {
    matches!(encoding, Encoding::Json | Encoding::Jsonb)
}

/// One element or attribute in its text form.
fn part(part: &Part, input: &Input) -> Result<String, Misfit> {
    match &part.encoding {
        encoding if is_json(encoding) => {
            let mut text = String::new();
            input.write_json(&mut text);
            Ok(text)
        }
        Encoding::Nested(nested) => whole(nested, input),
        Encoding::Bytea => value::bytea(scalar(input)?)
            .map(|bytes| bytes.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}"))),
        Encoding::Text if !matches!(input, Input::Text(_)) => Err(Misfit::NoText),
        _ => scalar(input).map(str::to_owned),
    }
}

/// In double quotes; within them `escape` stands before a quote and a backslash before a backslash.
fn quoted(text: &str, escape: char, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push(escape),
            '\\' => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out.push('"');
}
