//! Settings: a flag, then `ROWGATE_*`. All mistakes are reported at once, each with the flag's name.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use rowgate_pg::connect::login::Login;
use rowgate_program::database_url;
use rowgate_program::log::{self, LogFormat};
use rowgate_program::settings::{Given, Mistakes, address, between, renamed_variable, url};
use rowgate_reconcile::{PublicUrls, ServerNamespaces};

/// All flags as texts, so that all mistakes can be reported together.
#[derive(Debug, Clone, Default, Args)]
pub struct Flags {
    /// URL of the PostgreSQL server (16 or newer) with the operator's login: a superuser, or a role with CREATEDB and
    /// CREATEROLE. Connections to a host use verified TLS; `?sslrootcert=FILE` names the authority, `?sslmode=disable`
    /// turns TLS off on this machine (example: `postgres://rowgate_operator:secret@db.internal:5432/postgres`)
    #[arg(long, env = "ROWGATE_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Namespaces whose resources the operator manages, separated by commas; may be repeated [default: all] [example: shop,staging]
    #[arg(long, env = "ROWGATE_NAMESPACE", value_name = "NAMES", value_delimiter = ',')]
    pub namespace: Vec<String>,
    /// URL at which clients reach the data plane, for status.endpoints [example: `https://api.example.com`]
    #[arg(long, env = "ROWGATE_API_URL", value_name = "URL")]
    pub api_url: Option<String>,
    /// URL at which clients exchange keys for tokens, for status.endpoints [default: --api-url] [example: `https://auth.example.com`]
    #[arg(long, env = "ROWGATE_AUTH_URL", value_name = "URL")]
    pub auth_url: Option<String>,
    /// URL at which clients reach /api/ddl, for status.endpoints [default: --api-url] [example: `https://ddl.example.com`]
    #[arg(long, env = "ROWGATE_DDL_URL", value_name = "URL")]
    pub ddl_url: Option<String>,
    /// Interval at which everything is compared with the database even if no resource changed [default: 25]
    #[arg(long, alias = "relook-seconds", env = "ROWGATE_RESYNC_SECONDS", value_name = "SECONDS")]
    pub resync_seconds: Option<String>,
    /// How long a watch of the API server lasts before it is renewed; keep it below the idle timeout of load balancers in
    /// between. /healthz fails when a watch has heard nothing for 2.3 times as long [default: 200]
    #[arg(long, env = "ROWGATE_WATCH_SECONDS", value_name = "SECONDS")]
    pub watch_seconds: Option<String>,
    /// Address of /healthz, /readyz and /metrics [default: 127.0.0.1:8082] [example: 0.0.0.0:8082]
    #[arg(long, env = "ROWGATE_HEALTH_ADDRESS", value_name = "ADDRESS")]
    pub health_address: Option<String>,
    /// Namespace of the Lease and of the two root Secrets [default: the operator's own]
    #[arg(long, env = "ROWGATE_OWN_NAMESPACE", value_name = "NAME")]
    pub own_namespace: Option<String>,
    /// Name of the Lease that one operator at a time holds [default: rowgate-operator]
    #[arg(long, env = "ROWGATE_LEASE_NAME", value_name = "NAME")]
    pub lease_name: Option<String>,
    /// Name under which this operator holds the Lease; it must be unique [default: host name and process id]
    #[arg(long, env = "ROWGATE_IDENTITY", value_name = "NAME")]
    pub identity: Option<String>,
    /// Secret with the operator's root in the entry `root`; created when absent, never replaced
    /// [default: rowgate-operator-root]
    #[arg(long, env = "ROWGATE_ROOT_SECRET", value_name = "NAME")]
    pub root_secret: Option<String>,
    /// Secret with the data plane's root in the entry `root`, for its --root-file; created when absent, never replaced
    /// [default: rowgate-dataplane-root]
    #[arg(long, env = "ROWGATE_DATAPLANE_ROOT_SECRET", value_name = "NAME")]
    pub dataplane_root_secret: Option<String>,
    /// Networks, in CIDR notation and separated by commas, that webhooks may reach although they are no public ones; the data
    /// planes' --webhook-ranges [default: none]
    #[arg(long, env = "ROWGATE_WEBHOOK_RANGES", value_name = "CIDRS")]
    pub webhook_ranges: Option<String>,
    /// Namespaces, separated by commas, whose Tenants may name a PostgreSQL server of their own with
    /// spec.database.serverSecretRef. Those who write Secrets there decide where Rowgate logs in: name only namespaces of people who
    /// administer all servers; * for every namespace [default: none] [example: platform]
    #[arg(long, env = "ROWGATE_SERVER_NAMESPACES", value_name = "NAMES")]
    pub server_namespaces: Option<String>,
    /// Format of log lines: json or text [default: text on a terminal, else json]
    #[arg(long, env = "ROWGATE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,
}

