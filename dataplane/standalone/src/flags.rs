//! The flags of `standalone`, without those of the data plane that it runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use rowgate_pg::connect::login::Login;
use rowgate_program::database_url;
use rowgate_program::settings::{Mistakes, renamed_variable, url};
use rowgate_reconcile::PublicUrls;

use crate::postgres::SESSION_MEMORY;

/// All of them as texts and paths; [`StandaloneFlags::settings`] checks them.
#[derive(Debug, Clone, Default, Args)]
pub struct StandaloneFlags {
    /// Folder with the YAML manifests of Tenants and ApiKeys [example: examples/shop]
    #[arg(long, env = "ROWGATE_MANIFESTS", value_name = "FOLDER")]
    pub manifests: PathBuf,
    /// Folder that keeps the database, the root secrets, the generated keys and the status between starts
    #[arg(long, env = "ROWGATE_STATE", value_name = "FOLDER", default_value = ".rowgate")]
    pub state: PathBuf,
    /// Existing PostgreSQL server (16 or newer) to use instead of starting one; the user must be a superuser or have CREATEDB
    /// and CREATEROLE. Connections to a host use TLS and verify the certificate: `?sslrootcert=FILE` names the certificate
    /// authority; `?sslmode=disable` turns TLS off and is accepted for this machine only (example: `postgres://admin:secret@db.internal:5432/postgres?sslrootcert=/etc/pg-ca.pem`)
    #[arg(long, env = "ROWGATE_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Folder with the PostgreSQL programs to run [default: the newest on this system, else the one that `make postgres`
    /// downloads] [example: /usr/lib/postgresql/18/bin]
    #[arg(long, env = "ROWGATE_POSTGRES_BIN", value_name = "FOLDER")]
    pub postgres_bin: Option<PathBuf>,
    /// Setting for the PostgreSQL that standalone starts; may be repeated [example: shared_buffers=1GB]
    #[arg(long, value_name = "NAME=VALUE")]
    pub postgres_setting: Vec<String>,
    /// Memory limit, in MiB, of each session of the PostgreSQL that standalone starts; only the statement that exceeds it
    /// fails [default: 1024]
    #[arg(long, env = "ROWGATE_SESSION_MEMORY", value_name = "MIB")]
    pub session_memory: Option<String>,
    /// File of SQL to run once, as a superuser of the PostgreSQL that standalone starts, before the manifests are read: it makes
    /// databases that exist, for Tenants with `create: false`. A line `\connect DATABASE` goes on in another database, as in psql
    /// [example: examples/adopt/prepare.sql]
    #[arg(long, env = "ROWGATE_PREPARE", value_name = "FILE")]
    pub prepare: Option<PathBuf>,
    /// Interval at which everything is compared with the database even if no manifest changed [default: 25]
    #[arg(long, alias = "relook-seconds", env = "ROWGATE_RESYNC_SECONDS", value_name = "SECONDS")]
    pub resync_seconds: Option<String>,
    /// URL at which clients reach the API, for status.endpoints [default: the address of --listen] [example: `https://api.example.com`]
    #[arg(long, env = "ROWGATE_API_URL", value_name = "URL")]
    pub api_url: Option<String>,
    /// URL at which clients exchange keys for tokens, for status.endpoints [default: --api-url] [example: `https://auth.example.com`]
    #[arg(long, env = "ROWGATE_AUTH_URL", value_name = "URL")]
    pub auth_url: Option<String>,
    /// URL at which clients reach /api/ddl, for status.endpoints [default: --api-url] [example: `https://ddl.example.com`]
    #[arg(long, env = "ROWGATE_DDL_URL", value_name = "URL")]
    pub ddl_url: Option<String>,
    /// File to write as soon as the API serves requests: its address and the keys, as JSON
    #[arg(long, env = "ROWGATE_READY_FILE", value_name = "PATH")]
    pub ready_file: Option<PathBuf>,
}

/// What `standalone` needs, checked.
#[derive(Debug, Clone)]
pub struct StandaloneSettings {
    pub manifests: PathBuf,
    pub state: PathBuf,
    /// `None`: standalone starts a PostgreSQL.
    pub database: Option<Login>,
    pub postgres_bin: Option<PathBuf>,
    pub postgres_settings: Vec<String>,
    /// MiB
    pub session_memory: u32,
    /// SQL that runs once in the PostgreSQL that standalone starts.
    pub prepare: Option<PathBuf>,
    pub resync: Duration,
    pub urls: GivenUrls,
    pub ready_file: Option<PathBuf>,
    /// Networks that webhooks may reach although they are no public ones: the data plane's setting.
    pub webhook_ranges: Vec<IpNet>,
}

