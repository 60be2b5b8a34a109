//! Text becomes a value of a column's type. What can be judged here is judged here, so that the answer names the
//! field; the rest PostgreSQL judges.

pub(super) mod family;
pub(crate) mod input;
pub(super) mod moment;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::catalog::{FieldType, TypeKind};
use crate::request::{Literal, is_guid, is_number, like};
use crate::text::{Bind, Format};
use family::Family;

/// What a value would have to be, to fit its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueRefusal {
    /// A whole number within these bounds.
    Integer(i64, i64),
    Number,
    Range,
    Bool,
    /// A text, in a filter.
    Unquoted,
    /// A text, in a body.
    NoText,
    Nul,
    NoList,
    Dimensions,
    Escape,
    NoObject,
    Quotes,
    NoScalar,
    /// Of so many bytes at most.
    Length(usize),
    Uuid,
    Bytea,
    Date,
    Timestamp,
    TimestampTz,
    Time,
    TimeTz,
    /// A plus sign of an offset, which was read as a blank.
    Plus,
    /// Of the type of the column: this one cannot be compared with it.
    Foreign,
    /// Nothing: the type has no equality.
    Incomparable,
}

/// Padding or none; the URL-safe alphabet is mapped before.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bind for a literal of a filter: only quoted text is text, and every type may be written as text.
pub(super) fn literal(ty: &FieldType, literal: &Literal) -> Result<Bind, ValueRefusal> {
    let family = Family::of(ty);
    let text = match literal {
        Literal::Text(text)
        | Literal::Number(text)
        | Literal::Date(text)
        | Literal::Timestamp(text)
        | Literal::Time(text)
        | Literal::Guid(text) => text.as_str(),
        Literal::Bool(true) => "true",
        Literal::Bool(false) => "false",
        Literal::Infinity { negative: false } => "infinity",
        Literal::Infinity { negative: true } => "-infinity",
        Literal::NaN => "NaN",
        Literal::Null => return Err(ValueRefusal::Unquoted),
        Literal::Duration(text) if ty.base_oid == family::INTERVAL => {
            return bind(ty, &moment::interval(text));
        }
        Literal::Binary(text) if family == Family::Bytea => return bind(ty, text),
        Literal::Enum { label, .. } if ty.kind == TypeKind::Enum => return bind(ty, label),
        Literal::Duration(_) | Literal::Binary(_) | Literal::Enum { .. } => {
            return Err(ValueRefusal::Foreign);
        }
    };
    let quoted = matches!(literal, Literal::Text(_));
    let number = matches!(literal, Literal::Number(_));
    match family {
        Family::Text(_) if !quoted => Err(ValueRefusal::Unquoted),
        // `money` and the like may be written as numbers.
        Family::Other if !quoted && !number => Err(ValueRefusal::Unquoted),
        Family::TimestampTz | Family::TimeTz if quoted && moment::with_plus(text).is_some() => {
            Err(ValueRefusal::Plus)
        }
        _ => bind(ty, text),
    }
}

/// The bind for a bare text, such as a part of a path.
pub(super) fn bind(ty: &FieldType, text: &str) -> Result<Bind, ValueRefusal> {
    if !family::has_equality(ty) {
        return Err(ValueRefusal::Incomparable);
    }
    stored(ty, text)
}

/// The bind for a bare text that is to be stored.
pub(super) fn stored(ty: &FieldType, text: &str) -> Result<Bind, ValueRefusal> {
    let family = Family::of(ty);
    if family == Family::Bytea {
        let value = Some(bytea(text)?);
        return Ok(Bind { value, format: Format::Binary, ..Bind::text(ty.base_oid, "") });
    }
    judge(family, text)?;
    // The base type: a domain's checks say what may be stored, not what may be asked for.
    Ok(Bind::text(ty.base_oid, text))
}

/// Whether a bare text is of a family, as far as it is judged here.
pub(super) fn judge(family: Family, text: &str) -> Result<(), ValueRefusal> {
    let fits = |fits: bool, otherwise: ValueRefusal| fits.then_some(()).ok_or(otherwise);
    match family {
        Family::Integer(min, max) => {
            let number: Option<i64> = if text.starts_with('+') { None } else { text.parse().ok() };
            fits(number.is_some_and(|n| min <= n && n <= max), ValueRefusal::Integer(min, max))?;
        }
        Family::Numeric => fits(is_number(text) || is_special(text), ValueRefusal::Number)?,
        Family::Float4 => {
            float(text, |text| text.parse::<f32>().is_ok_and(f32::is_finite))?;
        }
        Family::Float8 => {
            float(text, |text| text.parse::<f64>().is_ok_and(f64::is_finite))?;
        }
        Family::Bool => fits(matches!(text, "true" | "false"), ValueRefusal::Bool)?,
        Family::Text(max) => fits(text.len() <= max, ValueRefusal::Length(max))?,
        Family::Uuid => {
            fits(is_guid(text) || like(text, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), ValueRefusal::Uuid)?;
        }
        Family::Date => fits(moment::is_date(text) || moment::is_infinite(text), ValueRefusal::Date)?,
        Family::Timestamp => {
            fits(moment::is_timestamp(text, false) || moment::is_infinite(text), ValueRefusal::Timestamp)?;
        }
        Family::TimestampTz => {
            fits(moment::is_timestamp(text, true) || moment::is_infinite(text), ValueRefusal::TimestampTz)?;
        }
        Family::Time => fits(moment::is_time(text, false), ValueRefusal::Time)?,
        Family::TimeTz => fits(moment::is_time(text, true), ValueRefusal::TimeTz)?,
        Family::Bytea => {
            bytea(text)?;
        }
        Family::Other => {}
    }
    Ok(())
}

/// Base 64 of either alphabet.
pub(super) fn bytea(text: &str) -> Result<Vec<u8>, ValueRefusal> {
    BASE64.decode(text.replace('-', "+").replace('_', "/")).map_err(|_| ValueRefusal::Bytea)
}

fn float(text: &str, in_range: fn(&str) -> bool) -> Result<(), ValueRefusal> {
    match () {
        () if is_special(text) => Ok(()),
        () if !is_number(text) => Err(ValueRefusal::Number),
        () if !in_range(text) => Err(ValueRefusal::Range),
        () => Ok(()),
    }
}

fn is_special(text: &str) -> bool {
    ["NaN", "Infinity", "-Infinity", "INF", "-INF"].iter().any(|special| special.eq_ignore_ascii_case(text))
}
