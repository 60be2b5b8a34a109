//! One pass over one Tenant: look, plan, apply, look again. It does the same whatever happened before, so it may be cut off
//! anywhere and started again.
//!
//! `observe` shows the plan of a Tenant that is not to be changed. Of every other, `provision` makes record, roles, database and
//! schema `dl`; `scripts` runs those of the Tenant; `keys` reads Secrets and rotates; `converge` plans and applies until
//! nothing is left to do; `delete` takes a Tenant down, and `release` lets go of its keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use rowgate_core::name::Ulid;
use rowgate_crds::{ApiKey, DeletionPolicy, Kind, Reason, Relationship, Tenant, WebhookSubscription};
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::{last_used, leader, replicas, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::TenantDb;
use rowgate_pg::tenant::{events, locks};

use crate::apply::Logins;
use crate::apply::connection_cache::ConnectionCache;
use crate::desired::{Desired, annotations, convert};
use crate::plan::{As, Closed};
use crate::servers::Servers;
use crate::source::{ResourceSource, SecretView, Snapshot, Version};
use crate::status::report;
use crate::status::reporter::Reporter;
use crate::status::{StatusCache, TenantState};

mod adopt;
mod converge;
mod delete;
mod end_calls;
mod error;
mod held_roles;
mod keys;
mod observe;
mod provision;
mod release;
mod revoke;
mod scripts;
mod server;
mod subscriptions;

use converge::Converged;
pub(crate) use error::PassError;
use error::{busy, too_large};
pub(crate) use release::{REMEDY, free_key, is_forced};
use server::record_in;

const FORCED: &str = "row-level security stays forced on the owner of the tables until no data plane of version 0.2 runs, which would close what \
                      is not forced; upgrade the data planes (everything is served meanwhile)";

/// What stays between passes over one tenant: the fence's epoch and what the last pass left.
#[derive(Debug)]
pub(crate) struct Memory {
    statuses: StatusCache,
    pub(crate) epoch: Option<i64>,
    /// The last pass found the fence closed, although no other reconciler had closed it.
    was_fenced: bool,
    /// What the manifests said in the last pass that left nothing to do; a plan that is not empty for the same is drift.
    converged: Option<Converged>,
    /// What that pass had closed.
    closed: Closed,
    /// What the last pass found.
    last: Option<Arc<TenantState>>,
    /// The Secret of migration tools that the status names, although the Tenant that was read may not show it yet.
    pub(crate) migrations_secret: Option<String>,
    /// What the Secrets held then, if it came to its end.
    secrets: Option<keys::Remembered>,
    /// Roles of it that others' databases held then.
    held: Vec<String>,
    /// Objects of its database that name roles of other tenants or of its dead keys, as last found.
    named: Option<Vec<String>>,
    /// The script that failed last.
    script: Option<scripts::Failure>,
}

impl Memory {
    pub(crate) fn new(statuses: StatusCache) -> Memory {
        Memory {
            statuses,
            epoch: None,
            was_fenced: false,
            converged: None,
            closed: Closed::default(),
            last: None,
            migrations_secret: None,
            secrets: None,
            held: Vec::new(),
            named: None,
            script: None,
        }
    }

    pub(crate) fn statuses(&self) -> StatusCache {
        self.statuses.clone()
    }

    /// What the last pass found.
    pub(crate) fn last(&self) -> Option<&TenantState> {
        self.last.as_deref()
    }

    /// Namespaces and names of the Secrets that the last pass found or made, if it came to its end.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secrets.iter().flat_map(keys::Remembered::names)
    }

    /// Whether the last pass came to its end, and the Secrets are to be seen as it left them.
    pub(crate) fn secrets_are_unchanged(&self, view: impl Fn(&str, &str) -> SecretView) -> bool {
        self.secrets.as_ref().is_some_and(|known| known.are_seen_unchanged(view))
    }
}

