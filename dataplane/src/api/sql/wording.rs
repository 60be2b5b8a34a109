//! The words of the SQL endpoint for problems that are found when the statement has run.

use crate::api::rest::wording;
use crate::execute::wording::Wording;

/// Of those that a read can have; the rest is never said.
pub(super) static WORDING: Wording = Wording {
    too_much_memory: "the query needs more memory or temporary files than one session may use, or makes a value that PostgreSQL cannot hold, or goes through all of a long value for each part of another; sort, group, search and aggregate fewer or shorter values",
    long_row: "a row is longer than 32 MiB; select fewer or shorter columns",
    ..wording::WORDING
};
