//! One piece of the loop's work, run beside the others: a pass over a Tenant, the end of one that vanished, the release of
//! a key without a Tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;
use rowgate_crds::{ApiKey, Reason, Relationship, Tenant, WebhookSubscription};
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::{leader, replicas, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::apply::connection_cache::ConnectionCache;
use crate::controller::hang;
use crate::controller::pass_slots::{PassSlots, QUICK_PASS_TIMEOUT, SLOW_PASS_TIMEOUT};
use crate::pass::{Memory, Pass, PassError, free_key, is_deleting, is_forced};
use crate::removal::{adopted, migrations, retained, revocation};
use crate::servers::Servers;
use crate::source::{ObjectRef, ResourceSource, Snapshot};
use crate::status::TenantState;
use crate::status::report;
use crate::status::reporter::Reporter;

/// What every piece of work needs.
pub(crate) struct Shared<S> {
    pub(crate) source: Arc<S>,
    /// On the server of the control database.
    pub(crate) installation: Arc<Installation>,
    pub(crate) servers: Servers,
    pub(crate) reporter: Reporter,
    pub(crate) pass_slots: PassSlots,
    pub(crate) connections: ConnectionCache,
    /// What the fence of the control database is asked with.
    pub(crate) lead: i64,
    /// Networks that webhooks may reach although they are no public ones.
    pub(crate) webhook_ranges: Vec<IpNet>,
}

/// A pass over one Tenant.
pub(crate) struct Job<S> {
    pub(crate) shared: Arc<Shared<S>>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) keys: Vec<Arc<ApiKey>>,
    pub(crate) relationships: Vec<Arc<Relationship>>,
    pub(crate) subscriptions: Vec<Arc<WebhookSubscription>>,
    pub(crate) probe: bool,
    /// The last pass took long, or its database did not answer.
    pub(crate) slow: bool,
    /// What it follows is no longer what is asked for, so that it need not come to its end.
    pub(crate) cut: CancellationToken,
    pub(crate) memory: Memory,
}

/// What became of it.
pub(crate) struct Passed {
    pub(crate) uid: String,
    pub(crate) state: Arc<TenantState>,
    pub(crate) slow: bool,
    pub(crate) memory: Memory,
}

impl<S: ResourceSource> Job<S> {
    /// Always returns what to report for the Tenant, whether its pass fails, panics or never ends.
    pub(crate) async fn run(mut self) -> Passed {
        let began = Instant::now();
        let keys: Vec<&ApiKey> = self.keys.iter().map(|key| &**key).collect();
        let relationships: Vec<&Relationship> = self.relationships.iter().map(|it| &**it).collect();
        let subscriptions: Vec<&WebhookSubscription> = self.subscriptions.iter().map(|it| &**it).collect();
        let beside = (&keys[..], &relationships[..], &subscriptions[..]);
        let mut before = report::known(&self.tenant, beside, self.memory.last());
        let statuses = self.memory.statuses();
        let (shared, cut) = (self.shared.clone(), self.cut.clone());
        // a failure is reported already, and every pass retries it
        let has_failed = self.memory.last().is_some_and(|last| last.findings.retry.is_some());
        let is_slow = Arc::new(Notify::new());
        let reported = (!has_failed).then(|| before.clone());
        let outlasts = hang::outlasts(&shared, &statuses, reported, &is_slow, &cut);
        let ended = tokio::select! {
            biased;
            passed = hang::contained(self.passes(is_slow.clone())) => passed.map_err(|_| (Reason::Retrying, hang::PANICKED.to_owned())),
            why = outlasts => Err(why),
        };
        let state = match ended {
            Ok(state) => state,
            Err(why) => {
                // whatever it was in the middle of, the next one begins with nothing of it
                self.memory.epoch = None;
                before.migrations_secret = self.memory.migrations_secret.clone().or(before.migrations_secret);
                before.findings.retry = Some(why);
                Arc::new(before)
            }
        };
        self.shared.source.passed(began.elapsed());
        let uid = self.tenant.metadata.uid.clone().unwrap_or_default();
        Passed { uid, state, slow: self.slow, memory: self.memory }
    }

    /// Runs until one pass has finished, in a slot of its kind.
    async fn passes(&mut self, is_slow: Arc<Notify>) -> Arc<TenantState> {
        let pass_slots = self.shared.pass_slots.clone();
        let mut slot = pass_slots.enter(self.slow).await;
        let mut limit = SLOW_PASS_TIMEOUT;
        loop {
            let mut pass = Box::pin(pass(
                &self.shared,
                &self.snapshot,
                &self.tenant,
                (&self.keys, &self.relationships, &self.subscriptions),
                self.probe,
                &mut self.memory,
            ));
            if !self.slow {
                if let Ok(state) = timeout(QUICK_PASS_TIMEOUT, &mut pass).await {
                    break state;
                }
                self.slow = true;
                if let Some(free) = pass_slots.try_slow() {
                    slot = free;
                } else {
                    drop(pass);
                    drop(slot);
                    slot = pass_slots.enter(true).await;
                    continue;
                }
            }
            is_slow.notify_one();
            let mut done = timeout(limit, &mut pass).await.ok();
            while done.is_none() && !pass_slots.crowded() {
                done = timeout(limit, &mut pass).await.ok();
            }
            if let Some(state) = done {
                break state;
            }
            // started again when a slot is free; a pass may be cut off anywhere
            limit *= 2;
            drop(pass);
            drop(slot);
            slot = pass_slots.enter(true).await;
        }
    }
}

/// What belongs to a Tenant.
type Beside<'a> = (&'a [Arc<ApiKey>], &'a [Arc<Relationship>], &'a [Arc<WebhookSubscription>]);

