//! Lists that are put in order when their rows have been read. To sort them takes PostgreSQL a fifth of the statement, though they
//! mostly come in the order of an index.

use super::encoding;
use crate::query::{OrderTerm, Query};
use crate::shape::Encoding;

/// A column to order by, of values of one length whose bytes compare as they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderColumn {
    pub column: usize,
    pub n_bytes: usize,
    /// But for the first bit, which says that a value is negative.
    pub is_signed: bool,
    /// NULL comes behind all values, or before them where this is true.
    pub descending: bool,
}

/// By what the rows of one list, which all have the same fields inside `pairs`, are ordered. `asked` gives the column of a field.
/// `None`: by what only PostgreSQL compares, or the list has a cursor.
pub(super) fn order(
    query: &Query,
    pairs: &[(usize, usize)],
    mut asked: impl FnMut(usize) -> usize,
) -> Option<Vec<OrderColumn>> {
    if !is_possible(query, pairs) {
        return None;
    }
    let column = |term: &OrderTerm| {
        let (n_bytes, is_signed) = place(query, term)?;
        Some(OrderColumn { column: asked(term.field), n_bytes, is_signed, descending: term.descending })
    };
    terms(query, pairs).map(column).collect()
}

/// Whether [`order`] says by what they are ordered.
pub(super) fn is_possible(query: &Query, pairs: &[(usize, usize)]) -> bool {
    query.binding.is_none()
        && query.order_references.is_empty()
        && terms(query, pairs).all(|term| place(query, term).is_some())
}

/// Those by which the rows of one list differ.
fn terms<'q>(query: &'q Query, pairs: &'q [(usize, usize)]) -> impl Iterator<Item = &'q OrderTerm> {
    query.order.iter().filter(|term| !pairs.iter().any(|(_, at)| *at == term.field))
}

fn place(query: &Query, term: &OrderTerm) -> Option<(usize, bool)> {
    bytes(&encoding::of(&query.entity.fields[term.field].ty))
}

/// How many bytes a value of a type has, and whether the first bit is that of a negative number. `None`: bytes do not say what comes first.
fn bytes(encoding: &Encoding) -> Option<(usize, bool)> {
    Some(match encoding {
        Encoding::Bool => (1, false),
        Encoding::Int2 => (2, true),
        Encoding::Int4 | Encoding::Date => (4, true),
        Encoding::Oid => (4, false),
        Encoding::Int8 | Encoding::Timestamp | Encoding::TimestampTz => (8, true),
        Encoding::Uuid => (16, false),
        _ => return None,
    })
}
