//! One pass over one Tenant: look, plan, apply, look again. The same whatever happened before, so that it may be cut
//! off anywhere and begun again.

use std::collections::BTreeMap;

use rowgate_core::role::TenantLogin;
use rowgate_crds::{ApiKey, NotServedYet as _, Reason, Tenant};
use rowgate_pg::actual::{Cluster, TenantDb};
use rowgate_pg::failure::PgError;
use rowgate_pg::installation::Installation;
use rowgate_pg::{introspect, key_uses, migrate, replicas, session, tenants};

use crate::apply::{ApplyError, Logins};
use crate::desired::{Desired, KeySpec};
use crate::plan::{self, As, Finding, Op, Outcome};
use crate::report::Told;
use crate::source::{Event, ResourceSource, Snapshot, SourceError};
use crate::status::{Findings, TenantState};
use crate::{annotations, chance, convert, report, revocation};

mod keys;

/// What stays between passes over one tenant: the fence's epoch and what the last pass left.
#[derive(Debug)]
pub(crate) struct Memory {
    told: Told,
    epoch: Option<i64>,
    /// What the manifests said in the last pass that left nothing to do; a plan that is not empty for the same is drift.
    settled: Option<Generations>,
    /// What the last pass found.
    last: Option<TenantState>,
}

impl Memory {
    pub(crate) fn new(told: Told) -> Memory {
        Memory { told, epoch: None, settled: None, last: None }
    }
}

/// How often a plan is applied in one pass before what is left counts as refused.
const ROUNDS: u32 = 3;

/// By uid: the object's generation, and for a key which secret its Secret holds.
type Generations = BTreeMap<String, (i64, Option<String>)>;

/// What a pass needs besides the Tenant.
pub(crate) struct Pass<'a, S> {
    pub(crate) source: &'a S,
    pub(crate) installation: &'a Installation,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) tenant: &'a Tenant,
    pub(crate) keys: Vec<&'a ApiKey>,
    pub(crate) memory: &'a mut Memory,
}

/// Why a pass ended early. The Tenant's status says it; the next pass begins anew.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error(transparent)]
    Pg(#[from] PgError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Moved(String),
    #[error("{1}")]
    Refused(Reason, String),
}

impl From<ApplyError> for PassError {
    fn from(error: ApplyError) -> PassError {
        match error {
            ApplyError::Unavailable(error) => PassError::Pg(error),
            moved @ ApplyError::Moved { .. } => PassError::Moved(moved.to_string()),
            other => PassError::Refused(Reason::StatementRefused, other.to_string()),
        }
    }
}

