//! How a column's type is read.

use crate::catalog::{FieldType, TypeKind};
use crate::shape::Encoding;

/// Whether PostgreSQL makes the JSON: arrays and composites of whatever types.
pub(super) fn is_converted(ty: &FieldType) -> bool {
    matches!(ty.kind, TypeKind::Array | TypeKind::Composite)
}

pub(super) fn in_answer(ty: &FieldType) -> Encoding {
    if is_converted(ty) { Encoding::Json } else { as_stored(ty) }
}

/// Without conversion.
pub(super) fn as_stored(ty: &FieldType) -> Encoding {
    match ty.kind {
        TypeKind::Enum => return Encoding::Text,
        TypeKind::Array | TypeKind::Composite | TypeKind::Range | TypeKind::Other => return Encoding::Quoted,
        TypeKind::Base => {}
    }
    match ty.base_oid {
        16 => Encoding::Bool,
        17 => Encoding::Bytea,
        // name, text, bpchar, varchar; the one byte of "char" is UTF-8 in its text form only
        19 | 25 | 1042 | 1043 => Encoding::Text,
        20 => Encoding::Int8,
        21 => Encoding::Int2,
        23 => Encoding::Int4,
        26 => Encoding::Oid,
        // json, jsonb
        114 | 3802 => Encoding::Json,
        700 => Encoding::Float4,
        701 => Encoding::Float8,
        1082 => Encoding::Date,
        1083 => Encoding::Time,
        1114 => Encoding::Timestamp,
        1184 => Encoding::TimestampTz,
        1186 => Encoding::Interval,
        1266 => Encoding::TimeTz,
        1700 => Encoding::Numeric,
        2950 => Encoding::Uuid,
        _ => Encoding::Quoted,
    }
}
