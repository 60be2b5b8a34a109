//! Starts a PostgreSQL server from binaries of the system or of the cache, with a private folder and socket and without TCP.
//!
//! The server runs in its own process group and outlives a crash of standalone; the next start takes it over.

pub mod binaries;
mod cluster;
mod layout;
mod process;

use std::io;
use std::path::{Path, PathBuf};

use rowgate_pg::connect::login::{Endpoint, Login};

use crate::prepare::{PrepareError, Script};
use crate::state::roots;
pub use binaries::{Binaries, NoPostgres};
pub use layout::LayoutError;
use process::Process;

/// The login that `initdb` creates. Only standalone uses it, to create the installation.
pub const SUPERUSER: &str = "rowgate_superuser";

/// Why PostgreSQL could not be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(transparent)]
    Missing(#[from] NoPostgres),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{} was created by PostgreSQL {data}, but the PostgreSQL found is version {found}; name a PostgreSQL {data} with \
         --postgres-bin, or start with an empty state folder (--state)",
        path.display()
    )]
    OtherVersion { path: PathBuf, data: String, found: String },
    #[error("initdb failed to create a database cluster in {}: {output}", path.display())]
    Initdb { path: PathBuf, output: String },
    #[error("PostgreSQL exited during startup; last lines of {}: {tail}", log.display())]
    Ended { log: PathBuf, tail: String },
    #[error("PostgreSQL was not ready after {seconds} s; see {}", log.display())]
    Slow { seconds: u64, log: PathBuf },
    #[error("PostgreSQL (process {pid}) did not stop within {seconds} s and is still running")]
    Stuck { pid: u32, seconds: u64 },
}

/// Where the server of `state` listens, if it runs. Creates and starts nothing.
pub async fn running(state: &Path) -> Option<Endpoint> {
    let process = Process::running(&layout::data(state)).await?;
    Some(Endpoint::Unix { directory: process.socket().to_owned(), port: process.port() })
}

/// What to start, and with which settings.
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// The state folder; it exists.
    pub state: PathBuf,
    /// The only folder to search for binaries, if one was named.
    pub bin: Option<PathBuf>,
    /// Further server settings in the form `name=value`; the last one of a name applies.
    pub settings: Vec<String>,
    /// Memory limit of each server process, in MiB: only the statement that exceeds it fails (53200). A server that already
    /// runs keeps the limit it was started with.
    pub session_memory: u32,
}

/// MiB that [`PostgresConfig::session_memory`] defaults to.
pub const SESSION_MEMORY: u32 = 1024;

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    superuser: Login,
    process: Process,
    data: PathBuf,
    log: PathBuf,
    taken_over: bool,
}

impl Postgres {
    /// Starts the server of `config.state`, or takes over the one that runs; the first start creates the cluster.
    pub async fn start(
        config: &PostgresConfig,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Postgres, PostgresError> {
        let layout = layout::Layout::of(&config.state, progress)?;
        let root = roots::load_or_make(&config.state.join("superuser.root"))
            .map_err(|source| io_error("read or write", &config.state.join("superuser.root"), source))?;
        // The cluster has no system identifier before initdb; a fixed label takes its place.
        let password = root.password("bootstrap", SUPERUSER, 1);

        let (process, taken_over) = match Process::running(&layout.data()).await {
            Some(process) => {
                progress(format!("PostgreSQL is still running (process {}); using it", process.pid()));
                (process, true)
            }
            None => {
                let binaries = binaries::find(config.bin.as_deref())?;
                let binaries = layout.executable(binaries, progress)?;
                cluster::make_if_absent(&layout, &binaries, &password, progress)?;
                (Process::start(&layout, &binaries, config, progress).await?, false)
            }
        };
        let superuser = Login {
            endpoint: Endpoint::Unix { directory: process.socket().to_owned(), port: process.port() },
            database: "postgres".to_owned(),
            role: SUPERUSER.to_owned(),
            password,
        };
        Ok(Postgres { superuser, process, data: layout.data(), log: layout.log, taken_over })
    }

    /// The superuser on database `postgres`.
    #[must_use]
    pub fn superuser(&self) -> &Login {
        &self.superuser
    }

    /// The data folder.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Runs a script as the superuser, unless it ran in this cluster before.
    pub async fn prepare(&self, script: &Script) -> Result<(), PrepareError> {
        // beside the data: where those are gone, so is the record
        script.run_once(&self.superuser, &self.data.with_file_name("prepared.json")).await
    }

    /// The server's log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The postmaster's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether the server ran before this start.
    #[must_use]
    pub fn taken_over(&self) -> bool {
        self.taken_over
    }

    /// Whether the server's process is gone.
    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Stops the server: sessions are disconnected, everything committed is kept.
    pub async fn stop(self) -> Result<(), PostgresError> {
        self.process.stop().await
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> PostgresError {
    PostgresError::Io { doing, path: path.to_owned(), source }
}
