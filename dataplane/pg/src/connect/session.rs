//! Connections for everything but the hot path, and the one place where built SQL text meets sqlx.

use std::time::Duration;

use rowgate_core::role::TenantLogin;
use rowgate_sql::text::Sql;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgSslMode};
use sqlx::{Arguments as _, ConnectOptions as _, Connection as _, Executor as _, PgConnection, SqlStr};

use crate::connect::gate::Gate;
use crate::connect::login::{Endpoint, Login};
use crate::connect::tls::Tls;
use crate::failure::{PgError, TransactionError};

mod bind;

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the owner of a tenant's database could set for all sessions in it, and what would then run code of the tenant's as a login of ours, or
/// change what its statements mean.
const OF_OURS: [(&str, &str); 17] = [
    ("search_path", "pg_catalog"),
    ("row_security", "on"),
    ("default_transaction_read_only", "off"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_deferrable", "off"),
    ("local_preload_libraries", ""),
    ("idle_session_timeout", "0"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("transform_null_equals", "off"),
    ("array_nulls", "on"),
    ("quote_all_identifiers", "off"),
    ("TimeZone", "UTC"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("standard_conforming_strings", "on"),
];

/// Opens a connection for `login`. Statements and their values never reach our log.
pub async fn connect(login: &Login) -> Result<PgConnection, PgError> {
    // A TLS handshake is a large future, and everything that connects would grow by it.
    let gate = gate(login).transpose().map_err(sqlx::Error::Io)?;
    let options = match &gate {
        Some(gate) => gate.through(options(login)),
        None => options(login),
    };
    let connected = match tokio::time::timeout(CONNECT_TIMEOUT, Box::pin(options.connect())).await {
        Ok(connected) => connected.map_err(|error| match PgError::from(error) {
            PgError::Unavailable { reason, source } => {
                PgError::Unavailable { reason: format!("{}: {reason}", login.endpoint), source }
            }
            refused => refused,
        }),
        Err(_) => Err(PgError::Unavailable {
            reason: format!("no connection to {} within {} s", login.endpoint, CONNECT_TIMEOUT.as_secs()),
            source: None,
        }),
    };
    let mut conn = connected?;
    if login.runs_ours_alone() {
        let settings = of_newer_versions(&conn);
        if !settings.is_empty() {
            script(&mut conn, settings).await?;
        }
    }
    Ok(conn)
}

/// As [`OF_OURS`], for settings that not every version knows, so that no session can begin with them.
fn of_newer_versions(conn: &PgConnection) -> &'static str {
    match conn.server_version_num() {
        Some(170_000..) => "set transaction_timeout = 0; set restrict_nonsystem_relation_kind = ''",
        _ => "",
    }
}

/// Leaves nothing of what was set or made in this session, whoever did it; prepared statements of ours stay. An error: the
/// server has ended it.
pub async fn renew(conn: &mut PgConnection) -> Result<(), PgError> {
    // DISCARD ALL, but for those statements
    let text = "close all; set session authorization default; reset all; reset role; unlisten *; \
                select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences";
    let text = format!("{text}; {}", of_newer_versions(conn));
    script(conn, &text).await
}

/// What bounds the answers to a tenant's login: the tenant's code words them. `None`: no tenant's code runs there; or this is
/// no Linux, where no socket is without a file, so that there nothing is bounded.
pub(crate) fn gate(login: &Login) -> Option<std::io::Result<Gate>> {
    let is_tenants = cfg!(target_os = "linux") && TenantLogin::of_role(&login.role).is_some();
    is_tenants.then(|| Gate::open(login))
}

/// sqlx's options for `login`, taking nothing from the environment that we can set.
pub(crate) fn options(login: &Login) -> PgConnectOptions {
    let options = PgConnectOptions::new_without_pgpass()
        .username(&login.role)
        .password(login.password.reveal())
        .database(&login.database)
        .application_name("rowgate")
        .disable_statement_logging();
    let options = match login.runs_ours_alone() {
        true => options.options(OF_OURS),
        false => options,
    };
    match &login.endpoint {
        Endpoint::Unix { directory, port } => {
            options.ssl_mode(PgSslMode::Disable).socket(directory).port(*port)
        }
        Endpoint::Tcp { host, port, tls } => {
            let options = options.host(host).port(*port);
            match tls {
                Tls::Disable => options.ssl_mode(PgSslMode::Disable),
                Tls::VerifyFull(authorities) => match authorities.pem() {
                    Some(pem) => {
                        options.ssl_mode(PgSslMode::VerifyFull).ssl_root_cert_from_pem(pem.to_owned())
                    }
                    None => options.ssl_mode(PgSslMode::VerifyFull),
                },
            }
        }
    }
}

/// Runs one statement and returns how many rows it touched. More than one statement in the text is an error of
/// PostgreSQL's (42601): an expression cannot bring a second one along.
pub async fn execute(conn: &mut PgConnection, sql: &Sql) -> Result<u64, PgError> {
    let mut arguments = PgArguments::default();
    for value in sql.binds() {
        let value = bind::Raw::new(value).map_err(PgError::unexpected)?;
        arguments.add(value).map_err(|source| PgError::from(sqlx::Error::Encode(source)))?;
    }
    // with values the text is one of a few, which PostgreSQL takes apart once for each connection; without, it names roles
    let is_one_of_a_few = !sql.binds().is_empty();
    let query = sqlx::query_with(safe(sql.as_str()), arguments).persistent(is_one_of_a_few);
    Ok(query.execute(conn).await?.rows_affected())
}

/// Runs the statements in one transaction: all of them, or none.
pub async fn transaction(conn: &mut PgConnection, statements: &[Sql]) -> Result<(), TransactionError> {
    let at = |index| move |error: PgError| TransactionError { index, error };
    // each statement sees what stands when it begins, whatever the tenant's database has as its default
    let open = conn.begin_with("begin isolation level read committed, read write").await;
    let mut open = open.map_err(|error| at(0)(error.into()))?;
    for (index, sql) in statements.iter().enumerate() {
        // Dropping `open` on the way out queues the ROLLBACK.
        execute(&mut open, sql).await.map_err(at(index))?;
    }
    open.commit().await.map_err(|error| at(statements.len())(error.into()))
}

/// Runs a whole script by the simple protocol: several statements, no values. Without transaction control of its
/// own, all of it or nothing takes effect.
pub async fn script(conn: &mut PgConnection, text: &str) -> Result<(), PgError> {
    (&mut *conn).execute(sqlx::raw_sql(safe(text))).await?;
    Ok(())
}

/// The only door for text that is no literal: `Sql` holds literals of ours, quoted identifiers and `$n`; scripts are
/// our migrations, the bootstrap of a tenant's owner, on the owner's own login, and what the person who starts standalone has it run.
#[expect(clippy::disallowed_methods, reason = "this is the one place that the ban leaves")]
fn safe(text: &str) -> SqlStr {
    use sqlx::SqlSafeStr as _;
    sqlx::AssertSqlSafe(text).into_sql_str()
}
