//! What a surface calls that which a caller can change: words for problems that are found when a statement has run. All others are
//! worded alike for every surface.

use rowgate_core::problem::Problem;
use rowgate_sql::catalog::Entity;
use rowgate_sql::query::Check;

/// The words of one surface.
pub struct Wording {
    /// A statement takes more memory than one session may.
    pub too_much_memory: &'static str,
    /// A row is longer than an answer may be.
    pub long_row: &'static str,
    /// Rows with what stands within them are longer than an answer of that kind may be, or end at values too long for a cursor.
    pub long_nested: &'static str,
    /// A row that would be given back is longer than that, so that it was not written.
    pub long_written_row: &'static str,
    /// The page ends at values that are too long for a cursor.
    pub long_position: &'static str,
    /// The row has another version than the request names beside its fields, or is gone.
    pub unmatched: &'static str,
    /// The row is there, and only a new one was asked for.
    pub taken: &'static str,
    /// The table requires the row's version, which callers know by the name of this field.
    pub version_required: fn(&str) -> String,
    /// A key field's value is not what the row is named by, as PostgreSQL has found.
    pub untrue: fn(&Entity, &Check) -> Problem,
    /// The table keeps its rows, and has a field that flags them as deleted.
    pub no_deletes: &'static str,
}
