//! One replica: everything that runs is started here, stopped here, and awaited here. Statements run in tasks of the tenants'
//! pools, so that they outlive callers that go away; the pools are closed here.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rowgate_core::derive::{CursorKey, Pepper, Root};
use rowgate_core::webhook::secret::SealingKey;
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::control::installation::{self, InstallationError};
use rowgate_pg::wire::QueryLimits;
use rowgate_program::entropy;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::console::Console;
use crate::api::events::shared::SharedReads;
use crate::api::graphql::persisted::PersistedOperations;
use crate::api::graphql::schema::cache::SchemaCache;
use crate::api::graphql::websocket::Sockets;
use crate::api::openapi::cache::DocumentCache;
use crate::api::surface::Surfaces;
use crate::api::{probes, service};
use crate::auth::token_keys::TokenKeys;
use crate::config::ServerSettings;
use crate::delivery;
use crate::delivery::facts::SubscriptionFacts;
use crate::delivery::sender::Sender;
use crate::export_jobs::storage::StorageError;
use crate::export_jobs::{self, Exports};
use crate::server::body_memory::BodyMemory;
use crate::server::listen;
use crate::server::metrics::{RequestMetrics, UnparsedRequests};
use crate::server::proxies::TrustedProxies;
use crate::tenants::registry::{PoolConfig, TenantRegistry};
use crate::tenants::replica::Replica;
use crate::tenants::revoked_sessions;

/// What still runs this long after the last request has ended is left to PostgreSQL, which sees that its client is gone.
const POOL_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What a replica needs to run. Its ports are bound already, so that a busy port is reported before anything starts.
#[derive(Debug)]
pub struct AppConfig {
    pub listeners: Listeners,
    pub settings: ServerSettings,
    pub control: Endpoint,
    pub root: Root,
    /// PgBouncer before the tenants' databases, in transaction mode.
    pub pooler: Option<Endpoint>,
    /// In standalone mode only.
    pub console: Option<Console>,
}

/// The two ports.
#[derive(Debug)]
pub struct Listeners {
    pub api: TcpListener,
    pub probes: TcpListener,
}

/// What every request handler reaches.
pub struct App {
    pub tenants: Arc<TenantRegistry>,
    pub pepper: Pepper,
    pub cursor_key: CursorKey,
    pub token_keys: TokenKeys,
    pub trusted_proxies: TrustedProxies,
    /// Of requests that belong to no tenant.
    pub metrics: RequestMetrics,
    /// What no handler saw.
    pub unparsed: Arc<UnparsedRequests>,
    /// Who holds how much of the memory for request bodies.
    pub body_memory: Arc<BodyMemory>,
    pub documents: DocumentCache,
    pub schemas: SchemaCache,
    pub persisted: PersistedOperations,
    /// In standalone mode only.
    pub console: Option<Console>,
    pub sockets: Sockets,
    /// Of streams of events.
    pub(crate) shared_reads: Arc<SharedReads>,
    /// Sends webhooks.
    pub sender: Sender,
    /// Opens the secrets that sign them.
    pub sealing_key: SealingKey,
    pub subscription_facts: SubscriptionFacts,
    /// `None`: no folder for them is set.
    pub exports: Option<Arc<Exports>>,
    /// What this replica serves.
    pub surfaces: Surfaces,
    /// Cancelled when draining begins.
    pub draining: CancellationToken,
}

/// Where tasks are started, so that the end of the process can wait for each of them.
#[derive(Debug, Clone, Default)]
pub struct Tasks(TaskTracker);