/// The public addresses, as far as they were given.
#[derive(Debug, Clone, Default)]
pub struct GivenUrls {
    data: Option<String>,
    auth: Option<String>,
    ddl: Option<String>,
}

impl GivenUrls {
    /// With `listening`, where the API listens, for those that were not.
    #[must_use]
    pub fn at(&self, listening: &str) -> PublicUrls {
        let data = self.data.clone().unwrap_or_else(|| listening.to_owned());
        let or_data = |url: &Option<String>| url.clone().unwrap_or_else(|| data.clone());
        PublicUrls { auth: or_data(&self.auth), ddl: or_data(&self.ddl), data }
    }
}

impl StandaloneFlags {
    /// Checks all flags and reports all mistakes at once.
    pub fn settings(self) -> Result<StandaloneSettings, Mistakes> {
        let mut mistakes = Vec::new();
        let database = self.database_url.as_deref().map(database_url::parse).transpose();
        let database = database.map_err(|why| mistakes.push(format!("--database-url: {why}"))).ok();
        let resync = self.resync_seconds.or_else(|| renamed_variable("ROWGATE_RELOOK_SECONDS"));
        let resync = resync.as_deref().unwrap_or("25").parse().ok();
        let resync = resync.filter(|seconds| (1..=3600).contains(seconds));
        if resync.is_none() {
            mistakes.push("--resync-seconds: give a whole number from 1 to 3600".to_owned());
        }
        let memory = self.session_memory.as_deref().map(|text| text.parse().ok());
        let memory = memory.unwrap_or(Some(SESSION_MEMORY)).filter(|mib| (128..=1 << 20).contains(mib));
        if memory.is_none() {
            mistakes.push("--session-memory: give a whole number of MiB from 128 to 1048576".to_owned());
        }
        let is_ours = self.postgres_bin.is_some() || self.session_memory.is_some();
        if self.database_url.is_some() && (is_ours || !self.postgres_setting.is_empty()) {
            mistakes.push(
                "--database-url names an existing PostgreSQL server; --postgres-bin, --postgres-setting and --session-memory \
                 apply only to a server that standalone starts: remove one or the other"
                    .to_owned(),
            );
        }
        if self.database_url.is_some() && self.prepare.is_some() {
            mistakes.push(
                "--prepare runs a file as a superuser in the PostgreSQL that standalone starts, and --database-url names an existing \
                 server: run the file there with psql and leave --prepare out (`make run PREPARE=`)"
                    .to_owned(),
            );
        }
        for setting in self.postgres_setting.iter().filter(|setting| !setting.contains('=')) {
            mistakes.push(format!("--postgres-setting: {setting:?} does not have the form name=value"));
        }
        let mut public = |flag: &str, text: Option<String>| {
            let read = text.as_deref().map(url).transpose();
            read.map_err(|why| mistakes.push(format!("--{flag}: {why}"))).ok().flatten()
        };
        let urls = GivenUrls {
            data: public("api-url", self.api_url),
            auth: public("auth-url", self.auth_url),
            ddl: public("ddl-url", self.ddl_url),
        };
        match (database, resync, memory) {
            (Some(database), Some(resync), Some(session_memory)) if mistakes.is_empty() => {
                Ok(StandaloneSettings {
                    manifests: self.manifests,
                    state: self.state,
                    database,
                    postgres_bin: self.postgres_bin,
                    postgres_settings: self.postgres_setting,
                    session_memory,
                    prepare: self.prepare,
                    resync: Duration::from_secs(resync),
                    urls,
                    ready_file: self.ready_file,
                    webhook_ranges: Vec::new(),
                })
            }
            _ => Err(Mistakes(mistakes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: StandaloneFlags,
    }

    #[test]
    fn a_flag_is_taken_by_its_name_of_before() {
        for name in ["--resync-seconds", "--relook-seconds"] {
            let given = Program::try_parse_from(["program", "--manifests", "m", name, "7"]);
            assert_eq!(given.expect("a flag").flags.resync_seconds.as_deref(), Some("7"));
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let flags = StandaloneFlags {
            database_url: Some("mysql://x".into()),
            postgres_bin: Some("/bin".into()),
            postgres_setting: vec!["fsync".into()],
            session_memory: Some("1".into()),
            prepare: Some("prepare.sql".into()),
            resync_seconds: Some("0".into()),
            auth_url: Some("auth.example.com".into()),
            ..StandaloneFlags::default()
        };
        let Mistakes(lines) = flags.settings().expect_err("seven mistakes");
        let starts = [
            "--database-url: ",
            "--resync-seconds",
            "--session-memory",
            "--database-url names",
            "--prepare runs",
            "--postgres-setting",
            "--auth-url",
        ];
        assert_eq!(lines.len(), starts.len(), "{lines:?}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }
}
