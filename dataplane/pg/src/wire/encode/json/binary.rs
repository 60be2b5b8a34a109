//! Arrays and composites in PostgreSQL's binary form, which names the type of every part.

use rowgate_sql::shape::{Body, Nested, Part};

use crate::wire::connection::frames::Fields;
use crate::wire::failure::{Malformed, Unwritten};

/// PostgreSQL knows no more dimensions.
const MAX_DIMENSIONS: usize = 6;
/// What NULL and the shortest value take: a length.
const LEN: usize = 4;

/// Recurses along the type, whose depth is bounded, never along the bytes.
pub(super) fn nested(nested: &Nested, value: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    let mut fields = Fields::new(value);
    match &nested.body {
        Body::Array { element, .. } => array(element, &mut fields, out)?,
        Body::Composite(attributes) => {
            if u32::from_be_bytes(fields.bytes()?) as usize != attributes.len() {
                return Err(Malformed("a composite whose number of attributes differs from its type").into());
            }
            out.push(b'{');
            for (i, attribute) in attributes.iter().enumerate() {
                if 0 < i {
                    out.push(b',');
                }
                out.extend_from_slice(attribute.label.as_bytes());
                is_type_of(&attribute.part, &mut fields)?;
                part(&attribute.part, &mut fields, out)?;
            }
            out.push(b'}');
        }
    }
    match fields.rest() {
        [] => Ok(()),
        _ => Err(Malformed("an array or a composite with data after its end").into()),
    }
}

/// How many dimensions; whether there are NULLs; the element's type; length and lower bound of each dimension; elements.
fn array(element: &Part, fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Result<(), Unwritten> {
    let n_dimensions = u32::from_be_bytes(fields.bytes()?) as usize;
    let _has_null: [u8; 4] = fields.bytes()?;
    is_type_of(element, fields)?;
    let mut lens = [0; MAX_DIMENSIONS];
    let lens = lens.get_mut(..n_dimensions).ok_or(Malformed("an array with too many dimensions"))?;
    let mut n_elements = 1usize;
    for len in &mut *lens {
        *len = u32::from_be_bytes(fields.bytes()?) as usize;
        let _lower_bound: [u8; 4] = fields.bytes()?;
        n_elements = n_elements.saturating_mul(*len);
    }
    if lens.is_empty() {
        out.extend_from_slice(b"[]");
        return Ok(());
    }
    if n_elements == 0 || fields.rest().len() / LEN < n_elements {
        return Err(Malformed("an array whose length differs from its dimensions").into());
    }
    dimension(element, lens, fields, out)
}

/// Recurses once for each dimension.
fn dimension(
    element: &Part,
    lens: &[usize],
    fields: &mut Fields<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unwritten> {
    let [len, lens @ ..] = lens else { return part(element, fields, out) };
    out.push(b'[');
    for i in 0..*len {
        if 0 < i {
            out.push(b',');
        }
        dimension(element, lens, fields, out)?;
    }
    out.push(b']');
    Ok(())
}

fn part(part: &Part, fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Result<(), Unwritten> {
    match fields.sized()? {
        Some(value) => super::write(&part.encoding, value, out),
        None => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

fn is_type_of(part: &Part, fields: &mut Fields<'_>) -> Result<(), Unwritten> {
    match u32::from_be_bytes(fields.bytes()?) == part.oid {
        true => Ok(()),
        false => Err(Malformed("an array or a composite with an element of an unexpected type").into()),
    }
}
