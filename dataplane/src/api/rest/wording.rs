//! REST's words for problems that are found when a statement has run.

use rowgate_sql::rest;

use crate::execute::wording::Wording;

pub(crate) static WORDING: Wording = Wording {
    too_much_memory: "the statement needs more memory or temporary files than one session may use; filter to fewer rows, order by an \
                      indexed field, use fewer functions on long texts in $filter, and name fewer such fields in $select",
    long_row: "a row is longer than 64 MiB as JSON; name fewer fields in $select",
    long_nested: "the answer with the rows of $expand is longer than 32 MiB as JSON; ask for fewer rows with $first, also within \
                  $expand, or for fewer fields with $select",
    long_written_row: "a row would be longer than 64 MiB as JSON, so nothing was written; send Prefer: return=minimal to write it",
    long_position: "the page ends at values of $orderby that are too long for a cursor; order by shorter fields, or ask for more \
                    rows per page",
    unmatched: "the row's version is not the one that If-Match names, or the row is gone; read it again, and apply the change to \
                what you find",
    taken: "a row with this key already exists, and If-None-Match: * requires a new one",
    version_required: |field| {
        format!(
            "this table requires the row's version: send {field} as it was read, or If-Match with its ETag"
        )
    },
    untrue: rest::problem::untrue,
    no_deletes: "this table does not allow deletes; set the row's deletion flag with PATCH instead",
};
