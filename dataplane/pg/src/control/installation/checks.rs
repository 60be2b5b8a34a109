//! What a server and a login must be before anything is written.

use sqlx::PgConnection;

use super::InstallationError;
use crate::failure::PgError;

/// The oldest server whose CREATEROLE cannot be turned into a superuser's shell.
const OLDEST: i32 = 160_000;

/// The attributes of the role that is logged in.
#[derive(sqlx::FromRow)]
pub(super) struct Me {
    pub(super) name: String,
    pub(super) superuser: bool,
    create_db: bool,
    create_role: bool,
}

pub(super) async fn require_version(conn: &mut PgConnection) -> Result<(), InstallationError> {
    let row = sqlx::query_as(
        "select current_setting('server_version_num')::int, current_setting('server_version')",
    );
    match row.fetch_one(conn).await.map_err(PgError::from)? {
        (number, _) if OLDEST <= number => Ok(()),
        (_, version) => Err(InstallationError::TooOld { version }),
    }
}

pub(super) async fn me(conn: &mut PgConnection) -> Result<Me, PgError> {
    let row = sqlx::query_as(
        "select rolname::text as name, rolsuper as superuser, rolcreatedb as create_db, rolcreaterole as create_role \
         from pg_catalog.pg_roles where rolname = current_user",
    );
    Ok(row.fetch_one(conn).await?)
}

impl Me {
    /// Whether this login can do the operator's work without being a superuser.
    pub(super) fn require_operator(&self) -> Result<(), InstallationError> {
        if self.create_db && self.create_role {
            return Ok(());
        }
        Err(self.too_weak(vec![format!("alter role {} createdb createrole;", quoted(&self.name))]))
    }

    pub(super) fn too_weak(&self, lines: Vec<String>) -> InstallationError {
        InstallationError::LoginTooWeak { role: self.name.clone(), lines }
    }
}

/// The cluster's identifier; `None`: this login may not ask.
pub async fn system_identifier(conn: &mut PgConnection) -> Result<Option<String>, PgError> {
    let asked: Result<String, PgError> =
        sqlx::query_scalar("select system_identifier::text from pg_catalog.pg_control_system()")
            .fetch_one(conn)
            .await
            .map_err(PgError::from);
    match asked {
        Ok(identifier) => Ok(Some(identifier)),
        Err(error) if error.code() == Some("42501") => Ok(None),
        Err(error) => Err(error),
    }
}

/// Databases that everybody may enter or make temporary tables in. A role of a tenant is somebody too.
pub(super) async fn open_databases(conn: &mut PgConnection) -> Result<Vec<String>, PgError> {
    let names = sqlx::query_scalar(
        "select datname::text from pg_catalog.pg_database \
         where datallowconn and exists (select from pg_catalog.aclexplode(coalesce(datacl, pg_catalog.acldefault('d', datdba))) \
             where grantee = 0 and privilege_type in ('CONNECT', 'TEMPORARY')) \
         order by 1",
    );
    Ok(names.fetch_all(conn).await?)
}

/// Who owns `database`; `None`: there is none.
pub(super) async fn owner(conn: &mut PgConnection, database: &str) -> Result<Option<String>, PgError> {
    let owner = sqlx::query_scalar(
        "select pg_catalog.pg_get_userbyid(datdba)::text from pg_catalog.pg_database where datname = $1",
    );
    Ok(owner.bind(database).fetch_optional(conn).await?)
}

/// A name as it stands in a statement that a DBA pastes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