/// Why a replica did not run, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(
        "--{flag}: cannot listen on {address}: {source}; stop what uses it, or give --{flag} another port"
    )]
    Listen {
        flag: &'static str,
        address: std::net::SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Exports(#[from] StorageError),
    #[error(transparent)]
    Installation(#[from] InstallationError),
}

impl Listeners {
    /// Binds both ports; the error names the flag of the one that is taken.
    pub async fn bind(settings: &ServerSettings) -> Result<Listeners, AppError> {
        let api = bind("listen", settings.listen).await?;
        let probes = bind("probes", settings.probes).await?;
        Ok(Listeners { api, probes })
    }
}

impl Tasks {
    /// Starts `work`. It must end by itself within seconds of the token that it listens to.
    pub fn start<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.0.spawn(work)
    }

    async fn ended(&self) {
        self.0.close();
        self.0.wait().await;
    }
}

/// Serves until `shutdown` is cancelled; then `/readyz` is false, requests in flight end, and the replica's row goes.
pub async fn run(config: AppConfig, shutdown: CancellationToken) -> Result<(), AppError> {
    let AppConfig { listeners, settings, control, root, pooler, console } = config;
    let (background, connections) = (Tasks::default(), Tasks::default());
    // `cut` ends requests that outlast the drain; `done` ends what must outlive them.
    let (cut, done) = (CancellationToken::new(), CancellationToken::new());
    let id = entropy::ulid();
    let pools = PoolConfig {
        replica: id.clone(),
        request_limits: settings.request_limits,
        calls: settings.calls,
        queries: QueryLimits::new(settings.calls.size, settings.calls.queue),
        per_server: settings.per_server,
        pooler,
    };
    let tenants = Arc::new(TenantRegistry::new(pools, background.clone()));
    let exports = match &settings.exports {
        Some(place) => {
            let login = installation::control_login(&control, &root);
            let share = tenants.share(&control);
            let link_key = root.export_link_key();
            let place = (place, settings.exports_max_rows);
            Some(Arc::new(Exports::new(place, link_key, id.clone(), (login, &share), background.clone())?))
        }
        None => None,
    };
    let app = Arc::new(App {
        tenants,
        exports,
        pepper: root.pepper(),
        cursor_key: root.cursor_key(),
        token_keys: TokenKeys::new(root.clone()),
        trusted_proxies: settings.trusted_proxies,
        metrics: RequestMetrics::default(),
        unparsed: Arc::default(),
        body_memory: BodyMemory::new(settings.body_memory),
        schemas: SchemaCache::default(),
        persisted: PersistedOperations::default(),
        documents: DocumentCache::new(settings.surfaces),
        console,
        sockets: Sockets::new(connections.clone(), cut.clone()),
        shared_reads: Arc::default(),
        sender: Sender::new(settings.webhook_ranges),
        sealing_key: root.sealing_key(),
        subscription_facts: SubscriptionFacts::default(),
        surfaces: settings.surfaces,
        draining: shutdown.clone(),
    });
    let address = listeners.api.local_addr().map(|at| at.to_string()).unwrap_or_default();
    tracing::info!(api = address, "listening");
    let api = service::Api::new(app.clone());
    let api = listen::serve(
        listeners.api,
        move |peer| api.service(peer),
        connections.clone(),
        settings.client_timeout,
        app.unparsed.clone(),
        listen::ShutdownSignals { drain: shutdown.clone(), cut: cut.clone() },
    );
    let probes = probes::service(app.clone());
    let looks = listen::serve(
        listeners.probes,
        move |_| probes.clone(),
        background.clone(),
        settings.client_timeout,
        Arc::default(),
        listen::ShutdownSignals { drain: done.clone(), cut: done.clone() },
    );
    let accepting = background.start(api);
    background.start(looks);
    let replica = Replica::new(id, address, control, root, settings.last_used_interval);
    background.start(revoked_sessions::follow(app.clone(), background.clone(), done.clone()));
    background.start(delivery::follow::run(app.clone(), background.clone(), shutdown.clone()));
    background.start(export_jobs::follow::run(app.clone(), background.clone(), shutdown.clone()));
    let following = background.start(replica.follow(app.clone(), background.clone(), shutdown.clone()));

    // It ends early only where no later try can help, such as with another installation's root.
    let followed = following.await.expect("the loop neither panics nor is aborted");
    shutdown.cancel();
    accepting.await.expect("accepting neither panics nor is aborted");
    if tokio::time::timeout(settings.drain, connections.ended()).await.is_err() {
        tracing::warn!("requests outlasted --drain-seconds and were cut off");
    }
    cut.cancel();
    connections.ended().await;
    done.cancel();
    background.ended().await;
    let tenants = app.tenants.sorted();
    let closing = join_all(tenants.iter().map(|tenant| tenant.end()));
    if tokio::time::timeout(POOL_CLOSE_TIMEOUT, closing).await.is_err() {
        tracing::warn!("statements of disconnected clients are still running; their connections are closed");
    }
    followed?.end(&app).await;
    tracing::info!("stopped");
    Ok(())
}

async fn bind(flag: &'static str, address: std::net::SocketAddr) -> Result<TcpListener, AppError> {
    TcpListener::bind(address).await.map_err(|source| AppError::Listen { flag, address, source })
}
