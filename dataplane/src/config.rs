//! Settings: from a flag, else from `ROWGATE_*`, else from a file. All mistakes are reported at once, each with its flag.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use rowgate_core::derive::Root;
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::connect::tls::Tls;
use rowgate_pg::wire::{CallLimits, Limits};
use rowgate_program::log::{self, LogFormat};
use rowgate_program::settings::{Given, Mistakes, address, between, endpoint};
use rowgate_program::tls;

use crate::api::surface::Surfaces;
use crate::export_jobs::MAX_ROWS;
use crate::export_jobs::storage::StorageConfig;
use crate::export_jobs::storage::location::Location;
use crate::server::proxies::TrustedProxies;

/// The flags that `serve` and `standalone` share, as texts, so that all mistakes can be reported together.
#[derive(Debug, Clone, Default, Args)]
pub struct ServerFlags {
    /// Address on which the API listens [default: 127.0.0.1:8080] [example: 0.0.0.0:8080]
    #[arg(long, env = "ROWGATE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Address on which /livez, /readyz and /metrics listen [default: 127.0.0.1:8081] [example: 0.0.0.0:8081]
    #[arg(long, env = "ROWGATE_PROBES", value_name = "ADDRESS")]
    pub probes: Option<String>,
    /// Connections to each tenant's database, shared by its requests [default: 8] [example: 16]
    #[arg(long, env = "ROWGATE_CONNECTIONS_PER_TENANT", value_name = "NUMBER")]
    pub connections_per_tenant: Option<String>,
    /// Connections to each PostgreSQL server, shared by all tenants for requests, calls, key lookups and catalogs; the sum
    /// over all replicas should leave part of max_connections to other clients [default: 40] [example: 200]
    #[arg(long, env = "ROWGATE_CONNECTIONS_PER_SERVER", value_name = "NUMBER")]
    pub connections_per_server: Option<String>,
    /// Concurrent calls of functions and procedures for each tenant, each on a connection of its own; one key gets at most one
    /// fewer [default: 4] [example: 8]
    #[arg(long, env = "ROWGATE_CALLS_PER_TENANT", value_name = "NUMBER")]
    pub calls_per_tenant: Option<String>,
    /// Proxies whose X-Forwarded-Proto and X-Forwarded-Host headers are trusted, as networks or addresses separated by commas;
    /// each proxy must overwrite the values that clients send [default: none] [example: 10.0.0.0/8,fd00::/8]
    #[arg(long, env = "ROWGATE_TRUSTED_PROXIES", value_name = "NETWORKS")]
    pub trusted_proxies: Option<String>,
    /// Surfaces that this replica serves, separated by commas: data (rows, /auth/...), auth (tokens for keys), ddl
    /// (/api/ddl/...); at every other URL there is nothing [default: data,auth,ddl] [example: data]
    #[arg(long, env = "ROWGATE_SURFACES", value_name = "NAMES")]
    pub surfaces: Option<String>,
    /// Requests of each tenant that may wait for one of its connections; further requests get 503 immediately
    /// [default: 256] [example: 1000]
    #[arg(long, env = "ROWGATE_QUEUE_PER_TENANT", value_name = "NUMBER")]
    pub queue_per_tenant: Option<String>,
    /// Memory of the replica, in MiB, for the bodies of requests in progress and the statements built from them. One key gets
    /// at most a quarter of it and one tenant half, less while others use much; further bodies get 429 or 503 immediately
    /// [default: 64] [example: 256]
    #[arg(long, env = "ROWGATE_BODY_MEMORY_MIB", value_name = "MIB")]
    pub body_memory_mib: Option<String>,
    /// Time after which a client that reads nothing of its response is disconnected [default: 10] [example: 30]
    #[arg(long, env = "ROWGATE_CLIENT_TIMEOUT_SECONDS", value_name = "SECONDS")]
    pub client_timeout_seconds: Option<String>,
    /// Networks to which webhooks may be sent beside the public internet, separated by commas; link-local addresses are refused
    /// always [default: none] [example: 10.20.0.0/16]
    #[arg(long, env = "ROWGATE_WEBHOOK_RANGES", value_name = "NETWORKS")]
    pub webhook_ranges: Option<String>,
    /// Folder for the files of exports, of this installation alone; every replica must have the same one
    /// [default: none, exports are off; of standalone: exports in the state folder] [example: /var/lib/rowgate/exports]
    #[arg(long, env = "ROWGATE_EXPORTS_DIR", value_name = "FOLDER")]
    pub exports_dir: Option<String>,
    /// Object storage for the files of exports, in place of a folder: a bucket, and a path in it that this installation alone uses,
    /// as s3://, gs:// or az://; credentials come from the environment, as the provider's own tools read them
    /// [default: none] [example: s3://exports/rowgate]
    #[arg(long, env = "ROWGATE_EXPORTS_URL", value_name = "URL")]
    pub exports_url: Option<String>,
    /// Rows of one export; what is beyond them is left out, and the export says that it is capped
    /// [default: 50000000] [example: 1000000]
    #[arg(long, env = "ROWGATE_EXPORTS_MAX_ROWS", value_name = "NUMBER")]
    pub exports_max_rows: Option<String>,
    /// Format of log lines: json or text [default: text on a terminal, else json]
    #[arg(long, env = "ROWGATE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Time that requests in progress have to finish after SIGTERM [default: 30] [example: 5]
    #[arg(long, env = "ROWGATE_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<String>,
    /// Interval at which the time of each key's last use is recorded, for lastUsedAt in its status [default: 60] [example: 300]
    #[arg(long, env = "ROWGATE_LAST_USED_SECONDS", value_name = "SECONDS")]
    pub last_used_seconds: Option<String>,
}

