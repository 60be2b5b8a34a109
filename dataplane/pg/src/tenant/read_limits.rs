//! How much is read from a tenant's database, whatever its code has put there: one place for all figures.
//!
//! A tenant with 500 tables of 100 columns that everybody may read and change takes 50,000 rows of one statement, 3 MB in a row
//! and 13 MB in all; `docs/decisions/bounds.md` says of what.

use std::time::Duration;

use crate::failure::PgError;

/// One message of PostgreSQL's, so that one row, in bytes.
pub const MAX_ROW: usize = 8 << 20;
/// Rows of one statement: what a tenant's tables have of columns, mostly.
pub const MAX_ROWS: usize = 100_000;
/// Rows of a table of `dl` that has one for each key, entity or permission set.
pub(crate) const MAX_RECORDS: usize = 10_000;
/// Everything within one transaction, in bytes.
pub const MAX_TOTAL: usize = 32 << 20;
/// As much as is kept of an error, in bytes: a tenant's code words some of them.
pub const MAX_ERROR: usize = 8 << 10;
/// What the server reports of a setting, in bytes; a longer one is none that we need.
pub(crate) const MAX_SETTING: usize = 1 << 10;
/// Reading a tenant's database once.
pub const MAX_TIME: Duration = Duration::from_secs(20);

/// Ends `reading` when it takes longer than [`MAX_TIME`], whatever the tenant's code does about `statement_timeout`; dropping
/// it ends what runs in the database. `what` is read, for the message.
pub async fn within<T>(
    what: &'static str,
    reading: impl Future<Output = Result<T, PgError>>,
) -> Result<T, PgError> {
    match tokio::time::timeout(MAX_TIME, reading).await {
        Ok(read) => read,
        Err(_) => Err(PgError::Beyond {
            what,
            held: format!("reading it took longer than {} s, which is the maximum", MAX_TIME.as_secs()),
        }),
    }
}

/// What a statement gave that is `limited!`.
pub(crate) fn records<T>(rows: Vec<T>) -> Result<Vec<T>, PgError> {
    if rows.len() <= MAX_RECORDS {
        return Ok(rows);
    }
    let held = format!("there are more than {MAX_RECORDS} rows, which is the maximum that is read");
    Err(PgError::Beyond { what: "a table of dl", held })
}

/// One more than [`MAX_RECORDS`], behind a statement's text.
macro_rules! limited {
    ($text:literal) => {
        concat!($text, " limit 10001")
    };
}
pub(crate) use limited;

/// Says of which table the error is, and keeps the words of the tenant's code out of it.
pub(crate) fn of(what: &'static str) -> impl Fn(PgError) -> PgError {
    move |error| match error {
        PgError::Beyond { held, .. } => PgError::Beyond { what, held },
        PgError::Sqlstate { code, source, .. } => {
            let message = format!("{what} cannot be read");
            PgError::Sqlstate { code, message, source }
        }
        PgError::Unavailable { source: Some(source @ sqlx::Error::Database(_)), .. } => {
            let reason = format!("the connection ended while {what} was read");
            PgError::Unavailable { reason, source: Some(source) }
        }
        PgError::Unexpected { .. } => PgError::unexpected(format!(
            "{what} does not have the columns that this version of Rowgate expects"
        )),
        other @ (PgError::Unavailable { .. } | PgError::Replaced | PgError::Fenced { .. }) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_is_read_is_asked_for() {
        assert_eq!(limited!(""), format!(" limit {}", MAX_RECORDS + 1));
        assert!(records(vec![(); MAX_RECORDS]).is_ok() && records(vec![(); MAX_RECORDS + 1]).is_err());
    }
}
