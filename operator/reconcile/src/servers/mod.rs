//! The PostgreSQL servers that Tenants name by a Secret, opened once and kept: a pass asks for the one of its Tenant.
//!
//! A Secret is read again whenever a pass needs it and some time has gone by, so that another password, address or authority takes
//! effect without a restart. A server that cannot be opened fails the passes of its own Tenants and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rowgate_crds::Reason;
use rowgate_pg::connect::database_url;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::{Installation, InstallationError, open_beside, still_there};
use rowgate_pg::control::rebinds::{self, Rebind};
use rowgate_pg::control::servers::{self, ServerRow};
use rowgate_pg::control::tenants::Record;
use rowgate_pg::control::{leader, replicas};
use rowgate_pg::failure::PgError;
use tokio::time::Instant;

use crate::pass::PassError;
use crate::source::{ResourceSource, SourceError};

/// How long what a Secret said counts.
const SECRET_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is asked whether a server is still the cluster that it was.
const IDENTITY_INTERVAL: Duration = Duration::from_secs(30);
/// After a server could not be opened, and how many Tenants may ask for it: they all get the answer of the first.
const FAILURE_INTERVAL: Duration = Duration::from_secs(2);

/// Whose Tenants may name a server. Passwords of all servers derive from one root, and a server says itself which cluster it is: who
/// chooses where Rowgate logs in could learn what opens another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerNamespaces {
    All,
    These(BTreeSet<String>),
}

impl ServerNamespaces {
    fn refuse(&self, namespace: &str) -> Option<String> {
        match self {
            ServerNamespaces::These(names) if !names.contains(namespace) => Some(format!(
                "Tenants of namespace {namespace} may not name a server, since those who write Secrets there would decide where Rowgate logs in; remove \
                 spec.database.serverSecretRef, or let the platform team add the namespace to servers.namespaces of the chart (--server-namespaces)"
            )),
            _ => None,
        }
    }
}

/// Namespace and name of a Secret.
type Name = (String, String);
type Entries = BTreeMap<String, String>;

/// The servers that are known. `home`: the installation on the server of the control database.
pub(crate) struct Servers {
    home: Arc<Installation>,
    /// The epoch that the fence of each is asked with.
    lead: i64,
    namespaces: ServerNamespaces,
    by_secret: Mutex<BTreeMap<Name, Arc<tokio::sync::Mutex<Slot>>>>,
    /// By system identifier, as last opened.
    opened: Mutex<BTreeMap<String, Arc<Installation>>>,
}

#[derive(Default)]
struct Slot {
    known: Option<OpenServer>,
    failed: Option<(Instant, Failure)>,
}

struct OpenServer {
    entries: Entries,
    read: Instant,
    identified: Instant,
    server: Arc<Installation>,
}

/// Why a server could not be opened.
#[derive(Clone)]
enum Failure {
    /// Somebody has to change what the message names.
    Refused(Reason, String),
    Unavailable(String),
    Replaced,
}

impl Servers {
    pub(crate) fn new(home: Arc<Installation>, lead: i64, namespaces: ServerNamespaces) -> Servers {
        Servers { home, lead, namespaces, by_secret: Mutex::default(), opened: Mutex::default() }
    }

