//! From a pass to what is reported: states filled in, statuses with the times of the last turn.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_crds::{self as crds, ApiKey, Reason, ResolvedPermission, Tenant};
use rowgate_pg::introspect::actual::{Key, TenantDb};
use rowgate_sql::catalog::{Action, PermissionRecord};

use crate::desired::convert::exposed;
use crate::desired::{Desired, KeySpec};
use crate::entropy;
use crate::plan::{Finding, Outcome};
use crate::secrets::rotation;
use crate::source::{ObjectRef, Status, StatusReport};
use crate::status::{ApiKeyFacts, Findings, KeyState, Replicas, TenantFacts, TenantState, Transitions};

/// What was last reported of each object, so that a time says when a status turned, and nothing is said twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusCache {
    /// By uid.
    reported: Arc<Mutex<HashMap<Box<str>, Reported>>>,
    /// Tenants of which a pass has found that the last one's state does not hold any more, until it ends; by uid.
    revised: Arc<Mutex<BTreeSet<String>>>,
    /// The data plane's address, for `status.endpoints`.
    pub(crate) api_url: String,
}

#[derive(Debug, Clone, Copy)]
struct Reported {
    transitions: Transitions,
    /// Of all that the status was made of, times at which conditions turned left out.
    facts: u64,
}

/// A Tenant before a pass: what the pass before found out, or else what its status says, stands until this one knows
/// better.
pub(crate) fn known(tenant: &Tenant, keys: &[&ApiKey], last: Option<&TenantState>) -> TenantState {
    let status = tenant.status.clone().unwrap_or_default();
    let mut known = last.cloned().unwrap_or_else(|| TenantState {
        object: tenant.into(),
        generation: 0,
        findings: Findings::default(),
        done: false,
        gone: false,
        replaced: false,
        id: status.tenant_id.as_deref().and_then(|id| id.parse().ok()),
        slug: String::new(),
        database: status.database.unwrap_or_default(),
        served: None,
        entities: status.entities.and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        shared: status.shared.into(),
        keys: Vec::new(),
        transitions: Transitions::of(&status.conditions),
        login_failure: None,
        next_due: None,
    });
    let mut before: BTreeMap<String, KeyState> =
        std::mem::take(&mut known.keys).into_iter().map(|key| (key.object.uid.clone(), key)).collect();
    known.keys = keys
        .iter()
        .map(|key| {
            let last = key.metadata.uid.as_ref().and_then(|uid| before.remove(uid));
            known_key(key, last)
        })
        .collect();
    TenantState {
        generation: tenant.metadata.generation.unwrap_or(0),
        findings: Findings::default(),
        done: false,
        slug: tenant.slug().to_owned(),
        database: tenant.spec.database.name.clone().unwrap_or(known.database),
        next_due: None,
        ..known
    }
}

/// The same of a key.
pub(crate) fn known_key(key: &ApiKey, last: Option<KeyState>) -> KeyState {
    let status = key.status.clone().unwrap_or_default();
    let known = last.unwrap_or_else(|| KeyState {
        object: key.into(),
        generation: 0,
        findings: Findings::default(),
        gone: false,
        id: status.api_key_id.as_deref().and_then(|id| id.parse().ok()),
        role: status.role,
        served: None,
        secret_name: String::new(),
        expires_at: None,
        revoked_at: status.revoked_at.map(|time| time.0.to_string()),
        last_used_at: status.last_used_at.map(|time| time.0),
        current_secret: status.current_secret,
        previous_secret_expires_at: status.previous_secret_expires_at.map(|time| time.0),
        next_rotation: status.next_rotation.map(|time| time.0),
        permissions: status.permissions.into(),
        transitions: Transitions::of(&status.conditions),
    });
    KeyState {
        generation: key.metadata.generation.unwrap_or(0),
        findings: Findings::default(),
        secret_name: key.secret_name().to_owned(),
        expires_at: key.spec.expires_at.as_ref().map(|time| time.0.to_string()),
        ..known
    }
}

/// A key whose Tenant is not there.
pub(crate) fn orphan(key: &ApiKey) -> KeyState {
    let mut state = known_key(key, None);
    let message = format!("there is no Tenant {} in this namespace; apply it", key.spec.tenant_ref.name);
    state.findings.stalled.push((Reason::TenantNotFound, message));
    state
}

