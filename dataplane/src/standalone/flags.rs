//! The flags of `standalone`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rowgate_pg::connect::login::Login;
use rowgate_program::database_url;
use rowgate_program::settings::Mistakes;

use super::postgres::SESSION_MEMORY;
use crate::config::{ServerFlags, ServerSettings};

/// All of them as texts and paths; [`StandaloneFlags::settings`] checks them.
#[derive(Debug, Clone, Default, Args)]
pub struct StandaloneFlags {
    #[command(flatten)]
    pub server: ServerFlags,
    /// The folder with the YAML of tenants and keys [example: examples/shop]
    #[arg(long, env = "ROWGATE_MANIFESTS", value_name = "FOLDER")]
    pub manifests: PathBuf,
    /// The folder for everything that is kept: the database, root secrets, generated keys, status
    #[arg(long, env = "ROWGATE_STATE", value_name = "FOLDER", default_value = ".rowgate")]
    pub state: PathBuf,
    /// A running PostgreSQL (16 or newer) to use instead of our own; the user is a superuser, or has CREATEDB and
    /// CREATEROLE. A host is met with TLS and verified; `?sslrootcert=FILE` names the authority, `?sslmode=disable` does
    /// without on this machine (example: `postgres://admin:secret@db.internal:5432/postgres?sslrootcert=/etc/pg-ca.pem`)
    #[arg(long, env = "ROWGATE_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// The folder with the PostgreSQL programs to start [default: the system's newest, else the one `make postgres`
    /// downloads] [example: /usr/lib/postgresql/18/bin]
    #[arg(long, env = "ROWGATE_POSTGRES_BIN", value_name = "FOLDER")]
    pub postgres_bin: Option<PathBuf>,
    /// A setting for our own PostgreSQL; may be repeated [example: shared_buffers=1GB]
    #[arg(long, value_name = "NAME=VALUE")]
    pub postgres_setting: Vec<String>,
    /// MiB of memory that one session of our own PostgreSQL may take; a statement that would take more fails, and no other
    /// one [default: 1024]
    #[arg(long, env = "ROWGATE_SESSION_MEMORY", value_name = "MIB")]
    pub session_memory: Option<String>,
    /// How often everything is compared with the database although no manifest changed [default: 25]
    #[arg(long, env = "ROWGATE_RELOOK_SECONDS", value_name = "SECONDS")]
    pub relook_seconds: Option<String>,
    /// A file to write, with the address and the keys as JSON, as soon as the first request can be made
    #[arg(long, env = "ROWGATE_READY_FILE", value_name = "PATH")]
    pub ready_file: Option<PathBuf>,
}

/// What `standalone` needs, checked.
#[derive(Debug, Clone)]
pub struct StandaloneSettings {
    pub server: ServerSettings,
    pub manifests: PathBuf,
    pub state: PathBuf,
    /// `None`: a PostgreSQL of our own.
    pub database: Option<Login>,
    pub postgres_bin: Option<PathBuf>,
    pub postgres_settings: Vec<String>,
    /// MiB
    pub session_memory: u32,
    pub relook: Duration,
    pub ready_file: Option<PathBuf>,
}

impl StandaloneFlags {
    /// Checks all flags; every mistake is told at once.
    pub fn settings(self) -> Result<StandaloneSettings, Mistakes> {
        let mut mistakes = Vec::new();
        let server = self.server.settings().map_err(|Mistakes(more)| mistakes.extend(more)).ok();
        let database = self.database_url.as_deref().map(database_url::parse).transpose();
        let database = database.map_err(|why| mistakes.push(format!("--database-url: {why}"))).ok();
        let relook = self.relook_seconds.as_deref().unwrap_or("25");
        let relook = relook.parse().ok().filter(|seconds| (1..=3600).contains(seconds));
        if relook.is_none() {
            mistakes.push("--relook-seconds: give a whole number from 1 to 3600".to_owned());
        }
        let memory = self.session_memory.as_deref().map(|text| text.parse().ok());
        let memory = memory.unwrap_or(Some(SESSION_MEMORY)).filter(|mib| (128..=1 << 20).contains(mib));
        if memory.is_none() {
            mistakes.push("--session-memory: give a whole number of MiB from 128 to 1048576".to_owned());
        }
        let is_ours = self.postgres_bin.is_some() || self.session_memory.is_some();
        if self.database_url.is_some() && (is_ours || !self.postgres_setting.is_empty()) {
            mistakes.push(
                "--database-url names a running PostgreSQL; --postgres-bin, --postgres-setting and --session-memory are for our own: \
                 leave one or the other out"
                    .to_owned(),
            );
        }
        for setting in self.postgres_setting.iter().filter(|setting| !setting.contains('=')) {
            mistakes.push(format!("--postgres-setting: {setting:?} is not of the form name=value"));
        }
        match (server, database, relook, memory) {
            (Some(server), Some(database), Some(relook), Some(session_memory)) if mistakes.is_empty() => {
                Ok(StandaloneSettings {
                    server,
                    manifests: self.manifests,
                    state: self.state,
                    database,
                    postgres_bin: self.postgres_bin,
                    postgres_settings: self.postgres_setting,
                    session_memory,
                    relook: Duration::from_secs(relook),
                    ready_file: self.ready_file,
                })
            }
            _ => Err(Mistakes(mistakes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_told_at_once() {
        let flags = StandaloneFlags {
            server: ServerFlags { listen: Some("nowhere".into()), ..ServerFlags::default() },
            database_url: Some("mysql://x".into()),
            postgres_bin: Some("/bin".into()),
            postgres_setting: vec!["fsync".into()],
            session_memory: Some("1".into()),
            relook_seconds: Some("0".into()),
            ..StandaloneFlags::default()
        };
        let Mistakes(lines) = flags.settings().expect_err("six mistakes");
        let starts = [
            "--listen",
            "--database-url: ",
            "--relook-seconds",
            "--session-memory",
            "--database-url names",
            "--postgres-setting",
        ];
        assert_eq!(lines.len(), starts.len(), "{lines:?}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }
}