/// The flags of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeFlags {
    #[command(flatten)]
    pub server: ServerFlags,
    #[command(flatten)]
    pub control: ControlFlags,
    /// PgBouncer (1.18 or newer, pool_mode = transaction) between the data plane and the tenants' databases, as host:port or
    /// the folder of its socket with the port; key lookups and --control connect to PostgreSQL directly
    /// [default: none] [example: pgbouncer.internal:6432]
    #[arg(long, env = "ROWGATE_POOLER", value_name = "HOST:PORT|FOLDER[:PORT]")]
    pub pooler: Option<String>,
    /// YAML file with any of these settings, under the names of the flags: `drain-seconds: 5` [example: /etc/rowgate.yaml]
    #[arg(long, env = "ROWGATE_CONFIG", value_name = "PATH")]
    pub config: Option<PathBuf>,
}

/// The flags that name an installation, as a data plane knows it.
#[derive(Debug, Clone, Default, Args)]
pub struct ControlFlags {
    /// PostgreSQL server that holds the control database: host:port, or the folder of its socket with the port
    /// [example: db.internal:5432] [example: /run/postgresql:5432]
    #[arg(long, env = "ROWGATE_CONTROL", value_name = "HOST:PORT|FOLDER[:PORT]")]
    pub control: Option<String>,
    /// File with the data plane's root secret, 64 hexadecimal digits, the same on every replica
    /// [example: /etc/rowgate/dataplane.root]
    #[arg(long, env = "ROWGATE_ROOT_FILE", value_name = "PATH")]
    pub root_file: Option<String>,
    /// TLS for connections to PostgreSQL by host and port: verify-full, or disable for a server on this machine
    /// [default: verify-full]
    #[arg(long, env = "ROWGATE_DATABASE_TLS", value_name = "MODE")]
    pub database_tls: Option<String>,
    /// PEM file with the certificate authority of PostgreSQL's certificate [default: those that the system trusts]
    /// [example: /etc/rowgate/postgres-ca.pem]
    #[arg(long, env = "ROWGATE_DATABASE_CA", value_name = "PATH")]
    pub database_ca: Option<String>,
}

