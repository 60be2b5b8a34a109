//! What the command asks PostgreSQL, with a connection for each question.

use rowgate_pg::connect::login::Login;
use rowgate_pg::connect::session;
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect::{self, Application};

use super::AdoptError;
use super::tables::Table;

/// The database as it is found.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn application(login: &Login) -> Result<Application, AdoptError> {
    let mut conn = session::connect(login).await.map_err(connect(login))?;
    introspect::application(&mut conn).await.map_err(AdoptError::Read)
}

/// The roles that PostgreSQL will not let COPY FROM or dump the tables, once these have row-level security. Where the application has it
/// already, nothing changes.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn held_by_policies(login: &Login, tables: &[Table<'_>]) -> Result<Vec<String>, AdoptError> {
    let tables = tables.iter().filter(|table| !table.is_filtered).map(|table| table.relation.oid);
    let tables: Vec<u32> = tables.collect();
    let mut conn = session::connect(login).await.map_err(connect(login))?;
    introspect::held_by_policies(&mut conn, &tables).await.map_err(AdoptError::Read)
}

fn connect(login: &Login) -> impl FnOnce(PgError) -> AdoptError {
    move |source| AdoptError::Connect { login: Box::new(login.clone()), source }
}