/// Fills in what a converged plan says. `now` is the database's clock.
pub(crate) fn outcome(
    state: &mut TenantState,
    desired: &Desired,
    outcome: &Outcome,
    db: &TenantDb,
    now: Timestamp,
) {
    // what is not served yet is reported already, without the entity's name before it
    let is_reported = |finding: &Finding| finding.reason == Reason::NotServedYet;
    let new = outcome.problems.iter().filter(|finding| !is_reported(finding));
    state.findings.stalled.extend(new.map(|finding| (finding.reason, finding.message.clone())));
    state.findings.warnings.clone_from(&outcome.notes);
    state.entities = outcome.entities.len();
    state.shared = granted(desired, db, rowgate_core::role::SHARED_ROLE);
    let specs: HashMap<&str, &KeySpec> = desired.keys.iter().map(|key| (key.uid.as_str(), key)).collect();
    let sets = db.permission_sets.keys().filter(|set| set.starts_with("set_"));
    let sets: BTreeMap<&str, Arc<[ResolvedPermission]>> =
        sets.map(|set| (set.as_str(), granted(desired, db, set))).collect();
    for key in &mut state.keys {
        let Some(spec) = specs.get(key.object.uid.as_str()) else { continue };
        let row = db.keys.get(&spec.id);
        key.id = row.map(|_| spec.id.clone());
        key.role = Some(spec.role().to_string());
        key.revoked_at = row.and_then(|row| row.revoked_at.clone());
        (key.current_secret, key.previous_secret_expires_at, key.next_rotation) = (None, None, None);
        row.iter().for_each(|row| rotation(key, spec, row, now));
        let set = row.and_then(|row| sets.get(row.set_role.as_deref()?));
        key.permissions = set.cloned().unwrap_or_default();
        let problems = outcome.key_problems.get(&spec.id).into_iter().flatten();
        key.findings.stalled.extend(problems.map(|finding| (finding.reason, finding.message.clone())));
    }
    state.next_due = next_due(&state.keys, now);
}

/// From which generation on each key is as it is: the one of `last`, unless something of the key is another now. Without
/// `last` it is the newest. So a change of one key does not make all others wait for the replicas.
pub(crate) fn since(state: &mut TenantState, generation: i64, last: Option<&TenantState>) {
    let before: HashMap<&str, &KeyState> =
        last.iter().flat_map(|last| &last.keys).map(|key| (key.object.uid.as_str(), key)).collect();
    for key in &mut state.keys {
        let same = before.get(key.object.uid.as_str()).filter(|before| is_as(key, before));
        key.served = same.and_then(|before| before.served).or(Some(generation));
    }
}

/// Whether a key is in the database as it was before.
fn is_as(key: &KeyState, before: &KeyState) -> bool {
    fn tuple(key: &KeyState) -> impl PartialEq {
        let secrets = (&key.current_secret, key.previous_secret_expires_at);
        let ends = (&key.expires_at, &key.revoked_at);
        let status = (&key.findings.stalled, &key.permissions);
        (key.generation, &key.id, &key.role, secrets, ends, status)
    }
    tuple(key) == tuple(before)
}

/// How far the time of a key's last use must move to be reported again: a key in use must not cause a status write with
/// every resync.
const LAST_USED_STEP: SignedDuration = SignedDuration::from_secs(60);

/// Fills in when keys were last used. What the status said before stays while it is nearly true.
pub(crate) fn uses(state: &mut TenantState, uses: &BTreeMap<Ulid, Timestamp>) {
    for key in &mut state.keys {
        let Some(used) = key.id.as_ref().and_then(|id| uses.get(id)) else { continue };
        let used = Timestamp::from_second(used.as_second()).unwrap_or(*used);
        if key.last_used_at.is_none_or(|reported| LAST_USED_STEP <= used.duration_since(reported).abs()) {
            key.last_used_at = Some(used);
        }
    }
}

/// What is said of a live key's secrets.
fn rotation(key: &mut KeyState, spec: &KeySpec, row: &Key, now: Timestamp) {
    let Some(current) = rotation::current(spec, row).filter(|_| row.revoked_at.is_none()) else { return };
    key.current_secret = Some(current.finder.clone());
    key.previous_secret_expires_at = rotation::previous(current, row, now).map(|(_, end)| end);
    key.next_rotation = rotation::due(spec, row, now);
}

/// How long it is until the first of these keys' secrets is to be replaced or dies, or a key does.
fn next_due(keys: &[KeyState], now: Timestamp) -> Option<Duration> {
    let times = keys.iter().filter(|key| key.revoked_at.is_none()).flat_map(|key| {
        let expiry = key.expires_at.as_deref().and_then(|at| at.parse().ok());
        [expiry, key.previous_secret_expires_at, key.next_rotation]
    });
    let next = times.flatten().filter(|at| now < *at).min()?;
    Duration::try_from(next.duration_since(now)).ok()
}