    /// The system identifier of `server` as records have it: `None` for that of the control database.
    pub(crate) fn cluster<'a>(&self, server: &'a Installation) -> Option<&'a str> {
        (server.system_identifier != self.home.system_identifier).then_some(&*server.system_identifier)
    }

    /// Those that were opened, besides the one of the control database.
    pub(crate) fn opened(&self) -> Vec<Arc<Installation>> {
        self.opened.lock().values().cloned().collect()
    }

    /// The server that the Secret `name` in `namespace` names.
    pub(crate) async fn named(
        &self,
        source: &impl ResourceSource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Installation>, PassError> {
        if let Some(why) = self.namespaces.refuse(namespace) {
            return Err(PassError::Refused(Reason::ServerRefused, why));
        }
        let secret = (namespace.to_owned(), name.to_owned());
        let slot = self.by_secret.lock().entry(secret.clone()).or_default().clone();
        let mut slot = slot.lock().await;
        if let Some(known) = slot.known.as_ref().filter(|it| it.read.elapsed() < SECRET_INTERVAL) {
            return Ok(known.server.clone());
        }
        if let Some((_, failure)) = slot.failed.as_ref().filter(|(at, _)| at.elapsed() < FAILURE_INTERVAL) {
            return Err(failure.clone().into());
        }
        let found = source.read_secret(namespace, name).await?;
        let entries = found.ok_or_else(|| no_secret(&secret))?.data;
        if let Some(known) = slot.known.as_mut().filter(|it| it.entries == entries) {
            known.read = Instant::now();
            if known.identified.elapsed() < IDENTITY_INTERVAL {
                return Ok(known.server.clone());
            }
            known.identified = known.read;
            match still_there(&known.server).await {
                Err(moved @ InstallationError::OtherCluster { .. }) => {
                    slot.known = None;
                    return Err(PassError::Refused(Reason::ServerRefused, said(&secret, &moved.to_string())));
                }
                // whoever uses it says that it does not answer
                _ => return Ok(known.server.clone()),
            }
        }
        let opened = self.open(&secret, &entries).await;
        match opened {
            Ok(server) => {
                let (now, server) = (Instant::now(), Arc::new(server));
                let known = OpenServer { entries, read: now, identified: now, server: server.clone() };
                *slot = Slot { known: Some(known), failed: None };
                Ok(server)
            }
            Err(failure) => {
                slot.failed = Some((Instant::now(), failure.clone()));
                Err(failure.into())
            }
        }
    }

    /// The server of a tenant, by its record: as its Secret says; else as it was last reached, or as it is written down, for
    /// Tenants that outlive their Secret.
    pub(crate) async fn of_record(
        &self,
        source: &impl ResourceSource,
        record: &Record,
    ) -> Result<Arc<Installation>, PassError> {
        let Some(cluster) = &record.cluster else { return Ok(self.home.clone()) };
        let mut control = session::connect(&self.home.operator()).await?;
        let row = servers::find(&mut control, cluster).await?;
        let missing = || PgError::Unexpected {
            reason: "control.servers lacks the server of a tenant".to_owned(),
            source: None,
        };
        let row = row.ok_or_else(missing)?;
        if let Ok(server) = self.named(source, &row.secret.0, &row.secret.1).await
            && server.system_identifier == *cluster
        {
            return Ok(server);
        }
        let known = self.opened.lock().get(cluster).cloned();
        if let Some(server) = known {
            self.is_it(&row, &server).await?;
            return Ok(server);
        }
        let place =
            row.place().map_err(|why| PassError::Refused(Reason::ServerRefused, said(&row.secret, &why)))?;
        let server = self.home.beside(place);
        self.is_it(&row, &server).await?;
        leader::copy(&mut session::connect(&server.operator()).await?, self.lead).await?;
        Ok(Arc::new(server))
    }

    /// A copy has the same roles and passwords: nothing is revoked or dropped in another cluster than the tenant's.
    async fn is_it(&self, row: &ServerRow, server: &Installation) -> Result<(), PassError> {
        match still_there(server).await {
            Err(InstallationError::Pg(error)) => Err(error.into()),
            Err(error) => {
                self.opened.lock().remove(&server.system_identifier);
                Err(PassError::Refused(Reason::ServerRefused, said(&row.secret, &error.to_string())))
            }
            Ok(()) => Ok(()),
        }
    }

    async fn open(&self, secret: &Name, entries: &Entries) -> Result<Installation, Failure> {
        let admin = login(secret, entries)?;
        let endpoint = admin.endpoint.clone();
        let moves = async { rebinds::list(&mut session::connect(&self.home.operator()).await?).await };
        let moves = moves.await.map_err(|error| unavailable(secret, &error))?;
        let opened = Box::pin(open_beside(admin, &self.home, self.lead, &moves)).await;
        let server = match opened {
            Err(InstallationError::Pg(PgError::Replaced)) => return Err(self.overtaken(secret).await),
            opened => opened.map_err(|error| failure(secret, &endpoint, error))?,
        };
        for line in &server.advice {
            tracing::warn!(server = %server.endpoint, "a DBA may run: {line}");
        }
        if self.cluster(&server).is_some() {
            self.write_down(&server, secret).await.map_err(|error| unavailable(secret, &error))?;
            self.opened.lock().insert(server.system_identifier.clone(), Arc::new(server.clone()));
        }
        tracing::info!(server = %server.endpoint, secret = %format_args!("{}/{}", secret.0, secret.1), "a server of tenants is open");
        Ok(server)
    }

    /// What a server means that says that another reconciler has taken over: only the control database knows.
    async fn overtaken(&self, secret: &Name) -> Failure {
        let asked =
            async { leader::ask(&mut session::connect(&self.home.operator()).await?, self.lead).await };
        match asked.await {
            Err(PgError::Replaced) => Failure::Replaced,
            Err(error) => unavailable(secret, &error),
            Ok(()) => {
                let why = "its database rowgate holds the fence of a later reconciler than the control database knows, as it does after a restore \
                           of the control database; a superuser can run there: update control.leader set epoch = 0";
                Failure::Refused(Reason::ServerRefused, said(secret, why))
            }
        }
    }

    /// Whether `rebind` said that the cluster `from` became that of `server`; then its tenants are there from now on.
    pub(crate) async fn moved(&self, from: &str, server: &Installation) -> Result<bool, PassError> {
        let said = rebinds::list(&mut session::connect(&self.home.operator()).await?).await?;
        match said.iter().find(|it| it.allows(from, &server.system_identifier)) {
            Some(moved) => self.take_up(moved, server).await.map(|()| true),
            None => Ok(false),
        }
    }

    async fn take_up(&self, moved: &Rebind, server: &Installation) -> Result<(), PassError> {
        let mut control = session::connect(&self.home.operator()).await?;
        let mut open = leader::fence(&mut control, self.lead).await?;
        let n_tenants = rebinds::take_up(&mut open, moved, self.cluster(server)).await.map_err(|error| {
            match error.code() {
                Some("23505") => PassError::Refused(Reason::ServerRefused, named_twice(moved)),
                _ => error.into(),
            }
        })?;
        open.commit().await.map_err(PgError::from)?;
        self.opened.lock().remove(&moved.from);
        tracing::info!(
            from = moved.from,
            to = moved.to,
            n_tenants,
            "a PostgreSQL cluster moved, and its tenants with it"
        );
        Ok(replicas::wake(&mut control).await?)
    }

    /// For the data planes, which read no Secret.
    async fn write_down(&self, server: &Installation, secret: &Name) -> Result<(), PgError> {
        let row = ServerRow::of(&server.place(), (&secret.0, &secret.1));
        let mut control = session::connect(&self.home.operator()).await?;
        if servers::find(&mut control, &row.system_identifier).await?.as_ref() == Some(&row) {
            return Ok(());
        }
        let mut open = leader::fence(&mut control, self.lead).await?;
        servers::put(&mut open, &row).await?;
        open.commit().await?;
        replicas::wake(&mut control).await
    }
}