impl<S: ResourceSource> Pass<'_, S> {
    /// Brings the database to what the manifests say, as far as they can be followed. Keys die whatever else is wrong.
    pub(crate) async fn run(mut self) -> TenantState {
        let state = self.follow().await;
        if state.served.is_none()
            && let Err(error) = revocation::revoke_dead(self.installation, &state, &self.keys).await
        {
            tracing::warn!(tenant = %state.slug, %error, "revoked keys could not be looked for");
        }
        state
    }

    async fn follow(&mut self) -> TenantState {
        let mut state = report::blank(self.tenant, &self.keys);
        if annotations::value(&self.tenant.metadata, rowgate_crds::PAUSED) == Some("true") {
            let message =
                "paused by the annotation rowgate.dev/paused; everything stays as it is until it is removed";
            state.findings.retry = Some((Reason::Paused, message.to_owned()));
            return state;
        }
        let mut unserved = self.tenant.spec.not_served_yet();
        unserved.extend(annotations::unserved(
            &self.tenant.metadata,
            &[rowgate_crds::MODE, rowgate_crds::FORCE_RELEASE, rowgate_crds::ROTATE],
        ));
        state.findings.stalled.extend(unserved.iter().map(|text| (Reason::NotServedYet, text.clone())));
        if unserved
            .iter()
            .any(|text| text.contains("database.serverSecretRef") || text.contains("database.create"))
        {
            return state;
        }
        match self.steps(&mut state).await {
            Ok(()) => {}
            Err(PassError::Refused(reason, message)) => state.findings.stalled.push((reason, message)),
            Err(PassError::Moved(message)) => {
                let message =
                    format!("{message}; somebody changes the tables meanwhile, so it is tried again");
                state.findings.retry = Some((Reason::Drifted, message));
            }
            Err(PassError::Source(error)) => {
                state.findings.retry = Some((Reason::SecretUnavailable, error.to_string()))
            }
            Err(PassError::Pg(error)) => {
                tracing::warn!(tenant = %state.slug, %error, "the pass stopped");
                state.findings.retry =
                    Some((Reason::DatabaseUnavailable, format!("{error}; it is tried again")));
            }
        }
        self.memory.last = Some(state.clone());
        state
    }

    async fn steps(&mut self, state: &mut TenantState) -> Result<(), PassError> {
        let record = self.record(state).await?;
        state.id = Some(record.id.clone());
        state.database.clone_from(&record.database);
        let mut logins = Logins::new(self.installation, &record.id, &record.database);
        let mut result = self.inside(state, &record, &mut logins).await;
        if result.is_ok() && !logins.mended.is_empty() {
            let what = format!("the password of {}", logins.mended.join(", "));
            result = self.drifted(state, &what).await;
        }
        logins.close().await;
        result
    }

    /// The tenant's row in the control database, made before anything else exists.
    async fn record(&self, state: &TenantState) -> Result<tenants::Record, PassError> {
        let mut conn = session::connect(&self.installation.operator()).await?;
        let uid = &state.object.uid;
        if let Some(record) = tenants::find_by_uid(&mut conn, uid).await? {
            return Ok(record);
        }
        if let Some(old) = tenants::find_by_slug(&mut conn, &state.slug).await? {
            if old.phase != tenants::Phase::Retained {
                let message = format!("the slug {} belongs to another Tenant; choose another", state.slug);
                return Err(PassError::Refused(Reason::SlugTaken, message));
            }
            return Ok(
                tenants::adopt(&mut conn, &old.id, uid, &state.object.namespace, &state.object.name).await?
            );
        }
        let new = tenants::NewTenant {
            id: &chance::ulid(),
            slug: &state.slug,
            uid,
            namespace: &state.object.namespace,
            name: &state.object.name,
            database: &state.database,
        };
        tenants::create(&mut conn, new).await.map_err(|error| match error.code() {
            Some("23505") => {
                let message = format!(
                    "the database name {} is taken by another Tenant; set spec.database.name",
                    state.database
                );
                PassError::Refused(Reason::Taken, message)
            }
            _ => error.into(),
        })
    }

    async fn inside(
        &mut self,
        state: &mut TenantState,
        record: &tenants::Record,
        logins: &mut Logins<'_>,
    ) -> Result<(), PassError> {
        let mut desired = convert::tenant(self.tenant, &record.id, self.installation)
            .map_err(|message| PassError::Refused(Reason::InvalidSpec, message))?;
        let cluster = self.shell(state, &desired, logins).await?;
        self.open(state, logins).await?;
        logins.probe().await?;

        let db = introspect::tenant_db(logins.get(As::Owner).await?).await?;
        self.keys(state, &mut desired, &db).await?;
        let closed = closed(&state.findings);
        let unfinished = keys::unfinished(&desired, &db);
        let (mut outcome, mut db) = self.settle(&desired, cluster, db, closed.clone(), logins, state).await?;
        let mut rotated = keys::finished(unfinished, &db);
        // begun only where nothing else is left to do: between its two steps the Secret holds a key that does not work yet
        let now = introspect::clock(logins.get(As::Owner).await?).await?;
        if outcome.ops.is_empty() && self.rotate(state, &mut desired, &db, now).await {
            let unfinished = keys::unfinished(&desired, &db);
            let name = desired.database.as_str();
            let cluster = introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, name).await?;
            (outcome, db) = self.settle(&desired, cluster, db, closed, logins, state).await?;
            rotated.extend(keys::finished(unfinished, &db));
        }
        report::outcome(state, &desired, &outcome, &db, now);
        report::uses(state, &key_uses::of(logins.get(As::Operator).await?, &record.id).await?);
        self.tell_rotated(state, &rotated).await?;

        let generation = db.state.as_ref().map_or(0, |state| state.generation);
        let operator = logins.get(As::Operator).await?;
        if record.generation != generation || record.phase != tenants::Phase::Live {
            tenants::set_live(operator, &record.id, generation).await?;
            replicas::wake(operator).await?;
        }
        state.served = Some(generation);
        Ok(())
    }

    /// Login roles and the database.
    async fn shell(
        &self,
        state: &TenantState,
        desired: &Desired,
        logins: &mut Logins<'_>,
    ) -> Result<Cluster, PassError> {
        let database = desired.database.as_str();
        let operator = self.installation.operator().role;
        let cluster = introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?;
        let foreign =
            cluster.database.as_ref().filter(|there| there.owner != TenantLogin::Owner.role(&desired.tenant));
        if let Some(there) = foreign {
            let message = format!(
                "database {database} exists and belongs to {}; set spec.database.name to another name, or rename it",
                there.owner
            );
            return Err(PassError::Refused(Reason::Taken, message));
        }
        let ops = plan::shell(desired, &cluster, &operator);
        if ops.is_empty() {
            return Ok(cluster);
        }
        if self.memory.settled.is_some() {
            self.drifted(state, &abouts(&ops)).await?;
        }
        tracing::info!(tenant = %desired.slug, database, "creating or repairing the tenant's roles and database");
        logins.apply(&ops, None).await?;
        Ok(introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?)
    }

    /// Schema `dl`, the fence, the bootstrap script.
    async fn open(&mut self, state: &TenantState, logins: &mut Logins<'_>) -> Result<(), PassError> {
        let conn = logins.get(As::Owner).await?;
        migrate::tenant(conn).await?;
        if self.memory.epoch.is_none() {
            self.memory.epoch = Some(tenants::claim_epoch(conn).await?);
        }
        let Some(bootstrap) = &self.tenant.spec.database.bootstrap else { return Ok(()) };
        if tenants::bootstrapped(conn).await? {
            return Ok(());
        }
        let reference = &bootstrap.config_map_ref;
        let map = self.snapshot.config_maps.get(&(state.object.namespace.clone(), reference.name.clone()));
        let script = map.and_then(|data| data.get(&reference.key)).ok_or_else(|| {
            let message = format!(
                "bootstrap names ConfigMap {} key {}, which is not there; apply it",
                reference.name, reference.key
            );
            PassError::Refused(Reason::ConfigMapNotFound, message)
        })?;
        tracing::info!(tenant = %state.slug, config_map = %reference.name, "running the bootstrap script");
        let done = tenants::bootstrap(conn, script).await;
        logins.leave_owner().await;
        done.map_err(|error| match &error {
            PgError::Sqlstate { code, message, .. } => PassError::Refused(
                Reason::BootstrapFailed,
                format!("the bootstrap script failed and nothing of it stands: PostgreSQL answered {code}: {message}"),
            ),
            _ => error.into(),
        })
    }

    /// Plans and applies until nothing is left to do; an entity whose statement fails is closed and planned again.
    async fn settle(
        &mut self,
        desired: &Desired,
        mut cluster: Cluster,
        mut db: TenantDb,
        mut closed: BTreeMap<String, Finding>,
        logins: &mut Logins<'_>,
        state: &mut TenantState,
    ) -> Result<(Outcome, TenantDb), PassError> {
        let generations = generations(state, desired);
        let drift = self.memory.settled.as_ref() == Some(&generations);
        self.memory.settled = None;
        let (mut n_applied, mut n_moved) = (0, 0);
        loop {
            let operator = self.installation.operator().role;
            let mut outcome = plan::contents(desired, &cluster, &db, &closed, &operator, &mut chance::ulid);
            if outcome.ops.is_empty() {
                self.memory.settled = Some(generations);
                return Ok((outcome, db));
            }
            // a policy that is new says which functions it calls only when it stands: they are granted in a second round
            if n_applied == ROUNDS {
                let message = format!(
                    "PostgreSQL took every statement and still differs in: {}; an object may belong to another role",
                    abouts(&outcome.ops)
                );
                outcome.problems.push(Finding::new(Reason::NotOwned, message));
                return Ok((outcome, db));
            }
            // a key that was revoked in the database is no drift: its role, claims and permission set follow
            let follows = |op: &Op| op.about == plan::CLOSE_KEYS;
            if drift && n_applied == 0 && !outcome.ops.iter().any(follows) {
                self.drifted(state, &abouts(&outcome.ops)).await?;
            }
            match logins.apply(&outcome.ops, self.memory.epoch).await {
                Ok(()) => n_applied += 1,
                Err(ApplyError::Entity { entity, message }) => {
                    closed.insert(entity, Finding::new(Reason::PolicyRefused, message));
                }
                // somebody works on the tables at this moment; nothing of the operation stands
                Err(error @ ApplyError::Moved { .. }) if n_moved < ROUNDS => {
                    tracing::info!(tenant = %desired.slug, %error, "planning again");
                    n_moved += 1;
                }
                Err(error) => return Err(error.into()),
            }
            let database = desired.database.as_str();
            cluster = introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?;
            db = introspect::tenant_db(logins.get(As::Owner).await?).await?;
        }
    }

    async fn drifted(&self, state: &TenantState, what: &str) -> Result<(), PassError> {
        let note = format!("the database was changed by hand; repairing: {what}");
        tracing::warn!(tenant = %state.slug, "{note}");
        // the keys are what they were, and this pass does not know them yet
        let mut told = self.memory.last.clone().unwrap_or_else(|| state.clone());
        told.findings.retry = Some((Reason::Drifted, note.clone()));
        self.source.report(&self.memory.told.statuses(&[told], &[], &Vec::new())).await?;
        Ok(self
            .source
            .event(&state.object, Event { reason: "Drifted".to_owned(), note, warning: true })
            .await?)
    }
}

fn abouts(ops: &[Op]) -> String {
    let abouts: Vec<&str> = ops.iter().map(|op| op.about.as_str()).collect();
    abouts.join(", ")
}

fn generations(state: &TenantState, desired: &Desired) -> Generations {
    let finder = |key: &KeySpec| key.secret.as_ref().map(|secret| secret.finder.clone());
    let keys = desired.keys.iter().map(|key| (key.uid.clone(), (key.generation, finder(key))));
    keys.chain([(state.object.uid.clone(), (state.generation, None))]).collect()
}

/// Entities that ask for what this version does not serve stay closed: `entities[<name>]...` in a finding.
fn closed(findings: &Findings) -> BTreeMap<String, Finding> {
    let mut closed = BTreeMap::new();
    for (_, text) in &findings.stalled {
        let name =
            text.split_once("entities[").and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
        if let Some(name) = name {
            closed.insert(name.to_owned(), Finding::new(Reason::NotServedYet, text.clone()));
        }
    }
    closed
}