/// What a pass needs besides the Tenant.
pub(crate) struct Pass<'a, S> {
    pub(crate) source: &'a S,
    /// On the server of the control database.
    pub(crate) installation: &'a Arc<Installation>,
    pub(crate) servers: &'a Servers,
    /// On the server of the Tenant's database, once that is known.
    pub(crate) server: Arc<Installation>,
    pub(crate) reporter: &'a Reporter,
    pub(crate) connections: &'a ConnectionCache,
    /// What the fence of the control database is asked with.
    pub(crate) lead: i64,
    /// Networks that webhooks may reach although they are no public ones.
    pub(crate) webhook_ranges: &'a [IpNet],
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) tenant: &'a Tenant,
    /// Those that are to live.
    pub(crate) keys: Vec<&'a ApiKey>,
    /// Those that are being deleted.
    pub(crate) deleting: Vec<&'a ApiKey>,
    /// Those that are to be served, and not those that are being deleted.
    pub(crate) relationships: Vec<&'a Relationship>,
    /// The same; none that only shows what was made through the API.
    pub(crate) subscriptions: Vec<&'a WebhookSubscription>,
    /// Whether the passwords of all logins are tried, too.
    pub(crate) probe: bool,
    /// Of the Secrets that this pass has read, written or known, by uid of the key.
    pub(crate) versions: BTreeMap<String, Version>,
    /// Which generation the replicas were called for, if the tenant is served.
    pub(crate) announced: Option<(Ulid, i64)>,
    pub(crate) memory: &'a mut Memory,
}