async fn pass<S: ResourceSource>(
    shared: &Shared<S>,
    snapshot: &Snapshot,
    tenant: &Tenant,
    (keys, relationships, subscriptions): Beside<'_>,
    probe: bool,
    memory: &mut Memory,
) -> Arc<TenantState> {
    let (deleting, keys) = keys.iter().map(|key| &**key).partition(|key| is_deleting(&key.metadata));
    let (leaving, relationships): (Vec<_>, Vec<_>) =
        relationships.iter().map(|it| &**it).partition(|it: &&Relationship| is_deleting(&it.metadata));
    let (parting, subscriptions): (Vec<_>, Vec<_>) =
        subscriptions.iter().map(|it| &**it).partition(|it: &&WebhookSubscription| is_deleting(&it.metadata));
    let pass = Pass {
        source: &*shared.source,
        installation: &shared.installation,
        servers: &shared.servers,
        server: shared.installation.clone(),
        reporter: &shared.reporter,
        connections: &shared.connections,
        lead: shared.lead,
        webhook_ranges: &shared.webhook_ranges,
        snapshot,
        tenant,
        keys,
        deleting,
        relationships,
        subscriptions,
        probe,
        versions: BTreeMap::new(),
        announced: None,
        memory,
    };
    let state = pass.run().await;
    // without the object each pass takes its way out of the database, so that nothing is waited for
    for relationship in leaving {
        let object = ObjectRef::from(relationship);
        if let Err(error) = shared.source.release(&object).await {
            tracing::warn!(%object, %error, "cannot release the Relationship; retrying");
        }
    }
    // one that still stands in the database goes on delivering, so that its object stays until it does not
    let is_gone = state.done || is_deleting(&tenant.metadata) && state.gone;
    for subscription in parting.into_iter().filter(|it| is_gone || is_forced(&it.metadata)) {
        let object = ObjectRef::from(subscription);
        if let Err(error) = shared.source.release(&object).await {
            tracing::warn!(%object, %error, "cannot release the WebhookSubscription; retrying");
        }
    }
    state
}

/// A Tenant that is there no more, without a word before: its keys are revoked, its database is kept and served no more.
/// `epoch`: its fence, if it was taken. `spared`: it is there, but cannot be read, so that it is served on, and its keys
/// die but for these.
pub(crate) async fn retire<S: ResourceSource>(
    shared: &Shared<S>,
    uid: &str,
    mut epoch: Option<i64>,
    spared: Option<Vec<String>>,
) -> Result<(), PassError> {
    let mut conn = session::connect(&shared.installation.operator()).await?;
    let Some(record) = tenants::find_by_uid(&mut conn, uid).await? else { return Ok(()) };
    if record.phase == tenants::Phase::Retained {
        return Ok(());
    }
    let server = shared.servers.of_record(&*shared.source, &record).await?;
    // first, and until it is done: a replica that is cut off from the control database serves them still
    let (kept, is_gone) = (spared.as_deref().unwrap_or_default(), spared.is_none());
    revocation::revoke_others(&server, &shared.connections, shared.lead, &mut epoch, &record, kept).await?;
    if !is_gone {
        return Ok(());
    }
    let from = format!("{}/{}", record.namespace, record.name);
    let mut operator = session::connect(&server.operator()).await?;
    let cluster = introspect::cluster(&mut operator, &record.id, &record.database).await?;
    if adopted::is_adopted(&record, &cluster) || adopted::is_unmade(&record, &cluster) {
        // its row stays until that is done, so that it is tried again; no key of it works meanwhile
        adopted::give_back(&server, &shared.connections, shared.lead, &record, &cluster).await?;
        retained::forget(shared.lead, &record, &mut conn).await?;
        replicas::wake(&mut conn).await?;
        tracing::info!(tenant = %record.slug, id = %record.id, from, "the Tenant is gone; its database is as it was before");
        return Ok(());
    }
    migrations::close(&server, &shared.connections, shared.lead, &record).await?;
    let mut open = leader::fence(&mut conn, shared.lead).await?;
    tenants::set_retained(&mut open, &record.id).await?;
    open.commit().await.map_err(PgError::from)?;
    replicas::wake(&mut conn).await?;
    tracing::info!(tenant = %record.slug, id = %record.id, from, "the Tenant is gone; its keys are revoked and its database is kept");
    Ok(())
}

/// Lets go of a key whose Tenant is not there, once that Tenant's keys are revoked. False: they are not yet.
pub(crate) async fn release_orphan<S: ResourceSource>(
    shared: &Shared<S>,
    key: &ApiKey,
) -> Result<bool, String> {
    let forced = is_forced(&key.metadata);
    let object = ObjectRef::from(key);
    let pending = async {
        let mut conn = session::connect(&shared.installation.operator()).await?;
        let records = tenants::not_retained(&mut conn).await?;
        let its =
            |it: &tenants::Record| it.namespace == object.namespace && it.name == key.spec.tenant_ref.name;
        Ok::<bool, PgError>(records.iter().any(its))
    };
    let warning = match pending.await {
        Ok(false) => None,
        Ok(true) if !forced => return Ok(false),
        Err(error) if !forced => return Err(error.to_string()),
        Ok(true) => Some("whether the keys of its Tenant are revoked is unknown".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    let warning = warning.map(|why| {
        let tenant = &key.spec.tenant_ref.name;
        format!(
            "released by annotation although {why}; left behind: the key, in the database of Tenant {tenant}"
        )
    });
    free_key(&*shared.source, key, &object, warning).await.map_err(|error| error.to_string())?;
    Ok(true)
}