/// What the operator needs, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    pub database: Login,
    /// Empty: all.
    pub namespaces: Vec<String>,
    pub urls: PublicUrls,
    pub resync: Duration,
    /// How long a watch lasts before it is renewed.
    pub watch: Duration,
    pub health: SocketAddr,
    /// `None`: the one that the connection to the API server belongs to.
    pub own_namespace: Option<String>,
    pub lease_name: String,
    pub identity: String,
    pub root_secret: String,
    pub dataplane_root_secret: String,
    pub webhook_ranges: Vec<IpNet>,
    pub server_namespaces: ServerNamespaces,
    pub log_format: LogFormat,
}

impl Flags {
    /// Checks all settings.
    ///
    /// # Errors
    /// Every mistake at once.
    pub fn settings(&self) -> Result<Settings, Mistakes> {
        let mut given = Given::new(None);
        // unlike the others: the URL holds a password, and other mistakes quote the text
        let database =
            self.database_url.as_deref().map(|url| database_url::parse(url).map_err(|it| it.to_string()));
        let database = given.secret("database-url", database);
        let namespaces: Vec<&str> =
            self.namespace.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        let namespaces = given.or("namespace", None, &namespaces.join(","), names);
        let api_url = given.required("api-url", self.api_url.as_deref(), url);
        let same = api_url.clone().unwrap_or_default();
        let mut beside =
            |name: &str, text: &Option<String>| {
                given.or(name, text.as_deref(), "", |text| {
                    if text.is_empty() { Ok(same.clone()) } else { url(text) }
                })
            };
        let (auth_url, ddl_url) = (beside("auth-url", &self.auth_url), beside("ddl-url", &self.ddl_url));
        let resync = self.resync_seconds.clone().or_else(|| renamed_variable("ROWGATE_RELOOK_SECONDS"));
        let resync = given.or("resync-seconds", resync.as_deref(), "25", |it| between(it, 1, 3600));
        // Azure's load balancers drop what is silent for 240 s
        let watch =
            given.or("watch-seconds", self.watch_seconds.as_deref(), "200", |it| between(it, 10, 3600));
        let health = given.or("health-address", self.health_address.as_deref(), "127.0.0.1:8082", address);
        let own = given.or("own-namespace", self.own_namespace.as_deref(), "", names);
        let mut named =
            |name: &str, text: &Option<String>, default: &str| given.or(name, text.as_deref(), default, one);
        let lease = named("lease-name", &self.lease_name, "rowgate-operator");
        let root = named("root-secret", &self.root_secret, "rowgate-operator-root");
        let dataplane = named("dataplane-root-secret", &self.dataplane_root_secret, "rowgate-dataplane-root");
        let identity = given.or("identity", self.identity.as_deref(), &own_name(), |it| Ok(it.to_owned()));
        let ranges = given.or("webhook-ranges", self.webhook_ranges.as_deref(), "", networks);
        let servers = self.server_namespaces.as_deref();
        let servers = given.or("server-namespaces", servers, "", server_namespaces);
        let format = given.or("log-format", self.log_format.as_deref(), log::default_format(), log::format);
        given.finish()?;
        let sure = "no mistake was noted";
        Ok(Settings {
            database: database.expect(sure),
            namespaces: namespaces.expect(sure),
            urls: PublicUrls {
                data: api_url.expect(sure),
                auth: auth_url.expect(sure),
                ddl: ddl_url.expect(sure),
            },
            resync: Duration::from_secs(resync.expect(sure)),
            watch: Duration::from_secs(watch.expect(sure)),
            health: health.expect(sure),
            own_namespace: own.expect(sure).pop(),
            lease_name: lease.expect(sure),
            identity: identity.expect(sure),
            root_secret: root.expect(sure),
            dataplane_root_secret: dataplane.expect(sure),
            webhook_ranges: ranges.expect(sure),
            server_namespaces: servers.expect(sure),
            log_format: format.expect(sure),
        })
    }
}

