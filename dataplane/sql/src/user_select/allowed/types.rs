//! The types that a caller's SELECT may cast to: built-in ones that hold values. `regclass` and its kin read catalogs, and a type of the
//! database may run a function of its owner.

use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectNamePart};

use crate::user_select::refusal::{Checked, Refusal, TextPosition};

/// Types that sqlparser has no word for.
const BY_NAME: &[&str] = &[
    "bpchar",
    "cidr",
    "inet",
    "int4range",
    "int8range",
    "jsonpath",
    "macaddr",
    "macaddr8",
    "money",
    "numrange",
    "tsrange",
    "tstzrange",
    "daterange",
];

/// A whole number of at most 8 bytes.
pub(in crate::user_select) fn is_integer(ty: &DataType) -> bool {
    use DataType as T;
    matches!(
        ty,
        T::SmallInt(_) | T::Int(_) | T::Integer(_) | T::BigInt(_) | T::Int2(_) | T::Int4(_) | T::Int8(_)
    )
}

/// The name as it is reported, where the type is allowed.
pub(in crate::user_select) fn check(ty: &mut DataType, at: TextPosition) -> Checked<String> {
    use DataType as T;
    let allowed = match ty {
        T::Char(length)
        | T::Character(length)
        | T::CharacterVarying(length)
        | T::CharVarying(length)
        | T::Varchar(length) => !matches!(
            length,
            Some(CharacterLength::Max | CharacterLength::IntegerLength { unit: Some(_), .. })
        ),
        T::Double(info) => {
            let plain = *info == ExactNumberInfo::None;
            if plain {
                return Err(refused(ty, at, "write double precision"));
            }
            false
        }
        T::SmallInt(length) | T::Int(length) | T::Integer(length) | T::BigInt(length) => length.is_none(),
        T::Int2(length) | T::Int4(length) | T::Int8(length) => length.is_none(),
        T::Numeric(_) | T::Decimal(_) | T::Dec(_) | T::Float(_) => true,
        T::Float4 | T::Float8 | T::Real | T::DoublePrecision | T::Bool | T::Boolean | T::Uuid => true,
        T::Date | T::Time(_, _) | T::Timestamp(_, _) | T::JSON | T::JSONB | T::Text | T::Bytea => true,
        T::Interval { .. } | T::Bit(_) | T::BitVarying(_) | T::VarBit(_) | T::TsVector | T::TsQuery => true,
        T::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
            check(element, at)?;
            true
        }
        T::Custom(name, modifiers) => match name.0.as_mut_slice() {
            [ObjectNamePart::Identifier(ident)] => {
                if ident.quote_style.is_none() {
                    ident.value.make_ascii_lowercase();
                }
                ident.quote_style = Some('"');
                modifiers.is_empty() && BY_NAME.contains(&ident.value.as_str())
            }
            _ => false,
        },
        _ => false,
    };
    if !allowed {
        let way = match ty {
            T::Nvarchar(_) => "write text or varchar(n)",
            T::Datetime(_) => "write timestamp",
            T::TinyInt(_) => "write smallint",
            T::Varbinary(_) | T::Binary(_) => "write bytea",
            T::Varchar(_) | T::CharVarying(_) => "write varchar(n) or text",
            T::Regclass => "it reads a catalog; compare names instead",
            T::Custom(name, _) => match name.to_string().to_ascii_lowercase().trim_matches('"') {
                "datetime2" | "smalldatetime" => "write timestamp",
                "datetimeoffset" => "write timestamptz",
                "uniqueidentifier" => "write uuid",
                _ => "cast to a built-in type that holds values, such as text, integer or timestamptz",
            },
            _ => "cast to a built-in type that holds values, such as text, integer or timestamptz",
        };
        return Err(refused(ty, at, way));
    }
    Ok(ty.to_string().to_lowercase())
}

fn refused(ty: &DataType, at: TextPosition, way: &str) -> Refusal {
    let name: String = ty.to_string().chars().take(80).collect();
    Refusal::new("type", at, format!("the type {name} is not allowed here; {way}"))
}
