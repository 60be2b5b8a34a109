//! `standalone`: settings, ports, state folder, PostgreSQL, installation and `--prepare`, in this order; then everything runs until
//! the end.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use rowgate_core::derive::Root;
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::control::installation::{Installation, InstallationError, Roots};
use rowgate_program::{entropy, signals};
use rowgate_reconcile::source::SourceError;
use rowgate_reconcile::source::dir::DirSource;
use tokio_util::sync::CancellationToken;

use crate::flags::StandaloneSettings;
use crate::live_keys::LiveKeys;
use crate::postgres::PostgresError;
use crate::prepare::{PrepareError, Script};
use crate::server::Server;
use crate::state::lock::{self, LockError};
use crate::state::{folder, roots};
use crate::terminal::narrator::{Addresses, Narrator};
use crate::terminal::say;

/// A data plane whose ports are bound.
pub trait DataPlane {
    /// The URL at which programs on this machine reach its API.
    fn url(&self) -> String;

    /// The address of the console, to open in a browser; `None`: it is off.
    fn console(&self) -> Option<String>;

    /// Serves the tenants of the control database at `control` until `shutdown`, and the console with `keys`.
    fn serve(
        self,
        control: Endpoint,
        root: Root,
        keys: LiveKeys,
        shutdown: CancellationToken,
    ) -> impl Future<Output = Result<(), DataPlaneError>>;
}

/// Why a data plane did not start, or ended before `shutdown`.
pub type DataPlaneError = Box<dyn Error + Send + Sync>;

/// Why standalone did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum StandaloneError {
    #[error("--manifests: the folder {} does not exist; create it and add a Tenant, or try --manifests examples/shop", .0.display())]
    NoManifests(PathBuf),
    #[error("--state: cannot create the folder {}; name a folder that you can write to", path.display())]
    State { path: PathBuf, source: io::Error },
    #[error("cannot read or write the root secret {}", path.display())]
    Root { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error(transparent)]
    Installation(#[from] InstallationError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error("--database-url: the data plane could not log in to this PostgreSQL: {0}, and start again")]
    Login(String),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    DataPlane(DataPlaneError),
}

/// Runs until SIGINT or SIGTERM. Errors go to standard error; the exit code is 2 if standalone could not start.
#[tokio::main]
pub async fn run<D: DataPlane>(
    settings: StandaloneSettings,
    bind: impl AsyncFnOnce() -> Result<D, DataPlaneError>,
) -> ExitCode {
    let shutdown = CancellationToken::new();
    let signals = tokio::spawn(stop_on_signal(shutdown.clone()));
    // the ports come first: a port in use is reported before anything is created
    let started = match bind().await {
        Ok(data_plane) => Running::start(settings, data_plane).await,
        Err(error) => Err(StandaloneError::DataPlane(error)),
    };
    let code = match started {
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
struct Running<D> {
    settings: StandaloneSettings,
    /// The state folder as the flag names it.
    state_flag: PathBuf,
    data_plane: D,
    server: Server,
    installation: Installation,
    source: DirSource,
    _lock: lock::StateLock,
}

impl<D: DataPlane> Running<D> {
    async fn start(mut settings: StandaloneSettings, data_plane: D) -> Result<Running<D>, StandaloneError> {
        if !settings.manifests.is_dir() {
            return Err(StandaloneError::NoManifests(settings.manifests));
        }
        let script = settings.prepare.as_deref().map(Script::read).transpose()?;
        let prepared = folder::prepare(&settings.state);
        let state_flag = settings.state.clone();
        settings.state =
            prepared.map_err(|source| StandaloneError::State { path: settings.state.clone(), source })?;
        let lock = lock::take(&settings.state)?;
        let source = DirSource::open(settings.manifests.clone(), settings.state.clone())?;
        let roots = Roots {
            operator: root(&settings.state.join("operator.root"))?,
            dataplane: root(&settings.state.join("dataplane.root"))?,
        };
        let server = Server::open(&settings).await?;
        let installation = server.installation(&roots, entropy::ulid()).await?;
        for line in &installation.advice {
            say(&format!("recommended, as a superuser: {line}"));
        }
        // after the installation: a script grants to its roles
        if let Some(script) = &script
            && let Err(error) = Box::pin(server.prepare(script)).await
        {
            if let Err(stuck) = server.stop().await {
                say(&stuck.to_string());
            }
            return Err(error.into());
        }
        Ok(Running { settings, state_flag, data_plane, server, installation, source, _lock: lock })
    }

    /// Serves until `shutdown`. PostgreSQL stops last: the data plane first removes its row from the control database.
    async fn until(self, shutdown: CancellationToken) -> Result<(), StandaloneError> {
        let (url, keys) = (self.data_plane.url(), LiveKeys::default());
        let narrator = Narrator::new(
            self.source,
            Addresses { api: url.clone(), console: self.data_plane.console() },
            self.settings.manifests.clone(),
            self.state_flag,
            self.settings.ready_file,
            keys.clone(),
        );
        let reconciling = rowgate_reconcile::run(
            Arc::new(narrator),
            self.installation.clone(),
            rowgate_reconcile::Settings {
                resync: self.settings.resync,
                urls: self.settings.urls.at(&url),
                webhook_ranges: self.settings.webhook_ranges.clone(),
                // who writes the folder administers everything here
                server_namespaces: rowgate_reconcile::ServerNamespaces::All,
            },
            shutdown.clone(),
        );
        let serving = self.data_plane.serve(
            self.installation.endpoint.clone(),
            self.installation.roots().dataplane.clone(),
            keys,
            shutdown.clone(),
        );
        // if one of them ends by itself, it stops the other
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
            rowgate_pg::connect::closed().await;
            ended.cancel();
            served
        };
        let (served, stopped) = tokio::join!(work, self.server.look_after(ended.clone()));
        served.map_err(StandaloneError::DataPlane)?;
        Ok(stopped?)
    }
}

/// The first signal stops everything in order; a second Ctrl-C exits immediately.
async fn stop_on_signal(shutdown: CancellationToken) {
    if let Err(error) = signals::asked_to_stop().await {
        tracing::error!(cause = %error, "cannot listen for signals");
        return;
    }
    say("stopping; press Ctrl-C again to exit immediately and leave PostgreSQL running");
    shutdown.cancel();
    // only Ctrl-C counts: supervisors send SIGTERM to the process and to its group, so it arrives twice
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}

fn root(path: &Path) -> Result<Root, StandaloneError> {
    roots::load_or_make(path).map_err(|source| StandaloneError::Root { path: path.to_owned(), source })
}

/// Prints the error with its causes; a cause that the text already quotes is not repeated.
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
