//! From settings to the end: watch, take the Lease, open the installation, reconcile.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use rowgate_core::backoff::Backoff;
use rowgate_pg::connect;
use rowgate_pg::control::installation::{self, Installation, InstallationError};
use rowgate_program::signals;
use rowgate_reconcile::Ended;
use tokio::net::TcpListener;
use tokio::sync::watch as watch_channel;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::{self, ConnectError, Progress};
use crate::config::Settings;
use crate::health::{self, Health};
use crate::lease::{Leadership, Lost};
use crate::meter::Meter;
use crate::roots::{self, RootsError};
use crate::source::KubeSource;
use crate::tenure::Tenure;
use rowgate_reconcile::entropy;

/// After PostgreSQL or the API server did not answer, and what it grows to.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// Why the operator did not begin, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("--health-address: cannot listen at {address} ({source}); is another program there?")]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error(
        "another operator, or standalone, has taken over this installation; this operator exits so that only one works"
    )]
    Replaced,
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error(transparent)]
    Installation(#[from] InstallationError),
}

/// Works until SIGINT or SIGTERM.
///
/// # Errors
/// When it cannot begin, or another operator leads: the process is to end at once.
pub async fn run(settings: Settings) -> Result<(), RunError> {
    let address = settings.health;
    let listener = TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, source })?;
    let (progress, tenure) = (Progress::default(), Tenure::default());
    let (client, namespace) = api::connect(&progress, &tenure, settings.watch).await?;
    let namespace = settings.own_namespace.clone().unwrap_or(namespace);
    let meter = Arc::new(Meter::default());
    // what is under way in them is dropped with it
    let mut tasks = JoinSet::new();
    let source = KubeSource::start(
        client.clone(),
        &settings.namespaces,
        &settings.identity,
        settings.watch,
        progress.clone(),
        meter.clone(),
        &mut tasks,
    );
    let leads = watch_channel::Sender::new(false);
    let watch = settings.watch;
    let health = Health { source: source.clone(), progress, watch, meter, leads: leads.subscribe() };
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, health::routes(health)).await {
            tracing::error!(cause = %error, "the health endpoint stopped");
        }
    });
    tracing::info!(
        namespaces = settings.namespaces.join(","),
        identity = settings.identity,
        lease = format!("{namespace}/{}", settings.lease_name),
        "watching"
    );

    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tasks.spawn(async move {
        match signals::asked_to_stop().await {
            Ok(()) => stop.cancel(),
            Err(error) => tracing::error!(cause = %error, "cannot wait for signals"),
        }
    });
    let mut leadership =
        Leadership::new(client.clone(), &namespace, &settings.lease_name, &settings.identity, tenure);
    if shutdown.run_until_cancelled(Box::pin(leadership.acquire())).await.is_none() {
        return Ok(());
    }
    leads.send_replace(true);
    tracing::info!(identity = settings.identity, "this operator leads");
    let work = lead(&client, &namespace, &settings, source, shutdown.clone());
    let ended = tokio::select! {
        // a leader that is none any more must not even finish its sentence
        biased;
        lost = leadership.keep() => return Err(lost.into()),
        ended = work => ended,
    };
    leads.send_replace(false);
    leadership.release().await;
    ended
}

/// What only the leader does, until `shutdown`.
async fn lead(
    client: &Client,
    namespace: &str,
    settings: &Settings,
    source: Arc<KubeSource>,
    shutdown: CancellationToken,
) -> Result<(), RunError> {
    let Some(installation) = shutdown.run_until_cancelled(Box::pin(open(client, namespace, settings))).await
    else {
        return Ok(());
    };
    let installation = installation?;
    for line in &installation.advice {
        tracing::warn!("a DBA may run: {line}");
    }
    tracing::info!(installation = %installation.id, database = %installation.endpoint, "reconciling");
    let reconciling = rowgate_reconcile::Settings {
        resync: settings.resync,
        urls: settings.urls.clone(),
        webhook_ranges: settings.webhook_ranges.clone(),
        server_namespaces: settings.server_namespaces.clone(),
    };
    match Box::pin(rowgate_reconcile::run(source, installation, reconciling, shutdown)).await {
        Ended::Shutdown => {
            // what a pass left running is ended while this operator still leads
            connect::closed().await;
            Ok(())
        }
        Ended::Replaced => Err(RunError::Replaced),
    }
}

/// The roots and the installation. What does not answer is asked again; what is wrong is an error.
async fn open(client: &Client, namespace: &str, settings: &Settings) -> Result<Installation, RunError> {
    let mut backoff = Backoff::new(INITIAL_BACKOFF);
    loop {
        let error = match try_open(client, namespace, settings).await {
            Ok(installation) => return Ok(installation),
            Err(error) => error,
        };
        if !matches!(
            error,
            RunError::Roots(RootsError::Source(_)) | RunError::Installation(InstallationError::Pg(_))
        ) {
            return Err(error);
        }
        tracing::warn!(%error, "cannot start yet; retrying");
        tokio::time::sleep(backoff.pause(MAX_BACKOFF, entropy::between(0.0, 1.0))).await;
    }
}

async fn try_open(client: &Client, namespace: &str, settings: &Settings) -> Result<Installation, RunError> {
    let roots =
        roots::load_or_make(client, namespace, &settings.root_secret, &settings.dataplane_root_secret)
            .await?;
    Ok(installation::open(settings.database.clone(), &roots, entropy::ulid()).await?)
}
