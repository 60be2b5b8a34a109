//! `psql TENANT`: opens a tenant's database with PostgreSQL's own client, as the owner of its tables or as its login of migration tools.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use rowgate_core::derive::Password;
use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::connect::tls::Tls;
use rowgate_pg::connect::url;
use rowgate_pg::control::installation::{InstallationError, open_existing};
use rowgate_pg::control::servers::ServerList;
use rowgate_pg::control::tenants;
use rowgate_pg::failure::PgError;
use rowgate_reconcile::source::SourceError;
use rowgate_reconcile::source::dir;

use crate::state::database::AUTHORITY;
use crate::state::found::{self, StateError};
use crate::terminal::{print, say};

/// Exit code when psql could not be started.
const MISTAKE: u8 = 2;
/// Seconds that psql waits for a connection.
const CONNECT_SECONDS: &str = "10";

/// The flags of `psql`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  rowgate-dataplane psql shop
  rowgate-dataplane psql shop -- -c '\\d shop.orders'
  rowgate-dataplane psql shop --migrations --url
  echo 'alter table shop.orders add column gift boolean' | rowgate-dataplane psql shop")]
pub struct PsqlFlags {
    /// The tenant's slug, as in /auth/TENANT/api [example: shop]
    #[arg(value_name = "TENANT")]
    pub tenant: String,
    /// State folder of the standalone Rowgate that serves the tenant
    #[arg(long, env = "ROWGATE_STATE", value_name = "FOLDER", default_value = ".rowgate")]
    pub state: PathBuf,
    /// Log in as migration tools do (spec.database.migrations of the Tenant)
    #[arg(long)]
    pub migrations: bool,
    /// Print a connection URL for other clients instead; it contains the password
    #[arg(long)]
    pub url: bool,
    /// Arguments for psql, after two hyphens [example: -- --csv -c 'select 1']
    #[arg(last = true, value_name = "PSQL ARGUMENTS")]
    pub args: Vec<OsString>,
}

/// Why psql was not started.
#[derive(Debug, thiserror::Error)]
pub enum PsqlError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Installation(InstallationError),
    #[error(transparent)]
    Secret(SourceError),
    #[error(
        "tenant {tenant:?} has no login of migration tools; set spec.database.migrations in its manifest"
    )]
    NoMigrations { tenant: String },
    #[error("cannot list the tenants of the control database: {0}")]
    Tenants(#[source] PgError),
    #[error("there is no tenant {tenant:?}; {known}")]
    Unknown { tenant: String, known: String },
    #[error(
        "psql is not on the PATH; install the PostgreSQL client programs, or give another client the URL that --url \
         prints"
    )]
    NoPsql,
    #[error("cannot run {}: {source}", path.display())]
    Run { path: PathBuf, source: io::Error },
}

/// Returns the exit code of psql, or 2 when psql could not be started.
pub fn run(flags: &PsqlFlags) -> ExitCode {
    let opened = find(flags).and_then(|login| match flags.url {
        true => {
            print(&format!("{}\n", address(&login, &flags.state)));
            Ok(())
        }
        false => Err(become_psql(&login, flags)),
    });
    match opened {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(MISTAKE)
        }
    }
}

/// The command that opens a tenant's database from the folder in which this program was started, ready to paste.
pub(super) fn line(slug: &str, state: &Path) -> String {
    let program = env::args().next().unwrap_or_else(|| "rowgate-dataplane".to_owned());
    let state = match state.to_str() {
        Some(".rowgate") | None => String::new(),
        Some(state) => format!(" --state {}", quoted(state)),
    };
    format!("{} psql {slug}{state}", quoted(&program))
}

