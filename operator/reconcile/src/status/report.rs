//! From a pass to what is reported: states filled in.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rowgate_core::name::Ulid;
use rowgate_crds::{
    self as crds, ApiKey, ConditionType, Reason, Relationship, ResolvedPermission, Tenant,
    WebhookSubscription,
};
use rowgate_pg::introspect::actual::{Key, TenantDb};
use rowgate_pg::tenant::events::{Retired, Undecidable};
use rowgate_sql::catalog::{Action, PermissionRecord};

use crate::desired::convert::exposed;
use crate::desired::{Desired, KeySpec};
use crate::plan::{self, Finding, Outcome};
use crate::secrets::rotation;
use crate::status::{
    Finding as StatusFinding, Findings, KeyState, RelationshipState, SubscriptionState, TenantState,
    Transitions,
};

/// A Tenant before a pass: what the pass before found out, or else what its status says, stands until this one knows
/// better.
pub(crate) fn known(
    tenant: &Tenant,
    (keys, relationships, subscriptions): (&[&ApiKey], &[&Relationship], &[&WebhookSubscription]),
    last: Option<&TenantState>,
) -> TenantState {
    let status = tenant.status.clone().unwrap_or_default();
    let mut known = last.cloned().unwrap_or_else(|| TenantState {
        object: tenant.into(),
        generation: 0,
        findings: Findings::default(),
        events: reported(&status.conditions, ConditionType::EventsHealthy),
        hardened: reported(&status.conditions, ConditionType::CatalogHardened),
        done: false,
        gone: false,
        replaced: false,
        id: status.tenant_id.as_deref().and_then(|id| id.parse().ok()),
        slug: String::new(),
        database: status.database.unwrap_or_default(),
        migrations_secret: status.migrations_secret,
        plan: Vec::new(),
        served: None,
        entities: status.entities.and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        shared: status.shared.into(),
        keys: Vec::new(),
        relationships: Vec::new(),
        subscriptions: Vec::new(),
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
    let mut before: BTreeMap<String, RelationshipState> =
        std::mem::take(&mut known.relationships).into_iter().map(|it| (it.object.uid.clone(), it)).collect();
    known.relationships = relationships
        .iter()
        .map(|it| known_relationship(it, it.metadata.uid.as_ref().and_then(|uid| before.remove(uid))))
        .collect();
    let mut before: BTreeMap<String, SubscriptionState> =
        std::mem::take(&mut known.subscriptions).into_iter().map(|it| (it.object.uid.clone(), it)).collect();
    known.subscriptions = subscriptions
        .iter()
        .map(|it| known_subscription(it, it.metadata.uid.as_ref().and_then(|uid| before.remove(uid))))
        .collect();
    TenantState {
        generation: tenant.metadata.generation.unwrap_or(0),
        findings: Findings::default(),
        done: false,
        slug: tenant.slug().to_owned(),
        database: tenant.spec.database.name.clone().unwrap_or(known.database),
        plan: Vec::new(),
        next_due: None,
        ..known
    }
}

fn reported(conditions: &[Condition], kind: ConditionType) -> Option<(bool, StatusFinding)> {
    let kind = format!("{kind:?}");
    let condition = conditions.iter().find(|condition| condition.type_ == kind)?;
    let reason = Reason::ALL.iter().find(|reason| reason.as_str() == condition.reason)?;
    Some((condition.status == "True", (*reason, condition.message.clone())))
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

/// The same of a relationship.
pub(crate) fn known_relationship(
    relationship: &Relationship,
    last: Option<RelationshipState>,
) -> RelationshipState {
    let status = relationship.status.clone().unwrap_or_default();
    let known = last.unwrap_or_else(|| RelationshipState {
        object: relationship.into(),
        generation: 0,
        findings: Findings::default(),
        gone: false,
        served: None,
        joins: status.joins,
        transitions: Transitions::of(&status.conditions),
    });
    RelationshipState {
        generation: relationship.metadata.generation.unwrap_or(0),
        findings: Findings::default(),
        ..known
    }
}

/// The same of a subscription.
pub(crate) fn known_subscription(
    subscription: &WebhookSubscription,
    last: Option<SubscriptionState>,
) -> SubscriptionState {
    let status = subscription.status.clone().unwrap_or_default();
    let known = last.unwrap_or_else(|| SubscriptionState {
        object: subscription.into(),
        generation: 0,
        findings: Findings::default(),
        gone: false,
        id: status.id.as_deref().and_then(|id| id.parse().ok()),
        last_replay: status.last_replay,
        secret_name: String::new(),
        transitions: Transitions::of(&status.conditions),
    });
    SubscriptionState {
        generation: subscription.metadata.generation.unwrap_or(0),
        findings: Findings::default(),
        secret_name: subscription.secret_name(),
        ..known
    }
}

/// A subscription whose Tenant is not there.
pub(crate) fn orphan_subscription(subscription: &WebhookSubscription) -> SubscriptionState {
    let mut state = known_subscription(subscription, None);
    state.findings.stalled.push((Reason::TenantNotFound, no_tenant(&subscription.spec.tenant_ref.name)));
    state
}

/// A relationship whose Tenant is not there.
pub(crate) fn orphan_relationship(relationship: &Relationship) -> RelationshipState {
    let mut state = known_relationship(relationship, None);
    state.findings.stalled.push((Reason::TenantNotFound, no_tenant(&relationship.spec.tenant_ref.name)));
    state
}

fn no_tenant(name: &str) -> String {
    format!("there is no Tenant {name} in this namespace; apply it")
}

/// A key whose Tenant is not there.
pub(crate) fn orphan(key: &ApiKey) -> KeyState {
    let mut state = known_key(key, None);
    state.findings.stalled.push((Reason::TenantNotFound, no_tenant(&key.spec.tenant_ref.name)));
    state
}

/// Fills in what became of row changes. `retired`: once days that are over were emptied.
pub(crate) fn events(
    state: &mut TenantState,
    desired: &Desired,
    db: &TenantDb,
    retired: &Retired,
    undecidable: &[Undecidable],
) {
    let missing = plan::uncaptured(desired, db);
    let (bytes, most) = (retired.bytes, desired.limits.max_outbox_bytes);
    let finding = if !missing.is_empty() {
        let what = "changes are not captured until what the status says of the entity is resolved";
        (Reason::CaptureMissing, format!("{}: {what}", missing.join(", ")))
    } else if retired.is_late {
        let what = "could not be emptied of days that are over, as a session holds it; end transactions that have been open for days";
        (
            Reason::RetentionLate,
            format!("the log of row changes holds events since {} and {what}", retired.oldest),
        )
    } else if i64::try_from(most).is_ok_and(|most| most < bytes) {
        let what = "takes more than limits.maxOutboxBytes with the events of today alone; raise the limit";
        (Reason::OutboxFull, format!("the log of row changes {what}"))
    } else if let Some(day) = &retired.cut_day {
        let what = "as the log has reached limits.maxOutboxBytes; raise it to keep events for 7 days";
        (Reason::HistoryShortened, format!("events are kept since {day} only, {what}"))
    } else {
        (Reason::EventsKept, "row changes are captured and kept for 7 days".to_owned())
    };
    state.events = Some((finding.0 == Reason::EventsKept, finding));
    state.findings.warnings.extend(undecidable.iter().map(|it| {
        let Undecidable { schema, table, policy, code } = it;
        let why = match code.as_str() {
            "42703" => "names a system column, such as ctid or tableoid, which a captured row lacks".to_owned(),
            code => format!("cannot be evaluated over a captured row (SQLSTATE {code})"),
        };
        format!("no key is given events of {schema}.{table}: its policy {policy} {why}; write it over the table's own columns")
    }));
}

/// Fills in what is left of the rights of PUBLIC.
pub(crate) fn hardened(state: &mut TenantState, db: &TenantDb) {
    let finding = match db.public_rights.len() {
        0 => (
            Reason::RightsRevoked,
            "PUBLIC may execute no function of PostgreSQL that runs a text as SQL or writes into the server's log".to_owned(),
        ),
        n => {
            let what = "that run a text as SQL or change settings; no caller's SQL may name them, and a superuser can take them away with the block in docs/sql.md";
            (Reason::SuperuserNeeded, format!("PUBLIC has {n} rights in database {} {what}", state.database))
        }
    };
    state.hardened = Some((finding.0 == Reason::RightsRevoked, finding));
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
    for relationship in &mut state.relationships {
        let Some(judged) = outcome.relationships.get(&relationship.object.uid) else { continue };
        let problems = judged.problems.iter().map(|finding| (finding.reason, finding.message.clone()));
        relationship.findings.stalled.extend(problems);
        relationship.findings.warnings.clone_from(&judged.warnings);
        relationship.joins.clone_from(&judged.joins);
    }
    let end = desired.migrations.as_ref().and_then(|spec| spec.expires_at);
    state.next_due = next_due(&state.keys, end, now);
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
    let before: HashMap<&str, &RelationshipState> =
        last.iter().flat_map(|last| &last.relationships).map(|it| (it.object.uid.as_str(), it)).collect();
    for it in &mut state.relationships {
        let is_same = |before: &&&RelationshipState| {
            let facts =
                |it: &RelationshipState| (it.generation, it.findings.stalled.clone(), it.joins.clone());
            facts(it) == facts(before)
        };
        let same = before.get(it.object.uid.as_str()).filter(is_same);
        it.served = same.and_then(|before| before.served).or(Some(generation));
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

/// How long it is until the first of these keys' secrets is to be replaced or dies, or a key does, or at `end` the login of migration tools.
fn next_due(keys: &[KeyState], end: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let times = keys.iter().filter(|key| key.revoked_at.is_none()).flat_map(|key| {
        let expiry = key.expires_at.as_deref().and_then(|at| at.parse().ok());
        [expiry, key.previous_secret_expires_at, key.next_rotation]
    });
    let next = times.flatten().chain(end).filter(|at| now < *at).min()?;
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
