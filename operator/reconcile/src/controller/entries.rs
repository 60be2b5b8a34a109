//! What the loop knows of each tenant and of keys without one, and when each is due.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::backoff::Backoff;
use rowgate_crds::{ApiKey, Kind, Reason, Relationship, Tenant, WebhookSubscription};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::quiet::Counters;
use super::standing::Standing;
use super::{Controller, Done, RETRY_DELAY};
use crate::entropy;
use crate::pass::{Memory, is_deleting};
use crate::source::inputs::{Inputs, Revision, lost};
use crate::source::{ObjectRef, ResourceSource, Snapshot};
use crate::status::TenantState;
use crate::status::report;

/// The longest pause after passes that fail again and again.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);

/// One tenant.
pub(super) struct Entry {
    /// `None`: its object vanished, and it is to be retired.
    pub(super) tenant: Option<Arc<Tenant>>,
    /// The uids of keys that live on without `tenant`: it is there, but cannot be read.
    pub(super) spared: Option<Vec<String>>,
    pub(super) inputs: Inputs,
    /// What the last pass found.
    pub(super) state: Option<Arc<TenantState>>,
    /// `None`: a pass is under way.
    pub(super) memory: Option<Memory>,
    pub(super) due: Instant,
    /// When a key or secret is due, by the last pass.
    pub(super) dated: Option<Instant>,
    /// What its server had counted before the last pass over it.
    pub(super) counters: Option<Counters>,
    /// When that pass ended.
    pub(super) compared: Option<Instant>,
    /// The last pass was left out.
    pub(super) rests: bool,
    /// Something changed since the pass began.
    pub(super) wanted: bool,
    pub(super) slow: bool,
    backoff: Backoff,
    /// Ends the pass that is under way.
    cut: CancellationToken,
    /// When the logins were tried last.
    pub(super) probed: Option<Instant>,
    /// Whether the pass compares and reports everything, changed or not.
    pub(super) whole: bool,
    /// The standing with the replicas that was reported.
    pub(super) reported: Option<Standing>,
}

/// A key without a Tenant.
pub(super) struct Orphan {
    pub(super) key: Arc<ApiKey>,
    revision: Revision,
    /// When it is to be released, if it is being deleted.
    pub(super) due: Option<Instant>,
}

impl Entry {
    pub(super) fn new(memory: Memory) -> Entry {
        Entry {
            tenant: None,
            spared: None,
            inputs: Inputs::default(),
            state: None,
            memory: Some(memory),
            due: Instant::now(),
            dated: None,
            counters: None,
            compared: None,
            rests: false,
            wanted: false,
            slow: false,
            backoff: Backoff::new(RETRY_DELAY),
            cut: CancellationToken::new(),
            probed: None,
            whole: false,
            reported: None,
        }
    }

    /// Whether a pass is under way.
    pub(super) fn busy(&self) -> bool {
        self.memory.is_none()
    }

    /// A pass begins; it is cut off with this, or comes to its end.
    pub(super) fn begin(&mut self) -> CancellationToken {
        self.cut = CancellationToken::new();
        self.cut.clone()
    }

    /// After a pass.
    pub(super) fn finish(&mut self, state: Arc<TenantState>, slow: bool, memory: Memory, resync: Duration) {
        let retry = state.findings.retry.as_ref().map(|(reason, _)| *reason);
        let retries = state.keys.iter().filter_map(|key| key.findings.retry.as_ref());
        let asked_for = [Reason::Paused, Reason::Observing];
        let failed =
            retry.into_iter().chain(retries.map(|(reason, _)| *reason)).any(|it| !asked_for.contains(&it));
        self.slow = slow || retry == Some(Reason::DatabaseUnavailable);
        let (now, first) = (Instant::now(), self.state.is_none());
        let pause = match failed {
            true => self.pause(resync),
            // spread from the first time on, so that not all are looked at at once
            false => {
                self.backoff.reset();
                resync.mul_f64(if first { entropy::between(0.3, 0.95) } else { entropy::between(0.85, 0.95) })
            }
        };
        // a moment later than the database said: what is looked for has come then
        let dated = state.next_due.map(|it| it + super::AWAITING_MAX_BACKOFF);
        self.dated = dated.map(|it| now + it);
        self.compared = Some(now);
        let due = now + dated.map_or(pause, |it| it.min(pause));
        // never before what was asked for meanwhile
        self.due = if self.wanted { now } else { due };
        (self.state, self.memory) = (Some(state), Some(memory));
    }

    /// In place of a pass that would find what the last one found.
    pub(super) fn rest(&mut self, resync: Duration) {
        self.rests = true;
        let due = Instant::now() + resync.mul_f64(entropy::between(0.85, 0.95));
        self.due = self.dated.map_or(due, |it| it.min(due));
    }