/// Being deleted, and waiting to be released.
pub(crate) fn is_deleting(metadata: &kube_core::ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

impl<S: ResourceSource> Pass<'_, S> {
    /// Brings the database to what the manifests say, as far as they can be followed. Keys die whatever else is wrong.
    pub(crate) async fn run(mut self) -> Arc<TenantState> {
        if is_deleting(&self.tenant.metadata) {
            return self.delete().await;
        }
        let (mut state, alive) = self.follow().await;
        let revoked = match alive {
            Some(alive) => Ok(alive),
            // until they are, a key may work although its manifest is gone
            None => self.revoke_dead(&state).await.map(|()| BTreeSet::new()),
        };
        if let Err(error) = &revoked {
            tracing::warn!(tenant = %state.slug, %error, "cannot look for revoked keys");
            state.replaced |= self.is_replaced(error);
        }
        if !state.replaced {
            self.release_keys(&mut state, &revoked.map_err(|error| error.to_string())).await;
        }
        let state = Arc::new(state);
        self.memory.last = Some(state.clone());
        state
    }

    /// Whether the control database's server says that another reconciler has taken over.
    fn is_replaced(&self, error: &PassError) -> bool {
        matches!(error, PassError::Pg(PgError::Replaced)) && self.servers.cluster(&self.server).is_none()
    }

    /// What is known before the pass.
    pub(super) fn known(&self) -> TenantState {
        let beside = (&self.keys[..], &self.relationships[..], &self.subscriptions[..]);
        let mut known = report::known(self.tenant, beside, self.memory.last.as_deref());
        known.migrations_secret = self.memory.migrations_secret.clone().or(known.migrations_secret);
        known
    }

    /// What became of the Tenant; and if the pass came to its end, the uids of the keys that live in the database.
    async fn follow(&mut self) -> (TenantState, Option<BTreeSet<String>>) {
        let mut state = self.known();
        if annotations::value(&self.tenant.metadata, rowgate_crds::PAUSED) == Some("true") {
            let message = "paused by the annotation rowgate.dev/paused; nothing changes until it is removed";
            state.findings.retry = Some((Reason::Paused, message.to_owned()));
            return (state, None);
        }
        let done = match (annotations::observes(&self.tenant.metadata), self.reach_server(&mut state).await) {
            (Err(message), _) => Err(PassError::Refused(Reason::InvalidSpec, message)),
            (_, Err(error)) => Err(error),
            (Ok(false), Ok(())) => self.steps(&mut state).await.map(Some),
            (Ok(true), Ok(())) => self.observe(&mut state).await.map(|()| None),
        };
        match done {
            Ok(None) => return (state, None),
            Ok(Some(db)) => {
                self.memory.was_fenced = false;
                let live = db.keys.values().filter(|row| row.revoked_at.is_none());
                return (state, Some(live.map(|row| row.uid.clone()).collect()));
            }
            Err(error) if self.is_replaced(&error) => {
                state.replaced = true;
                state.findings.retry = Some((Reason::Retrying, error.to_string()));
            }
            // a server that a Secret names may say so, too, and only the control database knows
            Err(PassError::Pg(error @ (PgError::Fenced { .. } | PgError::Replaced))) => {
                self.fenced(&mut state, &error).await;
            }
            Err(PassError::Pg(error)) if error.is_raised() => {
                let message =
                    format!("{error}; correct in the database what raises this error (every resync retries)");
                state.findings.stalled.push((Reason::StatementRefused, message));
            }
            Err(PassError::Refused(reason, message)) => state.findings.stalled.push((reason, message)),
            Err(PassError::Moved(message)) => {
                let message = format!("{message}; another session is changing the same objects; retrying");
                state.findings.retry = Some((Reason::Drifted, message));
            }
            Err(PassError::Unreachable(message)) => {
                state.findings.retry = Some((Reason::DatabaseUnavailable, format!("{message}; retrying")));
            }
            Err(PassError::Waits(message)) => state.findings.retry = Some((Reason::Progressing, message)),
            Err(PassError::Busy(about, holders)) => {
                state.findings.retry = Some((Reason::Retrying, busy(&about, &holders)));
            }
            Err(PassError::Source(error)) => {
                state.findings.retry = Some((Reason::SecretUnavailable, error.to_string()))
            }
            Err(PassError::Pg(error @ PgError::Beyond { .. })) => {
                tracing::warn!(tenant = %state.slug, %error, "the pass stopped");
                state.findings.stalled.push((Reason::TooLarge, too_large(&error)));
            }
            Err(PassError::Pg(error)) => {
                tracing::warn!(tenant = %state.slug, %error, "the pass stopped");
                let failure = LoginFailure::of(&error, &self.server.endpoint);
                let sentence = failure.as_ref().map(|failure| failure.sentence());
                let sentence = sentence.unwrap_or_else(|| error.to_string());
                if failure.is_some_and(|failure| failure.needs_a_change()) {
                    let message =
                        format!("the operator cannot log in to database {}: {sentence}", state.database);
                    state.findings.stalled.push((Reason::LoginRefused, message));
                } else {
                    state.findings.retry =
                        Some((Reason::DatabaseUnavailable, format!("{sentence}; retrying")));
                }
            }
        }
        (state, None)
    }

    async fn steps(&mut self, state: &mut TenantState) -> Result<TenantDb, PassError> {
        let mut record = self.record(state).await?;
        record_in(state, &record);
        self.follow_moved(&mut record).await?;
        self.is_of_server(&record)?;
        if let Some(wanted) = self.tenant.spec.database.adopt_retained.as_deref()
            && wanted != record.id.as_str()
        {
            let message = format!(
                "this Tenant has a database already and does not adopt {wanted}; remove spec.database.adoptRetained, or delete this Tenant and create another one with it"
            );
            state.findings.stalled.push((Reason::InvalidSpec, message));
        }
        let server = self.server.clone();
        let logins = Logins::new(&server, self.connections, self.lead, &record.id, &record.database);
        let mut logins = logins.with_home(self.installation).fresh(self.probe);
        let result = match self.inside(state, &record, &mut logins).await {
            Err(PassError::Pg(error)) if error.code() == Some(locks::NOT_AVAILABLE) => {
                Err(PassError::Busy("read the tables".to_owned(), logins.hidden().await))
            }
            result => result,
        };
        if let Err(PassError::Busy(_, holders)) = &result {
            self.end_holders(&record, holders, &mut logins).await;
        }
        if result.is_ok() && !logins.reset_passwords.is_empty() {
            let what = format!("the password of {}", logins.reset_passwords.join(", "));
            self.drifted(state, &what).await?;
        }
        match &result {
            Ok(_) => logins.keep().await,
            Err(_) => logins.close().await,
        }
        result
    }

    /// What the manifests say, without keys.
    fn desired(&self, id: &Ulid, database: &str) -> Result<Desired, PassError> {
        let mut desired = convert::tenant(self.tenant, id, database, &self.server)
            .map_err(|message| PassError::Refused(Reason::InvalidSpec, message))?;
        desired.relationships =
            self.relationships.iter().filter_map(|it| convert::relationship(it)).collect();
        let namespace = self.tenant.metadata.namespace.as_deref().unwrap_or_default();
        let unread = self.snapshot.unread_of(Kind::Relationship).filter(|it| it.namespace == namespace);
        desired.unread_relationships = unread.map(|it| it.uid.clone()).collect();
        Ok(desired)
    }

    async fn inside(
        &mut self,
        state: &mut TenantState,
        record: &tenants::Record,
        logins: &mut Logins<'_>,
    ) -> Result<TenantDb, PassError> {
        let mut desired = self.desired(&record.id, &record.database)?;
        // a tenant that was passed over before stands, mostly; where it does not, step by step
        let looked = match self.memory.epoch.filter(|_| !self.probe) {
            Some(_) => match logins.introspect().await {
                Err(error @ PgError::Beyond { .. }) => return Err(error.into()),
                looked => looked.ok(),
            },
            None => None,
        };
        let (cluster, db) = looked.unzip();
        let (cluster, repaired) =
            self.roles_and_database(state, &mut desired, logins, (cluster, record.phase)).await?;
        self.migrations(state, &desired, &cluster, logins).await?;
        let opened = self.open(logins).await? | self.scripts(state, record, logins).await?;
        if record.phase != tenants::Phase::Live {
            self.revoke_before_served(logins).await?;
        }
        if self.probe {
            state.login_failure = logins.probe().await?;
        }
        let db = match db.filter(|_| !repaired && !opened) {
            Some(db) => db,
            None => introspect::tenant_db(logins.records().await?).await?,
        };
        self.announced =
            (record.phase == tenants::Phase::Live).then(|| (record.id.clone(), record.generation));
        self.all_are_read(&db)?;
        let (converged, held_before) = (self.memory.converged.clone(), self.memory.held.clone());
        self.keys(state, &mut desired, &db).await?;
        let forces = cluster.has_older_replicas && !desired.is_adopted;
        let unfinished = keys::unfinished(&desired, &db);
        let (mut outcome, mut db) = self.converge(&desired, (cluster, db), logins, state).await?;
        let mut rotated = keys::finished(unfinished, &db);
        // begun only where nothing else is left to do: between its two steps the Secret holds a key that does not work yet
        let now = introspect::clock(logins.records().await?).await?;
        if outcome.ops.is_empty() && self.rotate(state, &mut desired, &db, now).await {
            let unfinished = keys::unfinished(&desired, &db);
            let name = desired.database.as_str();
            let cluster = introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, name).await?;
            (outcome, db) = self.converge(&desired, (cluster, db), logins, state).await?;
            rotated.extend(keys::finished(unfinished, &db));
        }
        report::outcome(state, &desired, &outcome, &db, now);
        report::hardened(state, &db);
        if forces && !outcome.entities.is_empty() {
            state.findings.warnings.push(FORCED.to_owned());
        }
        state.events = None;
        if desired.entities.iter().any(|entity| entity.events) {
            let retired = events::retire(logins.records().await?, desired.limits.max_outbox_bytes).await?;
            // it plans expressions of the tenant's
            let undecidable = events::undecidable(logins.get(As::Owner).await?).await?;
            report::events(state, &desired, &db, &retired, &undecidable);
        }
        self.subscriptions(state, &desired, &outcome.entities, &db, logins).await?;
        report::uses(state, &last_used::of(logins.control().await?, &record.id).await?);
        self.report_rotated(state, &rotated).await?;
        self.report_held(state, logins, held_before).await?;

        let generation = db.state.as_ref().map_or(0, |state| state.generation);
        let drifted = record.generation != generation && converged == self.memory.converged;
        let same = |last: &&TenantState| last.done && last.generation == state.generation && !drifted;
        report::since(state, generation, self.memory.last.as_deref().filter(same));
        let control = logins.control().await?;
        let announced = self.announced.as_ref().map(|(_, generation)| *generation);
        if announced != Some(generation) {
            let mut open = leader::fence(control, self.lead).await?;
            tenants::set_live(&mut open, &record.id, generation).await?;
            open.commit().await.map_err(PgError::from)?;
            replicas::wake(control).await?;
        }
        if self.tenant.spec.database.deletion_policy == DeletionPolicy::Delete && !self.source.holds_deleted()
        {
            let note =
                "deletionPolicy: Delete applies in a cluster only; removing this manifest keeps the database";
            state.findings.warnings.push(note.to_owned());
        }
        state.served = Some(generation);
        state.done = true;
        self.remember(&desired);
        Ok(db)
    }
}