/// Quoted so that a shell reads it back as it is.
fn quoted(text: &str) -> String {
    match text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The owner's login. It creates and starts nothing.
#[tokio::main(flavor = "current_thread")]
async fn find(flags: &PsqlFlags) -> Result<Login, PsqlError> {
    let of = if flags.migrations { TenantLogin::Migrations } else { TenantLogin::Owner };
    let login = login(&flags.state, &flags.tenant, of).await?;
    if !flags.migrations {
        return Ok(login);
    }
    // its password is another one after each rotation
    let found = dir::entries_with(&flags.state, "user", &login.role).map_err(PsqlError::Secret)?;
    let password = found.and_then(|mut data| data.remove("password"));
    let password = password.ok_or_else(|| PsqlError::NoMigrations { tenant: flags.tenant.clone() })?;
    Ok(Login { password: Password::given(password), ..login })
}

/// The login of the owner of a tenant's tables, or of its schema `dl`, by the tenant's slug.
pub(crate) async fn login(state: &Path, tenant: &str, of: TenantLogin) -> Result<Login, PsqlError> {
    let (roots, endpoint) = found::find(state).await?;
    let opened = open_existing(endpoint, &roots.dataplane).await;
    let (installation, mut control) = opened.map_err(PsqlError::Installation)?;
    let rows = tenants::list(&mut control).await.map_err(PsqlError::Tenants)?;
    let places = ServerList::read(&mut control).await.map_err(PsqlError::Tenants)?;
    match rows.iter().find(|row| row.slug.as_str() == tenant) {
        Some(row) => {
            let cluster = places.of(&installation, row.cluster.as_deref()).map_err(PsqlError::Tenants)?;
            Ok(installation.of_operator(&roots.operator, of, &row.id, cluster, &row.database))
        }
        None => {
            let slugs: Vec<&str> = rows.iter().map(|row| row.slug.as_str()).collect();
            let known = match &slugs[..] {
                [] => "no tenant is ready yet; the output of standalone says why".to_owned(),
                slugs => format!("ready tenants: {}", slugs.join(", ")),
            };
            Err(PsqlError::Unknown { tenant: tenant.to_owned(), known })
        }
    }
}

/// Replaces this process by psql and returns only if that fails. The password is passed in the environment, which only this
/// user can read; every user can read command lines.
fn become_psql(login: &Login, flags: &PsqlFlags) -> PsqlError {
    let Some(path) = on_path("psql") else { return PsqlError::NoPsql };
    if io::stdin().is_terminal() && flags.args.is_empty() {
        say(&format!(
            "Connected as {}. The owner of the tables sees every row, and what it reads through a view that is an entity is filtered.",
            login.role
        ));
    }
    let mut command = Command::new(&path);
    // PGSERVICE or PGHOSTADDR would lead to another server
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    command.envs(environment(login, &flags.state)).args(&flags.args);
    PsqlError::Run { path, source: command.exec() }
}

/// The variables that libpq reads.
fn environment(login: &Login, state: &Path) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("PGDATABASE", login.database.clone()),
        ("PGUSER", login.role.clone()),
        ("PGPASSWORD", login.password.reveal().to_owned()),
        ("PGCONNECT_TIMEOUT", CONNECT_SECONDS.to_owned()),
    ];
    let (host, port) = match &login.endpoint {
        Endpoint::Unix { directory, port } => (directory.to_string_lossy().into_owned(), port),
        Endpoint::Tcp { host, port, .. } => (host.clone(), port),
    };
    variables.extend([("PGHOST", host), ("PGPORT", port.to_string())]);
    if let Some((mode, authority)) = protection(&login.endpoint, state) {
        variables.push(("PGSSLMODE", mode.to_owned()));
        variables.extend(authority.map(|authority| ("PGSSLROOTCERT", authority)));
    }
    variables
}

/// The URL of the login, with the file of the authority that this installation trusts.
fn address(login: &Login, state: &Path) -> String {
    let authority = protection(&login.endpoint, state).and_then(|(_, authority)| authority);
    url::url(login, authority.as_deref())
}

/// libpq's `sslmode` and `sslrootcert`; `None` for a socket, which has neither.
fn protection(endpoint: &Endpoint, state: &Path) -> Option<(&'static str, Option<String>)> {
    let Endpoint::Tcp { tls, .. } = endpoint else { return None };
    let authority = match tls {
        Tls::Disable => None,
        Tls::VerifyFull(authorities) => Some(match authorities.pem() {
            None => "system".to_owned(),
            Some(_) => {
                let file = state.join(AUTHORITY);
                std::path::absolute(&file).unwrap_or(file).to_string_lossy().into_owned()
            }
        }),
    };
    Some((url::ssl_mode(endpoint)?, authority))
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_one_that_clients_read() {
        let login = |endpoint| Login {
            endpoint,
            database: "my shop".to_owned(),
            role: "t1_owner".to_owned(),
            password: Password::given("a-b_c".to_owned()),
        };
        let tcp = |host: &str| Endpoint::Tcp { host: host.to_owned(), port: 5432, tls: Tls::Disable };
        for (endpoint, expected) in [
            (Endpoint::Unix { directory: "/tmp/a".into(), port: 5432 }, "%2Ftmp%2Fa:5432/my%20shop"),
            (tcp("localhost"), "localhost:5432/my%20shop?sslmode=disable"),
            (tcp("::1"), "[::1]:5432/my%20shop?sslmode=disable"),
        ] {
            let url = address(&login(endpoint.clone()), Path::new("state"));
            assert_eq!(url, format!("postgresql://t1_owner:a-b_c@{expected}"));
            // and that --database-url accepts
            let read = rowgate_program::database_url::parse(&url).expect("an address");
            assert_eq!((read.endpoint, read.database.as_str()), (endpoint, "my shop"));
        }
    }

    #[test]
    fn a_line_can_be_pasted() {
        assert_eq!(quoted("target/debug/rowgate-dataplane"), "target/debug/rowgate-dataplane");
        assert_eq!(quoted("it's mine"), "'it'\\''s mine'");
        assert!(line("shop", Path::new(".rowgate")).ends_with(" psql shop"));
        assert!(line("shop", Path::new("other state")).ends_with(" psql shop --state 'other state'"));
    }
}
