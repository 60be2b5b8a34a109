//! From a pass to what is reported: states filled in, statuses with the times of the last turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rowgate_core::name::Ulid;
use rowgate_crds::{self as crds, ApiKey, Reason, ResolvedPermission, Tenant};
use rowgate_pg::actual::{Key, TenantDb};
use rowgate_sql::catalog::{Action, PermissionRecord};

use crate::convert::exposed;
use crate::desired::{Desired, KeySpec};
use crate::plan::{Finding, Outcome};
use crate::rotation;
use crate::source::{ObjectRef, StatusReport};
use crate::status::{self, Findings, KeyState, Replicas, TenantState};

/// The conditions that were last reported, by object, so that a time says when a status turned.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    conditions: Arc<Mutex<BTreeMap<ObjectRef, Vec<Condition>>>>,
    /// The data plane's address, for `status.endpoints`.
    pub(crate) api_url: String,
}

/// The state of a Tenant before anything is known.
pub(crate) fn blank(tenant: &Tenant, keys: &[&ApiKey]) -> TenantState {
    TenantState {
        object: tenant.into(),
        generation: tenant.metadata.generation.unwrap_or(0),
        findings: Findings::default(),
        id: None,
        slug: tenant.slug().to_owned(),
        database: tenant.database_name(),
        served: None,
        entities: 0,
        shared: Vec::new(),
        keys: keys.iter().map(|key| blank_key(key)).collect(),
        next_look: None,
    }
}

pub(crate) fn blank_key(key: &ApiKey) -> KeyState {
    KeyState {
        object: key.into(),
        generation: key.metadata.generation.unwrap_or(0),
        findings: Findings::default(),
        id: None,
        role: None,
        secret_name: key.secret_name().to_owned(),
        expires_at: key.spec.expires_at.as_ref().map(|time| time.0.to_string()),
        revoked_at: None,
        last_used_at: key.status.as_ref().and_then(|status| Some(status.last_used_at.as_ref()?.0)),
        current_secret: None,
        previous_secret_expires_at: None,
        next_rotation: None,
        permissions: Vec::new(),
    }
}

/// A key whose Tenant is not there.
pub(crate) fn orphan(key: &ApiKey) -> KeyState {
    let mut state = blank_key(key);
    let message = format!("there is no Tenant {} in this namespace; apply it", key.spec.tenant_ref.name);
    state.findings.stalled.push((Reason::TenantNotFound, message));
    state
}

/// Fills in what a settled plan says. `now` is the database's clock.
pub(crate) fn outcome(
    state: &mut TenantState,
    desired: &Desired,
    outcome: &Outcome,
    db: &TenantDb,
    now: Timestamp,
) {
    // what is not served yet was told already, without the entity's name before it
    let told = |finding: &Finding| finding.reason == Reason::NotServedYet;
    let new = outcome.problems.iter().filter(|finding| !told(finding));
    state.findings.stalled.extend(new.map(|finding| (finding.reason, finding.message.clone())));
    state.findings.warnings.clone_from(&outcome.notes);
    state.entities = outcome.entities.len();
    state.shared = granted(desired, db, rowgate_core::role::SHARED_ROLE);
    for told in &mut state.keys {
        let Some(spec) = desired.keys.iter().find(|key| key.uid == told.object.uid) else { continue };
        let row = db.keys.get(&spec.id);
        told.id = row.map(|_| spec.id.clone());
        told.role = Some(spec.role().to_string());
        told.revoked_at = row.and_then(|row| row.revoked_at.clone());
        row.iter().for_each(|row| rotation(told, spec, row, now));
        let set = row.and_then(|row| row.set_role.as_deref()).filter(|set| set.starts_with("set_"));
        told.permissions = set.map(|set| granted(desired, db, set)).unwrap_or_default();
        let problems = outcome.key_problems.get(&spec.id).into_iter().flatten();
        told.findings.stalled.extend(problems.map(|finding| (finding.reason, finding.message.clone())));
    }
    state.next_look = next_look(&state.keys, now);
}

/// How far the time of a key's last use has moved when it is told again: a key in use must not write its status with
/// every look.
const USED_ANEW: SignedDuration = SignedDuration::from_secs(60);

/// Fills in when keys were last used. What the status said before stays while it is nearly true.
pub(crate) fn uses(state: &mut TenantState, uses: &BTreeMap<Ulid, Timestamp>) {
    for key in &mut state.keys {
        let Some(used) = key.id.as_ref().and_then(|id| uses.get(id)) else { continue };
        let used = Timestamp::from_second(used.as_second()).unwrap_or(*used);
        if key.last_used_at.is_none_or(|told| USED_ANEW <= used.duration_since(told).abs()) {
            key.last_used_at = Some(used);
        }
    }
}

/// What is said of a live key's secrets.
fn rotation(told: &mut KeyState, spec: &KeySpec, row: &Key, now: Timestamp) {
    let Some(current) = rotation::current(spec, row).filter(|_| row.revoked_at.is_none()) else { return };
    told.current_secret = Some(current.finder.clone());
    told.previous_secret_expires_at = rotation::previous(current, row, now).map(|(_, end)| end);
    told.next_rotation = rotation::due(spec, row, now);
}

/// How long it is until the first of these keys' secrets is to be replaced or dies, or a key does.
fn next_look(keys: &[KeyState], now: Timestamp) -> Option<Duration> {
    let times = keys.iter().filter(|key| key.revoked_at.is_none()).flat_map(|key| {
        let expiry = key.expires_at.as_deref().and_then(|at| at.parse().ok());
        [expiry, key.previous_secret_expires_at, key.next_rotation]
    });
    let next = times.flatten().filter(|at| now < *at).min()?;
    Duration::try_from(next.duration_since(now)).ok()
}

fn granted(desired: &Desired, db: &TenantDb, role: &str) -> Vec<ResolvedPermission> {
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
        },
        fields: record.columns.iter().map(|column| exposed(mappings, column).to_owned()).collect(),
    }
}

impl Told {
    pub(crate) fn new(api_url: String) -> Told {
        Told { conditions: Arc::default(), api_url }
    }

    /// The status of every object, ready to be reported.
    pub(crate) fn statuses(
        &self,
        tenants: &[TenantState],
        orphans: &[KeyState],
        replicas: &Replicas,
    ) -> Vec<StatusReport> {
        let now = Timestamp::now();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let mut told = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reports = Vec::new();
        let mut key = |key: &KeyState, tenant: Option<&TenantState>| {
            let slot = told.entry(key.object.clone()).or_default();
            let status = status::api_key(key, tenant, replicas, slot, now);
            slot.clone_from(&status.conditions);
            let status = serde_json::to_value(status).expect("a status is plain values");
            reports.push(StatusReport { object: key.object.clone(), status });
        };
        orphans.iter().for_each(|orphan| key(orphan, None));
        tenants.iter().for_each(|tenant| tenant.keys.iter().for_each(|state| key(state, Some(tenant))));
        for tenant in tenants {
            let slot = told.entry(tenant.object.clone()).or_default();
            let status = status::tenant(tenant, replicas, slot, &self.api_url, now);
            slot.clone_from(&status.conditions);
            let status = serde_json::to_value(status).expect("a status is plain values");
            reports.push(StatusReport { object: tenant.object.clone(), status });
        }
        reports
    }
}