    /// After a pass over an object that no longer exists: it is retired at once.
    pub(super) fn cut(&mut self, memory: Memory) {
        (self.memory, self.due) = (Some(memory), Instant::now());
    }

    /// Takes note of the Secrets that the last pass left, and that are `seen` to be there.
    pub(super) fn note_secrets(&mut self, seen: impl Fn(&str, &str) -> bool) {
        let Some(memory) = self.memory.as_ref().filter(|_| self.inputs.misses_some()) else { return };
        for (_, name) in memory.secrets().filter(|(namespace, name)| seen(namespace, name)) {
            self.inputs.is_there(name);
        }
    }

    /// After a failed retirement.
    pub(super) fn failed_vanished(&mut self, memory: Memory, resync: Duration) {
        self.memory = Some(memory);
        self.due = Instant::now() + self.pause(resync);
    }

    /// After a pass that failed.
    fn pause(&mut self, resync: Duration) -> Duration {
        let max = MAX_RETRY_DELAY.min(resync.mul_f64(0.5)).max(RETRY_DELAY);
        self.backoff.pause(max, entropy::between(0.0, 1.0))
    }
}

impl<S: ResourceSource + 'static> Controller<S> {
    /// Compares what is there now with what the last passes saw, and makes due what differs.
    pub(super) fn take(&mut self, snapshot: Snapshot) {
        let now = Instant::now();
        let mut keys: HashMap<(&str, &str), Vec<Arc<ApiKey>>> = HashMap::new();
        for key in &snapshot.api_keys {
            let namespace = key.metadata.namespace.as_deref().unwrap_or_default();
            keys.entry((namespace, &key.spec.tenant_ref.name)).or_default().push(key.clone());
        }
        let mut relationships: HashMap<(&str, &str), Vec<Arc<Relationship>>> = HashMap::new();
        for relationship in &snapshot.relationships {
            let namespace = relationship.metadata.namespace.as_deref().unwrap_or_default();
            let tenant = (namespace, relationship.spec.tenant_ref.name.as_str());
            relationships.entry(tenant).or_default().push(relationship.clone());
        }
        let mut subscriptions: HashMap<(&str, &str), Vec<Arc<WebhookSubscription>>> = HashMap::new();
        for it in snapshot.subscriptions.iter().filter(|it| !self.is_shown(it)) {
            let namespace = it.metadata.namespace.as_deref().unwrap_or_default();
            subscriptions.entry((namespace, &it.spec.tenant_ref.name)).or_default().push(it.clone());
        }
        let (mut present, mut deleting, mut without) = (BTreeSet::new(), Vec::new(), Vec::new());
        let mut deserted = Vec::new();
        for tenant in &snapshot.tenants {
            let metadata = &tenant.metadata;
            let uid = metadata.uid.clone().unwrap_or_default();
            let name = (
                metadata.namespace.as_deref().unwrap_or_default(),
                metadata.name.as_deref().unwrap_or_default(),
            );
            let keys = keys.remove(&name).unwrap_or_default();
            let relationships = relationships.remove(&name).unwrap_or_default();
            let subscriptions = subscriptions.remove(&name).unwrap_or_default();
            let inputs = Inputs::of(tenant, keys, relationships, subscriptions, &snapshot);
            let statuses = self.statuses.clone();
            let entry = self.entries.entry(uid.clone()).or_insert_with(|| Entry::new(Memory::new(statuses)));
            if entry.tenant.is_none() || inputs.differ(&entry.inputs) {
                (entry.due, entry.wanted) = (now, true);
            }
            // a script that never ends is ended by another one, or with its Tenant
            if inputs.is_another_task(&entry.inputs) {
                entry.cut.cancel();
            }
            (entry.inputs, entry.tenant) = (inputs, Some(tenant.clone()));
            entry.spared = None;
            present.insert(uid);
        }
        for tenant in snapshot.unread_of(Kind::Tenant) {
            let keys = keys.remove(&(tenant.namespace.as_str(), tenant.name.as_str())).unwrap_or_default();
            let statuses = self.statuses.clone();
            let entry =
                self.entries.entry(tenant.uid.clone()).or_insert_with(|| Entry::new(Memory::new(statuses)));
            (entry.tenant, entry.due, entry.wanted) = (None, now, true);
            entry.spared = Some(spared(&keys, &snapshot));
            deleting.extend(keys.into_iter().filter(|key| is_deleting(&key.metadata)));
            let held = relationships.remove(&(tenant.namespace.as_str(), tenant.name.as_str()));
            without.extend(held.into_iter().flatten().filter(|it| is_deleting(&it.metadata)));
            let held = subscriptions.remove(&(tenant.namespace.as_str(), tenant.name.as_str()));
            deserted.extend(held.into_iter().flatten().filter(|it| is_deleting(&it.metadata)));
            present.insert(tenant.uid.clone());
        }
        deserted.extend(subscriptions.into_values().flatten());
        without.extend(relationships.into_values().flatten());
        for (_, entry) in self.entries.iter_mut().filter(|(uid, _)| !present.contains(*uid)) {
            if entry.tenant.take().is_some() || entry.spared.take().is_some() {
                (entry.due, entry.wanted, entry.state) = (now, true, None);
                entry.cut.cancel();
            }
        }
        for uid in std::mem::take(&mut self.without_object).into_iter().filter(|uid| !present.contains(uid)) {
            let statuses = self.statuses.clone();
            self.entries.entry(uid).or_insert_with(|| Entry::new(Memory::new(statuses)));
        }
        self.adopt(keys.into_values().flatten().chain(deleting));
        self.without_tenant(&without);
        self.subscriptions_without_tenant(&deserted);
        let before = std::mem::replace(&mut self.snapshot, Arc::new(snapshot));
        self.subscriptions.compare();
        let now = &self.snapshot;
        if lost(&now.tenants, &before.tenants, |it| &it.metadata)
            || lost(&now.api_keys, &before.api_keys, |it| &it.metadata)
            || lost(&now.relationships, &before.relationships, |it| &it.metadata)
            || lost(&now.subscriptions, &before.subscriptions, |it| &it.metadata)
        {
            let tenants = now.tenants.iter().map(|it| &it.metadata);
            let all = tenants.chain(now.api_keys.iter().map(|it| &it.metadata));
            let all = all.chain(now.relationships.iter().map(|it| &it.metadata));
            let all = all.chain(now.subscriptions.iter().map(|it| &it.metadata));
            let uids: HashSet<&str> = all.filter_map(|metadata| metadata.uid.as_deref()).collect();
            self.statuses.retain(&uids);
            self.shared.reporter.retain(&uids);
        }
    }

    /// As [`Controller::without_tenant`], of subscriptions.
    fn subscriptions_without_tenant(&mut self, subscriptions: &[Arc<WebhookSubscription>]) {
        for subscription in subscriptions {
            match is_deleting(&subscription.metadata) {
                true => self.release(ObjectRef::from(&**subscription)),
                false => {
                    let state = report::orphan_subscription(subscription);
                    let report = self.statuses.orphan_subscription(&state);
                    self.shared.reporter.push(report.into_iter().collect());
                }
            }
        }
    }

    /// Lets go of an object that nothing in a database stands for, in a job of its own.
    fn release(&mut self, object: ObjectRef) {
        let shared = self.shared.clone();
        self.jobs.spawn(async move {
            while let Err(error) = shared.source.release(&object).await {
                tracing::warn!(%object, %error, "cannot release the object; retrying");
                sleep(RETRY_DELAY).await;
            }
            Done::Released
        });
    }

    /// Relationships whose Tenant is not there; of one that cannot be read, those that are being deleted.
    fn without_tenant(&mut self, relationships: &[Arc<Relationship>]) {
        for relationship in relationships {
            if is_deleting(&relationship.metadata) {
                self.release(ObjectRef::from(&**relationship));
            } else {
                let state = report::orphan_relationship(relationship);
                self.shared.reporter.push(self.statuses.orphan_relationship(&state).into_iter().collect());
            }
        }
    }

    /// Keys whose Tenant is not there; of one that cannot be read, those that are being deleted.
    fn adopt(&mut self, keys: impl Iterator<Item = Arc<ApiKey>>) {
        let mut before = std::mem::take(&mut self.orphans);
        let mut orphans = BTreeMap::new();
        for key in keys {
            let uid = key.metadata.uid.clone().unwrap_or_default();
            let revision = Revision::of(&key.metadata);
            let known = before.remove(&uid).filter(|known| known.revision == revision);
            let orphan = known.unwrap_or_else(|| {
                let deleting = is_deleting(&key.metadata);
                if !deleting {
                    let state = report::orphan(&key);
                    self.shared.reporter.push(self.statuses.orphan(&state).into_iter().collect());
                }
                Orphan { key: key.clone(), revision, due: deleting.then(Instant::now) }
            });
            orphans.insert(uid, orphan);
        }
        self.orphans = orphans;
    }
}

/// The keys of a Tenant that cannot be read that are not to be revoked, by uid: those that are wanted, and those that
/// cannot be read.
fn spared(keys: &[Arc<ApiKey>], snapshot: &Snapshot) -> Vec<String> {
    let wanted = keys.iter().filter(|key| !key.spec.revoked && !is_deleting(&key.metadata));
    let wanted = wanted.filter_map(|key| key.metadata.uid.clone());
    wanted.chain(snapshot.unread_of(Kind::ApiKey).map(|key| key.uid.clone())).collect()
}
