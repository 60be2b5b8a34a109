//! One after the other: settings, ports, state folder, PostgreSQL, installation; then everything at once until the end.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use rowgate_core::name::Ulid;
use rowgate_pg::control::installation::{Installation, InstallationError, Roots};
use rowgate_program::settings::Mistakes;
use rowgate_program::{log, signals};
use rowgate_reconcile::source::SourceError;
use rowgate_reconcile::source::dir::DirSource;
use tokio_util::sync::CancellationToken;

use super::flags::{StandaloneFlags, StandaloneSettings};
use super::lock::{self, LockError};
use super::narrator::Narrator;
use super::postgres::PostgresError;
use super::server::Server;
use super::{roots, say, state};
use crate::app::{self, AppConfig, AppError, Listeners};

/// Why standalone did not come up, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum StandaloneError {
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    #[error("--manifests: there is no folder {}; make it and put a Tenant there, or try --manifests examples/shop", .0.display())]
    NoManifests(PathBuf),
    #[error("--state: cannot make the folder {}; name one that can be written", path.display())]
    State { path: PathBuf, source: io::Error },
    #[error("cannot read or write the root secret {}", path.display())]
    Root { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error(transparent)]
    Installation(#[from] InstallationError),
    #[error("--database-url: nothing could be served with this PostgreSQL: {0}, and start again")]
    Login(String),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    App(#[from] AppError),
}

/// Runs until SIGINT or SIGTERM, and says on standard error what went wrong: exit code 2 when it could not begin.
#[tokio::main]
pub async fn run(flags: StandaloneFlags) -> ExitCode {
    let settings = match flags.settings() {
        Ok(settings) => settings,
        Err(mistakes) => return failed(&mistakes.into(), 2),
    };
    log::start(settings.server.log_format);
    let shutdown = CancellationToken::new();
    let signals = tokio::spawn(stop_on_signal(shutdown.clone()));
    let code = match Running::start(settings).await {
        Err(error) => failed(&error, 2),
        Ok(running) => match Box::pin(running.until(shutdown)).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error, 1),
        },
    };
    signals.abort();
    code
}

/// Everything that is prepared before anything is served.
struct Running {
    settings: StandaloneSettings,
    /// The state folder as it was given.
    state_flag: PathBuf,
    listeners: Listeners,
    server: Server,
    installation: Installation,
    source: DirSource,
    _lock: lock::StateLock,
}

impl Running {
    async fn start(mut settings: StandaloneSettings) -> Result<Running, StandaloneError> {
        let listeners = Listeners::bind(&settings.server).await?;
        if !settings.manifests.is_dir() {
            return Err(StandaloneError::NoManifests(settings.manifests));
        }
        let made = state::prepare(&settings.state);
        let state_flag = settings.state.clone();
        settings.state =
            made.map_err(|source| StandaloneError::State { path: settings.state.clone(), source })?;
        let lock = lock::take(&settings.state)?;
        let source = DirSource::open(settings.manifests.clone(), settings.state.clone())?;
        let roots = Roots {
            operator: root(&settings.state.join("operator.root"))?,
            dataplane: root(&settings.state.join("dataplane.root"))?,
        };
        let server = Server::open(&settings).await?;
        let installation = server.installation(&roots, new_id()).await?;
        for line in &installation.advice {
            say(&format!("a DBA may run: {line}"));
        }
        Ok(Running { settings, state_flag, listeners, server, installation, source, _lock: lock })
    }

    /// Serves until `shutdown`. PostgreSQL ends last: the replica takes its row out of the control database first.
    async fn until(self, shutdown: CancellationToken) -> Result<(), StandaloneError> {
        let url = url(&self.listeners);
        let narrator = Narrator::new(
            self.source,
            url.clone(),
            self.settings.manifests.clone(),
            self.state_flag,
            self.settings.ready_file,
        );
        let reconciling = rowgate_reconcile::run(
            Arc::new(narrator),
            self.installation.clone(),
            rowgate_reconcile::Settings { resync: self.settings.relook, api_url: url },
            shutdown.clone(),
        );
        let serving = app::run(
            AppConfig {
                listeners: self.listeners,
                control: self.installation.endpoint.clone(),
                root: self.installation.roots().dataplane.clone(),
                trusted_proxies: self.settings.server.trusted_proxies.clone(),
                lane: self.settings.server.lane,
                calls: self.settings.server.calls,
                per_server: self.settings.server.per_server,
                pooler: None,
                body_memory: self.settings.server.body_memory,
                client_timeout: self.settings.server.client_timeout,
                drain: self.settings.server.drain,
                last_used_interval: self.settings.server.last_used_interval,
            },
            shutdown.clone(),
        );
        // The one that ends by itself takes the other along.
        let ended = CancellationToken::new();
        let work = async {
            let (served, ()) = tokio::join!(
                async {
                    let served = serving.await;
                    shutdown.cancel();
                    served
                },
                async {
                    reconciling.await;
                    shutdown.cancel();
                },
            );
            ended.cancel();
            served
        };
        let (served, stopped) = tokio::join!(work, self.server.look_after(ended.clone()));
        served?;
        Ok(stopped?)
    }
}

/// The first signal ends everything in order, the second at once.
async fn stop_on_signal(shutdown: CancellationToken) {
    if let Err(error) = signals::asked_to_stop().await {
        tracing::error!(cause = %error, "signals cannot be awaited");
        return;
    }
    say("stopping; Ctrl-C again leaves at once, with PostgreSQL running on");
    shutdown.cancel();
    // only a person at the keyboard is impatient: supervisors send SIGTERM to the group and to us, twice
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}

/// Where a program on this machine reaches the API.
fn url(listeners: &Listeners) -> String {
    let mut address = listeners.api.local_addr().expect("a bound socket has an address");
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!("http://{address}")
}

fn root(path: &Path) -> Result<rowgate_core::derive::Root, StandaloneError> {
    roots::load_or_make(path).map_err(|source| StandaloneError::Root { path: path.to_owned(), source })
}

/// The error with its causes; one that already quotes its cause does not say it twice.
fn failed(error: &StandaloneError, code: u8) -> ExitCode {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    say(&text);
    ExitCode::from(code)
}

/// Time and chance enter here.
fn new_id() -> Ulid {
    let unix_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
    Ulid::from_parts(unix_ms, rand::random())
}
