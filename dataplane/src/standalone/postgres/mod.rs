//! A PostgreSQL server of our own: found or downloaded binaries, a private folder and socket, no TCP.
//!
//! It runs in a process group of its own and survives our death; the next start takes it over.

pub mod binaries;
mod cluster;
mod place;
mod process;

use std::io;
use std::path::{Path, PathBuf};

use rowgate_pg::connect::login::{Endpoint, Login};

use crate::standalone::roots;
pub use binaries::{Binaries, NoPostgres};
pub use place::PlaceError;
use process::Process;

/// The login that `initdb` makes. Only standalone uses it, to found the installation.
pub const SUPERUSER: &str = "rowgate_superuser";

/// Why no PostgreSQL runs.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(transparent)]
    Missing(#[from] NoPostgres),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{} was made by PostgreSQL {data} and the PostgreSQL found is {found}: name a PostgreSQL {data} with \
         --postgres-bin, or start afresh in another folder with --state",
        path.display()
    )]
    OtherVersion { path: PathBuf, data: String, found: String },
    #[error("initdb could not make a cluster in {}: {output}", path.display())]
    Initdb { path: PathBuf, output: String },
    #[error("PostgreSQL ended while it was starting; the end of {}: {tail}", log.display())]
    Ended { log: PathBuf, tail: String },
    #[error("PostgreSQL was not ready after {seconds} s; see {}", log.display())]
    Slow { seconds: u64, log: PathBuf },
    #[error("PostgreSQL (process {pid}) did not stop within {seconds} s; it is left running")]
    Stuck { pid: u32, seconds: u64 },
}

/// Where the server of `state` listens, if it runs. Nothing is made or started.
pub async fn running(state: &Path) -> Option<Endpoint> {
    let process = Process::running(&place::data(state)).await?;
    Some(Endpoint::Unix { directory: process.socket().to_owned(), port: process.port() })
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Our state folder; it exists.
    pub state: PathBuf,
    /// The only folder to look for binaries in, where one was named.
    pub bin: Option<PathBuf>,
    /// Further server settings, in `name=value` form; the last one of a name counts.
    pub settings: Vec<String>,
    /// MiB of memory of its own that each of its processes may take: the statement that would take more fails (53200), and no
    /// other one. A server that runs already keeps what it was started with.
    pub session_memory: u32,
}

/// MiB that [`Wish::session_memory`] is where nobody says otherwise.
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
    /// Starts the server of `wish.state`, making its cluster on the first start, or takes over the one that runs.
    pub async fn start(
        wish: &Wish,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Postgres, PostgresError> {
        let place = place::Place::of(&wish.state, progress)?;
        let root = roots::load_or_make(&wish.state.join("superuser.root"))
            .map_err(|source| io_error("read or write", &wish.state.join("superuser.root"), source))?;
        // The cluster has no system identifier before initdb; a fixed label stands in its stead.
        let password = root.password("bootstrap", SUPERUSER, 1);

        let (process, taken_over) = match Process::running(&place.data()).await {
            Some(process) => {
                progress(format!("PostgreSQL still runs (process {}); going on with it", process.pid()));
                (process, true)
            }
            None => {
                let binaries = binaries::find(wish.bin.as_deref())?;
                let binaries = place.executable(binaries, progress)?;
                cluster::make_if_absent(&place, &binaries, &password, progress)?;
                (Process::start(&place, &binaries, wish, progress).await?, false)
            }
        };
        let superuser = Login {
            endpoint: Endpoint::Unix { directory: process.socket().to_owned(), port: process.port() },
            database: "postgres".to_owned(),
            role: SUPERUSER.to_owned(),
            password,
        };
        Ok(Postgres { superuser, process, data: place.data(), log: place.log, taken_over })
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

    /// Whether the server ran before we came.
    #[must_use]
    pub fn taken_over(&self) -> bool {
        self.taken_over
    }

    /// Whether the server's process is gone.
    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Ends the server: sessions are cut, everything committed is kept.
    pub async fn stop(self) -> Result<(), PostgresError> {
        self.process.stop().await
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> PostgresError {
    PostgresError::Io { doing, path: path.to_owned(), source }
}