/// Networks; the empty text holds none.
fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    parts.map(|it| it.parse().map_err(|_| format!("{it:?} is not a network, such as 10.20.0.0/16"))).collect()
}

/// Names of namespaces, or `*`.
fn server_namespaces(text: &str) -> Result<ServerNamespaces, String> {
    match text.trim() {
        "*" => Ok(ServerNamespaces::All),
        text => Ok(ServerNamespaces::These(names(text)?.into_iter().collect())),
    }
}

/// Names of namespaces, each once; the empty text holds none.
fn names(text: &str) -> Result<Vec<String>, String> {
    let mut names =
        text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(one).collect::<Result<Vec<_>, _>>()?;
    names.sort();
    names.dedup();
    Ok(names)
}

fn one(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_name =
        text.len() <= 253 && text.chars().all(good) && ends(text.chars().next()) && ends(text.chars().last());
    match is_name {
        true => Ok(text.to_owned()),
        false => Err("is not a valid Kubernetes name; use lower-case letters, digits and hyphens".to_owned()),
    }
}

/// In a pod the host name is the pod's; the process id distinguishes two on one machine.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("{}-{}", if host.is_empty() { "operator" } else { host }, std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> Flags {
        Flags {
            database_url: Some("postgres://o:s3cret@localhost/?sslmode=disable".into()),
            api_url: Some("https://api.example.com/".into()),
            auth_url: Some("https://auth.example.com/".into()),
            ..Flags::default()
        }
    }

    #[test]
    fn defaults_are_enough_beside_the_database_and_the_address() {
        let settings = flags().settings().expect("good settings");
        let urls = PublicUrls {
            auth: "https://auth.example.com".into(),
            ..PublicUrls::at("https://api.example.com")
        };
        assert_eq!(settings.urls, urls);
        assert!(settings.namespaces.is_empty() && settings.own_namespace.is_none());
        assert_eq!(settings.resync, Duration::from_secs(25));
    }

    #[test]
    fn namespaces_are_taken_once_each() {
        let namespace = vec!["b".into(), " a".into(), "b".into(), String::new()];
        let settings = Flags { namespace, ..flags() }.settings().expect("good settings");
        assert_eq!(settings.namespaces, ["a", "b"]);
    }

    #[test]
    fn all_mistakes_are_reported_at_once_without_the_password() {
        let flags = Flags {
            database_url: Some("mysql://o:s3cret@db".into()),
            namespace: vec!["Shop".into()],
            api_url: Some("api".into()),
            resync_seconds: Some("0".into()),
            watch_seconds: Some("5".into()),
            health_address: Some("here".into()),
            lease_name: Some("-".into()),
            ..Flags::default()
        };
        let Mistakes(lines) = flags.settings().expect_err("seven mistakes");
        let starts = [
            "--database-url",
            "--namespace",
            "--api-url",
            "--resync-seconds",
            "--watch-seconds",
            "--health-address",
            "--lease-name",
        ];
        assert_eq!(lines.len(), starts.len(), "{lines:?}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start) && !line.contains("s3cret"), "{line}");
        }
    }
}
