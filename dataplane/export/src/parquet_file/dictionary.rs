//! Whether the values of a column repeat so often that a dictionary makes the file smaller.

use std::collections::HashSet;
use std::hash::Hash;

use super::scalar::Scalar;

/// A dictionary pays where values stand four times on average: an unknown value costs more than a known one saves.
const REPEATS: usize = 4;

/// By the values that are held, which are those of the first row group.
pub(super) fn is_worth_it(values: &Scalar) -> bool {
    match values {
        // one bit each already
        Scalar::Bool(_) => false,
        Scalar::Int2(values)
        | Scalar::Int4(values)
        | Scalar::Oid(values)
        | Scalar::Date(values)
        | Scalar::Decimal32(_, values) => repeat(values.len(), values.iter()),
        Scalar::Int8(values)
        | Scalar::Time(values)
        | Scalar::Timestamp(values)
        | Scalar::TimestampTz(values)
        | Scalar::Decimal64(_, values) => repeat(values.len(), values.iter()),
        Scalar::Float4(values) => repeat(values.len(), values.iter().map(|value| value.to_bits())),
        Scalar::Float8(values) => repeat(values.len(), values.iter().map(|value| value.to_bits())),
        Scalar::Uuid(strings)
        | Scalar::DecimalFixed(_, strings)
        | Scalar::Bytea(strings)
        | Scalar::Text(strings)
        | Scalar::Printed(_, strings)
        | Scalar::Json(_, strings) => repeat(strings.n_values(), strings.values()),
    }
}

fn repeat<T: Hash + Eq>(n_values: usize, values: impl Iterator<Item = T>) -> bool {
    let max = n_values / REPEATS;
    let mut distinct = HashSet::new();
    for value in values {
        if distinct.insert(value) && max < distinct.len() {
            return false;
        }
    }
    true
}
