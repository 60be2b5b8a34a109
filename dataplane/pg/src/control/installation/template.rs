//! The template of tenants' databases, in which PUBLIC lacks the rights of [`hardening`]: a superuser makes it once.

use rowgate_core::role::TEMPLATE_DATABASE;
use sqlx::{Connection as _, PgConnection};

use super::checks;
use crate::connect::login::Login;
use crate::connect::session;
use crate::failure::PgError;
use crate::hardening;

/// The comment on the template once it and the databases that stood before it are done. Another number does it again, for a list
/// of rights that has changed.
const DONE: &str = "Rowgate makes the databases of its tenants from this one, 2";

/// Makes the template, and takes the same rights from PUBLIC in each tenant's database that is there. `conn` is the superuser
/// `admin`.
pub(super) async fn make(conn: &mut PgConnection, admin: &Login) -> Result<(), PgError> {
    let done: Option<String> = sqlx::query_scalar(
        "select pg_catalog.shobj_description(oid, 'pg_database') from pg_catalog.pg_database where datname = $1 and datistemplate",
    )
    .bind(TEMPLATE_DATABASE)
    .fetch_optional(&mut *conn)
    .await?
    .flatten();
    if done.as_deref() == Some(DONE) {
        return Ok(());
    }
    if checks::owner(conn, TEMPLATE_DATABASE).await?.is_none() {
        let create = format!("create database {TEMPLATE_DATABASE} template template0 encoding 'UTF8'");
        session::script(conn, &create).await?;
    }
    let close = format!("revoke connect, temporary on database {TEMPLATE_DATABASE} from public");
    session::script(conn, &close).await?;
    let databases: Vec<String> = sqlx::query_scalar(
        "select d.datname::text from pg_catalog.pg_database d join pg_catalog.pg_roles o on o.oid = d.datdba \
         where d.datallowconn and (d.datname = $1 or o.rolname ~ '^t[0-9a-z]{26}_owner$') order by d.datname <> $1, 1",
    )
    .bind(TEMPLATE_DATABASE)
    .fetch_all(&mut *conn)
    .await?;
    for database in databases {
        let revoked = revoke(&Login { database: database.clone(), ..admin.clone() }).await;
        match revoked {
            Err(error) if database == TEMPLATE_DATABASE => return Err(error),
            // its Tenant's condition says what is left
            Err(error) => tracing::warn!(database, %error, "rights of PUBLIC stay in this database"),
            Ok(()) => {}
        }
    }
    let mark = format!(
        "alter database {TEMPLATE_DATABASE} is_template true; comment on database {TEMPLATE_DATABASE} is '{DONE}'"
    );
    session::script(conn, &mark).await
}

async fn revoke(login: &Login) -> Result<(), PgError> {
    let mut conn = session::connect(login).await?;
    hardening::revoke(&mut conn).await?;
    Ok(conn.close().await?)
}