fn granted(desired: &Desired, db: &TenantDb, role: &str) -> Arc<[ResolvedPermission]> {
    let records = db.permission_sets.get(role).map(|set| &set.permissions[..]).unwrap_or_default();
    records.iter().map(|record| resolved(desired, record)).collect()
}

fn resolved(desired: &Desired, record: &PermissionRecord) -> ResolvedPermission {
    let entity = desired.entities.iter().find(|entity| entity.name == record.entity);
    let nothing = BTreeMap::new();
    let mappings = entity.map_or(&nothing, |entity| &entity.mappings);
    ResolvedPermission {
        entity: record.entity.to_string(),
        action: match record.action {
            Action::Read => crds::Action::Read,
            Action::Create => crds::Action::Create,
            Action::Update => crds::Action::Update,
            Action::Delete => crds::Action::Delete,
            Action::Execute => crds::Action::Execute,
        },
        fields: record.columns.iter().map(|column| exposed(mappings, column).to_owned()).collect(),
    }
}

impl StatusCache {
    pub(crate) fn new(api_url: String) -> StatusCache {
        StatusCache { reported: Arc::default(), revised: Arc::default(), api_url }
    }

    /// The state of the last pass over the Tenant is outdated and not reported again, until
    /// [`StatusCache::finish_revision`].
    pub(crate) fn revise(&self, uid: &str) {
        self.revised.lock().insert(uid.to_owned());
    }

    /// The pass has come to its end.
    pub(crate) fn finish_revision(&self, uid: &str) {
        self.revised.lock().remove(uid);
    }

    /// Whether a pass is about to say something else.
    pub(crate) fn is_revised(&self, uid: &str) -> bool {
        self.revised.lock().contains(uid)
    }

    /// The statuses of a Tenant and its keys, ready to be reported. `all`: also those that are what they were.
    pub(crate) fn tenant(&self, tenant: &TenantState, replicas: &Replicas, all: bool) -> Vec<StatusReport> {
        let now = now();
        let mut reports = Vec::new();
        for key in tenant.keys.iter().filter(|key| !key.gone) {
            reports.extend(self.key(key, Some(tenant), replicas, all, now));
        }
        if !tenant.gone {
            let facts = TenantFacts::of(tenant, replicas, &self.api_url);
            reports.extend(self.one(&tenant.object, tenant.transitions, all, &facts, |before| {
                Status::Tenant(Box::new(facts.status(before, now)))
            }));
        }
        reports
    }

    /// The status of a key without a Tenant, if it is another one than before.
    pub(crate) fn orphan(&self, key: &KeyState) -> Option<StatusReport> {
        self.key(key, None, &Replicas::default(), false, now())
    }

    /// Forgets the objects that are there no more.
    pub(crate) fn retain(&self, uids: &HashSet<&str>) {
        let mut reported = self.reported.lock();
        reported.retain(|uid, _| uids.contains(&**uid));
        drop(reported);
        self.revised.lock().retain(|uid| uids.contains(uid.as_str()));
    }

    fn key(
        &self,
        key: &KeyState,
        tenant: Option<&TenantState>,
        replicas: &Replicas,
        all: bool,
        now: Timestamp,
    ) -> Option<StatusReport> {
        let facts = ApiKeyFacts::of(key, tenant, replicas, now);
        self.one(&key.object, key.transitions, all, &facts, |before| {
            Status::ApiKey(Box::new(facts.status(before, now)))
        })
    }

    /// `make` builds the status from what is `said`, and from when its conditions turned before.
    fn one(
        &self,
        object: &ObjectRef,
        in_object: Transitions,
        all: bool,
        facts: &impl Hash,
        make: impl FnOnce(Transitions) -> Status,
    ) -> Option<StatusReport> {
        let mut hasher = DefaultHasher::new();
        facts.hash(&mut hasher);
        let facts = hasher.finish();
        let mut reported = self.reported.lock();
        let before = reported.get(&*object.uid).copied();
        let new = before.is_none_or(|before| before.facts != facts);
        if !new && !all {
            return None;
        }
        let status = make(before.map_or(in_object, |before| before.transitions));
        if new {
            let transitions = Transitions::of(status.conditions());
            reported.insert(object.uid.as_str().into(), Reported { transitions, facts });
        }
        Some(StatusReport { object: object.clone(), status })
    }
}

/// In whole seconds, as Kubernetes writes times.
fn now() -> Timestamp {
    let now = entropy::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests;
