//! Statements that run in no transaction.

use rowgate_pg::connect::session;
use rowgate_pg::failure::{PgError, TransactionError};
use rowgate_sql::ddl::roles;
use rowgate_sql::text::Sql;
use sqlx::PgConnection;

/// How often a database is tried to be dropped that sessions and autovacuum enter by turns.
const ROUNDS: usize = 5;
/// A process of a superuser's works in the database, which `with (force)` would end: autovacuum as a rule.
const NOT_OURS: &str = "42501";
const IN_USE: &str = "55006";

pub(super) async fn each(conn: &mut PgConnection, statements: &[Sql]) -> Result<(), TransactionError> {
    for (index, sql) in statements.iter().enumerate() {
        let done = match roles::drop_unforced(sql) {
            Some(unforced) => drop(conn, sql, &unforced).await,
            None => session::execute(conn, sql).await,
        };
        done.map_err(|error| TransactionError { index, error })?;
    }
    Ok(())
}

/// PostgreSQL lets no login but a superuser force autovacuum out of a database, and asks it to leave where nothing is forced.
async fn drop(conn: &mut PgConnection, forced: &Sql, unforced: &Sql) -> Result<u64, PgError> {
    let mut done = session::execute(conn, forced).await;
    for _ in 1..ROUNDS {
        if !is(&done, NOT_OURS) {
            break;
        }
        let left = session::execute(conn, unforced).await;
        if !is(&left, IN_USE) {
            return left;
        }
        done = session::execute(conn, forced).await;
    }
    done
}

fn is(done: &Result<u64, PgError>, code: &str) -> bool {
    done.as_ref().is_err_and(|error| error.code() == Some(code))
}
