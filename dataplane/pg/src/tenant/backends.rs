//! Sessions in which a key's own statements run (call sessions), so that anybody can end them once the key is dead: whoever opened
//! one may be gone, cut off or stopped, and a function can trap every request to cancel it.

use rowgate_core::name::Ulid;
use rowgate_sql::ddl::roles;
use rowgate_sql::text::Ident;
use sqlx::{Connection as _, PgConnection};

use crate::connect::login::Login;
use crate::connect::session;
use crate::failure::PgError;
use crate::tenant::read_limits::{of, within};

/// One session of a server. Process ids come again, and not in the same microsecond.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Backend {
    pub pid: i32,
    /// `backend_start` in microseconds since 1970.
    pub since: i64,
    /// What it is logged in as: `key_<id>`, or `t<id>_sql` for an unscoped key.
    pub login: String,
}

/// Notes whose a session is, before its first statement. As `t<id>_lookups`; the row goes when the session has. False: the
/// session may have begun with settings that its role was given since; see [`mend`].
pub async fn register(
    conn: &mut PgConnection,
    backend: &Backend,
    key: &Ulid,
    replica: &Ulid,
) -> Result<bool, PgError> {
    let insert = sqlx::query(
        "insert into dl.backends (pid, backend_start, login, key_id, replica) \
         values ($1, timestamptz 'epoch' + $2 * interval '1 microsecond', $3, $4, $5)",
    );
    let insert = insert.bind(backend.pid).bind(backend.since).bind(&backend.login);
    insert.bind(key.as_str()).bind(replica.as_str()).execute(&mut *conn).await?;
    Ok(!has_settings(conn, &backend.login).await?)
}

/// Whether sessions of the role begin with settings of its own. We give it none.
pub async fn has_settings(conn: &mut PgConnection, role: &str) -> Result<bool, PgError> {
    let query = sqlx::query_scalar(
        "select exists (select from pg_catalog.pg_db_role_setting s join pg_catalog.pg_roles r on r.oid = s.setrole
                        where r.rolname = $1)",
    );
    Ok(query.bind(role).fetch_one(conn).await?)
}

/// Brings back what PostgreSQL lets every role change of itself, and so a statement of the key's: its password, and what its
/// sessions begin with. `auth` is of `t<id>_auth`, which becomes the role for it.
pub async fn mend(auth: &mut PgConnection, login: &Login, verifier: &str) -> Result<(), PgError> {
    let idents = Ident::new(&login.role).zip(Ident::new(&login.database));
    let (role, database) = idents.ok_or_else(|| PgError::unexpected("a role or database has no name"))?;
    let mut open = auth.begin().await?;
    // Whoever changes the role at this moment holds its row for as long as it runs.
    sqlx::query("set local lock_timeout = '1s'").execute(&mut *open).await?;
    become_role(&mut open, &login.role).await?;
    for sql in [
        roles::set_verifier(&role, verifier),
        roles::reset_settings(&role, None),
        roles::reset_settings(&role, Some(&database)),
    ] {
        session::execute(&mut open, &sql).await?;
    }
    open.commit().await?;
    Ok(())
}

async fn become_role(open: &mut PgConnection, role: &str) -> Result<(), PgError> {
    sqlx::query("select pg_catalog.set_config('role', $1, true)").bind(role).execute(open).await?;
    Ok(())
}

/// The sessions of keys that are revoked, expired or gone. Rows of sessions that have ended are removed. As `t<id>_lookups`,
/// which sees of others' sessions only that they are there, or the owner of schema `dl`, who reconciles.
pub async fn dead(conn: &mut PgConnection) -> Result<Vec<Backend>, PgError> {
    let query = sqlx::query_as(
        "with ended as (
             delete from dl.backends b
             where not exists (select from pg_catalog.pg_stat_activity a where a.pid = b.pid)
         )
         select b.pid, (extract(epoch from b.backend_start) * 1000000)::bigint as since, b.login::text
         from dl.backends b where not exists (select from dl.live l where l.id = b.key_id)",
    );
    within("dl.backends", async { Ok(query.fetch_all(conn).await?) }).await.map_err(of("dl.backends"))
}

/// Whether a key that is dead has a session. As the owner of schema `dl`, who reconciles.
pub async fn any_dead(conn: &mut PgConnection) -> Result<bool, PgError> {
    let query = sqlx::query_scalar(
        "select exists (select from dl.backends b where not exists (select from dl.live l where l.id = b.key_id))",
    );
    within("dl.backends", async { Ok(query.fetch_one(conn).await?) }).await.map_err(of("dl.backends"))
}

/// Whether the session is still there. As `t<id>_lookups`.
pub async fn is_there(conn: &mut PgConnection, backend: &Backend) -> Result<bool, PgError> {
    let query = sqlx::query_scalar(
        "select exists (select from pg_catalog.pg_stat_activity where pid = $1 and usename = $2)",
    );
    Ok(query.bind(backend.pid).bind(&backend.login).fetch_one(conn).await?)
}

/// Those of the sessions in which keys' own statements run. As the owner of schema `dl`, who reconciles.
pub async fn among(conn: &mut PgConnection, pids: &[i32]) -> Result<Vec<Backend>, PgError> {
    let query = sqlx::query_as(
        "select b.pid, (extract(epoch from b.backend_start) * 1000000)::bigint as since, b.login::text
         from dl.backends b where b.pid = any($1)",
    );
    within("dl.backends", async { Ok(query.bind(pids).fetch_all(conn).await?) })
        .await
        .map_err(of("dl.backends"))
}

/// Ends a session, and waits `wait_ms` for it to be gone; 0: for nothing. True unless it is still there. `auth` is of
/// `t<id>_auth`, which becomes the session's role to end it: a login of that role's own is what the key could spoil.
pub async fn end(auth: &mut PgConnection, backend: &Backend, wait_ms: i64) -> Result<bool, PgError> {
    let mut open = auth.begin().await?;
    become_role(&mut open, &backend.login).await?;
    let gone = terminate(&mut open, backend, wait_ms).await?;
    open.rollback().await?;
    Ok(gone)
}

/// Ends all of these, as [`end`] does, and says whether all are gone.
pub async fn end_all(auth: &mut PgConnection, backends: &[Backend], wait_ms: i64) -> Result<bool, PgError> {
    let mut all_gone = true;
    for backend in backends {
        let gone = end(auth, backend, wait_ms).await;
        // One that cannot be ended must not keep another alive.
        if let Err(error @ PgError::Sqlstate { .. }) = &gone {
            tracing::warn!(login = backend.login, %error, "a session of a dead key could not be ended");
            all_gone = false;
            continue;
        }
        all_gone &= gone?;
    }
    Ok(all_gone)
}

async fn terminate(conn: &mut PgConnection, backend: &Backend, wait_ms: i64) -> Result<bool, PgError> {
    let query = sqlx::query_scalar(
        "select coalesce(pg_catalog.bool_and(case when $3 = 0 then pg_catalog.pg_terminate_backend(a.pid) \
                                             else pg_catalog.pg_terminate_backend(a.pid, $3) end), true) \
         from pg_catalog.pg_stat_activity a \
         where a.pid = $1 and (extract(epoch from a.backend_start) * 1000000)::bigint = $2",
    );
    Ok(query.bind(backend.pid).bind(backend.since).bind(wait_ms).fetch_one(conn).await?)
}