/// What `serve` and `standalone` share, checked.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub listen: SocketAddr,
    pub probes: SocketAddr,
    pub trusted_proxies: TrustedProxies,
    pub surfaces: Surfaces,
    /// To which webhooks may be sent, beside the public internet.
    pub webhook_ranges: Vec<IpNet>,
    /// `None`: exports are off.
    pub exports: Option<StorageConfig>,
    /// Of one export.
    pub exports_max_rows: usize,
    /// Of each tenant's database.
    pub request_limits: Limits,
    /// Of each tenant's functions and procedures.
    pub calls: CallLimits,
    /// Bytes of memory for the bodies of requests in progress, of all tenants together.
    pub body_memory: usize,
    /// The most connections to one server, of all tenants together.
    pub per_server: usize,
    /// How long a client may take nothing of its answer.
    pub client_timeout: Duration,
    pub log_format: LogFormat,
    /// How long requests in progress may take once shutdown began.
    pub drain: Duration,
    /// How often the times at which keys were last used are saved.
    pub last_used_interval: Duration,
}

/// What `serve` needs, checked.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub server: ServerSettings,
    pub control: ControlSettings,
    /// The pooler before the tenants' databases; its TLS is that of the control database.
    pub pooler: Option<Endpoint>,
}

/// Which installation, checked.
#[derive(Debug, Clone)]
pub struct ControlSettings {
    pub endpoint: Endpoint,
    pub root: Root,
}

impl ServeFlags {
    /// Checks all settings; an unknown name in the file is a mistake too.
    pub fn settings(&self) -> Result<ServeSettings, Mistakes> {
        let mut given = Given::new(self.config.as_deref());
        let server = self.server.read(&mut given);
        let tls = self.control.tls(&mut given);
        let control = self.control.read(&mut given, tls.clone());
        let pooler = given.or("pooler", self.pooler.as_deref(), "", |text| match text {
            "" => Ok(None),
            text => tls::with(endpoint(text)?, tls.clone().unwrap_or_default()).map(Some),
        });
        given.finish()?;
        Ok(ServeSettings {
            server: server.expect("no mistake was noted"),
            control: control.expect("no mistake was noted"),
            pooler: pooler.expect("no mistake was noted"),
        })
    }
}

impl ControlFlags {
    /// Checks these settings for a command that reads no file.
    pub fn settings(&self) -> Result<ControlSettings, Mistakes> {
        let mut given = Given::new(None);
        let tls = self.tls(&mut given);
        let control = self.read(&mut given, tls);
        given.finish()?;
        Ok(control.expect("no mistake was noted"))
    }

    /// Reads how the server's certificate is verified; `None` if a mistake was noted.
    fn tls(&self, given: &mut Given) -> Option<Tls> {
        let mode = self.database_tls.as_deref();
        let mode = given.or("database-tls", mode, "verify-full", tls::mode);
        let ca = self.database_ca.as_deref();
        let tls = given.or("database-ca", ca, "", |path| tls::of(mode.unwrap_or_default(), path));
        mode?;
        tls
    }

    /// Reads the other settings from `given`; `None` if a mistake was noted there.
    fn read(&self, given: &mut Given, tls: Option<Tls>) -> Option<ControlSettings> {
        let place = given.required("control", self.control.as_deref(), |text| {
            tls::with(endpoint(text)?, tls.clone().unwrap_or_default())
        });
        let root = given.required("root-file", self.root_file.as_deref(), |path| root(Path::new(path)));
        tls?;
        Some(ControlSettings { endpoint: place?, root: root? })
    }
}

impl ServerFlags {
    /// Checks the shared settings for a command that reads no file.
    pub fn settings(&self) -> Result<ServerSettings, Mistakes> {
        let mut given = Given::new(None);
        let server = self.read(&mut given);
        given.finish()?;
        Ok(server.expect("no mistake was noted"))
    }

