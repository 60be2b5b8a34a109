//! Which types stand beside each other, and which can be compared or ordered at all.

use crate::catalog::{FieldType, Operators, TypeKind, WITHOUT_EQUALITY};
use crate::shape::Encoding;

/// What values of a column are to a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Whole numbers within these bounds.
    Integer(i64, i64),
    Numeric,
    Float4,
    Float8,
    Bool,
    /// Text of at most so many bytes: longer text would be cut and equal another.
    Text(usize),
    Uuid,
    Bytea,
    Date,
    Timestamp,
    TimestampTz,
    Time,
    TimeTz,
    /// Text that PostgreSQL judges: enums, intervals, jsonb, inet, money, ranges, arrays, types of extensions.
    Other,
}

impl Family {
    pub(crate) fn of(ty: &FieldType) -> Family {
        if ty.kind != TypeKind::Base {
            return Family::Other;
        }
        match ty.base_oid {
            16 => Family::Bool,
            17 => Family::Bytea,
            18 => Family::Text(1),
            19 => Family::Text(63),
            20 => Family::Integer(i64::MIN, i64::MAX),
            21 => Family::Integer(i16::MIN as i64, i16::MAX as i64),
            23 => Family::Integer(i32::MIN as i64, i32::MAX as i64),
            26 => Family::Integer(0, u32::MAX as i64),
            25 | 1042 | 1043 => Family::Text(usize::MAX),
            700 => Family::Float4,
            701 => Family::Float8,
            1082 => Family::Date,
            1083 => Family::Time,
            1114 => Family::Timestamp,
            1184 => Family::TimestampTz,
            1266 => Family::TimeTz,
            1700 => Family::Numeric,
            2950 => Family::Uuid,
            _ => Family::Other,
        }
    }

    /// Of an element of an array, or an attribute of a composite.
    pub(crate) fn of_part(encoding: &Encoding) -> Family {
        match encoding {
            Encoding::Bool => Family::Bool,
            Encoding::Int2 => Family::Integer(i16::MIN as i64, i16::MAX as i64),
            Encoding::Int4 => Family::Integer(i32::MIN as i64, i32::MAX as i64),
            Encoding::Int8 => Family::Integer(i64::MIN, i64::MAX),
            Encoding::Oid => Family::Integer(0, u32::MAX as i64),
            Encoding::Float4 => Family::Float4,
            Encoding::Float8 => Family::Float8,
            Encoding::Numeric => Family::Numeric,
            Encoding::Text => Family::Text(usize::MAX),
            Encoding::Uuid => Family::Uuid,
            Encoding::Bytea => Family::Bytea,
            Encoding::Date => Family::Date,
            Encoding::Time => Family::Time,
            Encoding::TimeTz => Family::TimeTz,
            Encoding::Timestamp => Family::Timestamp,
            Encoding::TimestampTz => Family::TimestampTz,
            Encoding::Interval
            | Encoding::Json
            | Encoding::Jsonb
            | Encoding::Quoted
            | Encoding::Nested(_) => Family::Other,
        }
    }

    /// Families whose columns PostgreSQL compares with each other share a letter; `Other` compares with its own type only.
    fn group(self) -> Option<char> {
        match self {
            Family::Integer(..) | Family::Numeric | Family::Float4 | Family::Float8 => Some('n'),
            Family::Text(_) => Some('t'),
            Family::Date | Family::Timestamp | Family::TimestampTz => Some('d'),
            Family::Time | Family::TimeTz => Some('h'),
            Family::Bool | Family::Uuid | Family::Bytea | Family::Other => None,
        }
    }
}

/// Whether constants beside the type are always written in quotes.
pub(crate) fn is_quoted(ty: &FieldType) -> bool {
    matches!(Family::of(ty), Family::Text(_) | Family::Bytea | Family::Other)
}

/// Whether two columns can be compared.
pub(crate) fn comparable(left: &FieldType, right: &FieldType) -> bool {
    let group = Family::of(left).group();
    left.base_oid == right.base_oid
        || (group.is_some()
            && group == Family::of(right).group()
            && ![left, right].iter().any(|ty| ty.base_oid == OID))
}

pub(crate) const OID: u32 = 26;
pub(crate) const INTERVAL: u32 = 1186;

/// Whether the type has an equality operator that we may use.
pub(crate) fn has_equality(ty: &FieldType) -> bool {
    ty.operators != Operators::Nowhere
        && match ty.kind {
            TypeKind::Base | TypeKind::Array => !WITHOUT_EQUALITY.contains(&ty.base_oid),
            TypeKind::Enum | TypeKind::Range => true,
            // Rows compare field by field, and a field may be of any of the types above; nothing is known of the others.
            TypeKind::Composite | TypeKind::Other => false,
        }
}

/// Whether the type has an order.
pub(crate) fn has_order(ty: &FieldType) -> bool {
    has_equality(ty) && !WITHOUT_ORDER.contains(&ty.base_oid)
}

/// xid, cid and arrays of each.
const WITHOUT_ORDER: [u32; 4] = [28, 1011, 29, 1012];

pub(crate) fn is_bool(ty: &FieldType) -> bool {
    Family::of(ty) == Family::Bool
}

/// One of the built-in types that constants and functions have.
pub(crate) fn base(oid: u32) -> FieldType {
    let name = match oid {
        16 => "boolean",
        17 => "bytea",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        25 => "text",
        700 => "real",
        701 => "double precision",
        1082 => "date",
        1083 => "time without time zone",
        1184 => "timestamp with time zone",
        INTERVAL => "interval",
        1700 => "numeric",
        2950 => "uuid",
        other => unreachable!("{other} is no type that a constant or a function has"),
    };
    FieldType {
        oid,
        name: name.to_owned(),
        kind: TypeKind::Base,
        base_oid: oid,
        operators: Operators::BuiltIn,
        nested: None,
    }
}