/// The administrator's login that a Secret holds.
fn login(secret: &Name, entries: &Entries) -> Result<Login, Failure> {
    let invalid = |why: String| Failure::Refused(Reason::SecretInvalid, said(secret, &why));
    let url = entries.get("url").map(|url| url.trim()).filter(|url| !url.is_empty());
    let Some(url) = url else {
        return Err(invalid(
            "it has no key url; write postgresql://user:password@host:5432/ there".to_owned(),
        ));
    };
    let authorities = entries.get("ca.crt").map(String::as_str);
    database_url::parse_in_secret(url, authorities)
        .map_err(|why| invalid(format!("its url {why}; correct the Secret")))
}

fn no_secret((namespace, name): &Name) -> SourceError {
    SourceError::NoServerSecret { namespace: namespace.clone(), name: name.clone() }
}

fn said((namespace, name): &Name, why: &str) -> String {
    format!("the server of Secret {namespace}/{name} cannot be used: {why}")
}

fn named_twice(Rebind { from, to }: &Rebind) -> String {
    format!(
        "cluster {from} is said to be cluster {to} now, where another tenant has a database of the same name; rename one of them before it is moved, \
         or move the databases to a cluster of their own"
    )
}

fn failure(secret: &Name, endpoint: &Endpoint, error: InstallationError) -> Failure {
    match error {
        InstallationError::Pg(PgError::Replaced) => Failure::Replaced,
        InstallationError::Pg(error) => match LoginFailure::of(&error, endpoint) {
            Some(failure) if failure.needs_a_change() || error.code() == Some("28P01") => {
                Failure::Refused(Reason::LoginRefused, said(secret, &failure.sentence()))
            }
            Some(failure) => Failure::Unavailable(said(secret, &failure.sentence())),
            None => unavailable(secret, &error),
        },
        error @ InstallationError::LoginTooWeak { .. } => {
            Failure::Refused(Reason::RightsMissing, said(secret, &error.to_string()))
        }
        error => Failure::Refused(Reason::ServerRefused, said(secret, &error.to_string())),
    }
}

fn unavailable(secret: &Name, error: &PgError) -> Failure {
    match error {
        PgError::Replaced => Failure::Replaced,
        error => Failure::Unavailable(said(secret, &error.to_string())),
    }
}

impl From<Failure> for PassError {
    fn from(failure: Failure) -> PassError {
        match failure {
            Failure::Refused(reason, message) => PassError::Refused(reason, message),
            Failure::Unavailable(message) => PassError::Unreachable(message),
            Failure::Replaced => PassError::Pg(PgError::Replaced),
        }
    }
}
