//! `adopt`: reads the database of an application and writes a first Tenant for it, to standard output or into a file. It changes nothing there.

mod entity_names;
mod manifest;
mod read;
mod secret_columns;
mod tables;
mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rowgate_core::name::TenantSlug;
use rowgate_core::role::OPERATOR_ROLE;
use rowgate_pg::connect::login::Login;
use rowgate_pg::failure::PgError;
use rowgate_program::database_url::{self, BadUrl};

use self::manifest::{Basics, Manifest};
use crate::relationships::write_new;
use crate::terminal::{print, say};

/// Exit code when nothing was written.
const MISTAKE: u8 = 2;
/// What `--output` calls standard output.
const STANDARD_OUTPUT: &str = "-";

/// The flags of `adopt`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  rowgate-dataplane adopt --database-url postgres://me:secret@db.internal/store --schema app
  rowgate-dataplane adopt --database-url 'postgres://me:secret@/store?host=/run/postgresql' --schema app --schema billing --output store.yaml
  rowgate-dataplane adopt --schema app --name north --namespace shops --operator rowgate_admin > north.yaml")]
pub struct AdoptFlags {
    /// The database that is read, with any login that may connect to it; no right on its tables is needed. Connections to a host use TLS and
    /// verify the certificate: `?sslrootcert=FILE` names the certificate authority; `?sslmode=disable` turns TLS off and is accepted for this
    /// machine only (such as `postgres://me:secret@db.internal:5432/store?sslrootcert=/etc/pg-ca.pem`)
    #[arg(long, env = "ROWGATE_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: String,
    /// The schema whose tables become entities; may be repeated [example: app]
    #[arg(long, required = true, value_name = "SCHEMA")]
    pub schema: Vec<String>,
    /// The Tenant's name, which is its slug in URLs [default: the name of the database, with hyphens in place of underscores]
    #[arg(long, value_name = "NAME")]
    pub name: Option<TenantSlug>,
    /// The namespace of the resources [default: none is written]
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// The login of Rowgate's operator on the server, which a DBA lends the owner of the database to
    #[arg(long, value_name = "ROLE", default_value = OPERATOR_ROLE)]
    pub operator: String,
    /// File to write, which must not exist yet; - is standard output
    #[arg(long, value_name = "FILE", default_value = STANDARD_OUTPUT)]
    pub output: PathBuf,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    #[error("--database-url: {0}")]
    Url(#[from] BadUrl),
    #[error("cannot connect to database {} as {}: {source}; correct --database-url", login.database, login.role)]
    Connect { login: Box<Login>, source: PgError },
    #[error("cannot read the catalogs of the database: {0}")]
    Read(#[source] PgError),
    #[error("{0}")]
    Mistakes(String),
    #[error("{} exists and was not replaced; name another file with --output", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Returns 2 when nothing was written.
pub fn run(flags: &AdoptFlags) -> ExitCode {
    match written(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(MISTAKE)
        }
    }
}

fn written(flags: &AdoptFlags) -> Result<(), AdoptError> {
    let login = database_url::parse(&flags.database_url)?;
    let application = read::application(&login)?;
    let basics = Basics::new(&application, flags)?;
    let chosen = tables::choose(&application, &flags.schema)?;
    let held = read::held_by_policies(&login, &chosen.tables)?;
    let manifest = Manifest::new(&basics, &application, chosen)?;
    let text = text::of(&manifest, &held, &flags.operator);
    if flags.output == Path::new(STANDARD_OUTPUT) {
        print(&text);
        return Ok(());
    }
    let path = flags.output.clone();
    match write_new(&path, &text) {
        Ok(()) => {
            say(&format!("wrote {}", path.display()));
            Ok(())
        }
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Err(AdoptError::Exists(path)),
        Err(source) => Err(AdoptError::Write { path, source }),
    }
}