    /// Reads the shared settings from `given`; `None` if a mistake was noted there.
    pub fn read(&self, given: &mut Given) -> Option<ServerSettings> {
        let listen = given.or("listen", self.listen.as_deref(), "127.0.0.1:8080", address);
        let probes = given.or("probes", self.probes.as_deref(), "127.0.0.1:8081", address);
        let connections =
            given.or("connections-per-tenant", self.connections_per_tenant.as_deref(), "8", |text| {
                between(text, 1, 1000)
            });
        let per_server =
            given.or("connections-per-server", self.connections_per_server.as_deref(), "40", |text| {
                between(text, 4, 100_000)
            });
        let proxies = given.or("trusted-proxies", self.trusted_proxies.as_deref(), "", TrustedProxies::parse);
        let surfaces = given.or("surfaces", self.surfaces.as_deref(), "data,auth,ddl", Surfaces::parse);
        let ranges = given.or("webhook-ranges", self.webhook_ranges.as_deref(), "", networks);
        let dir = given.or("exports-dir", self.exports_dir.as_deref(), "", folder);
        let exports = given.or("exports-url", self.exports_url.as_deref(), "", |text| match (text, &dir) {
            ("", dir) => Ok(dir.clone().flatten().map(StorageConfig::Folder)),
            (_, Some(Some(_))) => Err("is there beside --exports-dir; leave one of them out".to_owned()),
            (text, _) => Location::parse(text).map(|location| Some(StorageConfig::Objects(location))),
        });
        let max_rows = self.exports_max_rows.as_deref();
        let max_rows = given.or("exports-max-rows", max_rows, "50000000", |text| between(text, 1, MAX_ROWS));
        let queue = given.or("queue-per-tenant", self.queue_per_tenant.as_deref(), "256", |text| {
            between(text, 0, 100_000)
        });
        let calls = given
            .or("calls-per-tenant", self.calls_per_tenant.as_deref(), "4", |text| between(text, 1, 1000));
        let bodies = self.body_memory_mib.as_deref();
        let bodies = given.or("body-memory-mib", bodies, "64", |text| between(text, 32, 65_536));
        let client = self.client_timeout_seconds.as_deref();
        let client = given.or("client-timeout-seconds", client, "10", |text| between(text, 1, 3600));
        let format = given.or("log-format", self.log_format.as_deref(), log::default_format(), log::format);
        let drain =
            given.or("drain-seconds", self.drain_seconds.as_deref(), "30", |text| between(text, 0, 3600));
        let last_used = given
            .or("last-used-seconds", self.last_used_seconds.as_deref(), "60", |text| between(text, 1, 3600));
        let queue = usize::try_from(queue?).expect("at most 100,000");
        Some(ServerSettings {
            listen: listen?,
            probes: probes?,
            trusted_proxies: proxies?,
            surfaces: surfaces?,
            webhook_ranges: ranges?,
            exports: exports?,
            exports_max_rows: usize::try_from(max_rows?).expect("at most 50 million"),
            request_limits: Limits::new(usize::try_from(connections?).expect("at most 1000"), queue),
            calls: CallLimits::new(usize::try_from(calls?).expect("at most 1000"), queue),
            body_memory: usize::try_from(bodies? << 20).expect("at most 64 GiB"),
            per_server: usize::try_from(per_server?).expect("at most 100,000"),
            client_timeout: Duration::from_secs(client?),
            log_format: format?,
            drain: Duration::from_secs(drain?),
            last_used_interval: Duration::from_secs(last_used?),
        })
    }
}

/// A folder by its whole path; `None` where there is none.
fn folder(text: &str) -> Result<Option<PathBuf>, String> {
    match Path::new(text) {
        path if path.as_os_str().is_empty() => Ok(None),
        path => std::path::absolute(path).map(Some).map_err(|error| error.to_string()),
    }
}

/// Networks, separated by commas.
fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    let network = |part: &str| {
        part.trim().parse().map_err(|_| format!("{part:?} is not a network; write it like 10.20.0.0/16"))
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(network).collect()
}

/// The root secret in a file.
pub(crate) fn root(path: &Path) -> Result<Root, String> {
    let remedy =
        "create one with `openssl rand -hex 32` and give the same file to every replica and to the operator";
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot be read: {e}; {remedy}"))?;
    Root::from_hex(&text).map_err(|e| format!("is not a root secret: {e}; {remedy}"))
}

#[cfg(test)]
mod tests;
