//! GraphQL's words for problems.

use rowgate_core::problem::Problem;
use rowgate_sql::rest;

use crate::execute::wording::Wording;

pub(super) static WORDING: Wording = Wording {
    too_much_memory: "the statement needs more memory or temporary files than one session may use; filter to fewer rows, order by an \
                      indexed field, use fewer conditions on long texts in filter, and ask for fewer such fields",
    long_row: "a row is longer than 64 MiB as JSON; ask for fewer fields",
    long_nested: "the answer is longer than 32 MiB as JSON; ask for fewer rows with first, also within rows, or for fewer fields; or groupBy has more groups than its \
                  argument first says",
    long_written_row: "a row would be longer than 64 MiB as JSON, so nothing was written",
    long_position: "the page ends at values of orderBy that are too long for a cursor; order by shorter fields, or ask for more \
                    rows per page",
    unmatched: "the row's version is not the one that was given, or the row is gone; read it again, and apply the change to what \
                you find",
    taken: "a row with this key already exists",
    version_required: |field| {
        format!("this table requires the row's version: give {field} as it was read, in item")
    },
    untrue: rest::problem::untrue,
    no_deletes: "this table does not allow deletes; set the row's deletion flag with the mutation that updates it",
};

/// The names of options as arguments have them.
const NAMES: [(&str, &str); 6] = [
    ("$filter", "filter"),
    ("$orderby", "orderBy"),
    ("$first", "first"),
    ("$after", "after"),
    ("$select", "the selection"),
    ("$expand", "the selection"),
];

/// A problem that the resolver worded for REST.
pub(super) fn of_graphql(problem: Problem) -> Problem {
    problem.reworded(&NAMES)
}
