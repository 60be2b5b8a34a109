//! The words of aggregates for problems that are found when the statement has run.

use crate::api::rest::wording;
use crate::execute::wording::Wording;

/// Of those that a read can have; the rest is never said.
pub(super) static WORDING: Wording = Wording {
    too_much_memory: "the statement needs more memory or temporary files than one session may use; filter to fewer rows, group by fewer \
                      fields, and use fewer functions on long texts and fewer aggregations of distinct values",
    long_row: "a group is longer than 64 MiB as JSON; name fewer fields and aggregations",
    long_position: "the page ends at values that are too long for a cursor; group by shorter fields, order by shorter values, or ask \
                    for more groups per page with first",
    ..wording::WORDING
};
