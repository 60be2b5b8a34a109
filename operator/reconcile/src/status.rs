//! What the resources are told. Pure: the outcome of a pass and the replicas that are alive, in; status, out.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use rowgate_core::name::Ulid;
use rowgate_crds::{
    ApiKeyStatus, ConditionType, Endpoints, Reason, ResolvedPermission, TenantStatus, condition,
};

use crate::source::ObjectRef;

/// A reason and a sentence that says what to change.
pub(crate) type Finding = (Reason, String);

/// What a pass found out about one object, whichever its kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    /// Somebody has to change something.
    pub(crate) stalled: Vec<Finding>,
    /// It will be tried again by itself.
    pub(crate) retry: Option<Finding>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct TenantState {
    pub(crate) object: ObjectRef,
    pub(crate) generation: i64,
    pub(crate) findings: Findings,
    /// Whether the pass came to its end: the database is what the manifests say, as far as they can be followed. What is
    /// known of a pass that did not is what an earlier one found.
    pub(crate) done: bool,
    /// Released: nobody is told anything any more.
    pub(crate) gone: bool,
    /// Another reconciler has taken over.
    pub(crate) replaced: bool,
    pub(crate) id: Option<Ulid>,
    pub(crate) slug: String,
    pub(crate) database: String,
    /// Of `dl.state`: what every live replica must serve.
    pub(crate) served: Option<i64>,
    pub(crate) entities: usize,
    pub(crate) shared: Vec<ResolvedPermission>,
    pub(crate) keys: Vec<KeyState>,
    /// As they stand in the object.
    pub(crate) conditions: Vec<Condition>,
    /// After this long, by the database's clock, a secret or key is due: for rotation, or to die.
    pub(crate) next_look: Option<std::time::Duration>,
}

#[derive(Debug, Clone)]
pub(crate) struct KeyState {
    pub(crate) object: ObjectRef,
    pub(crate) generation: i64,
    pub(crate) findings: Findings,
    /// Released: nobody is told anything any more.
    pub(crate) gone: bool,
    pub(crate) id: Option<Ulid>,
    pub(crate) role: Option<String>,
    /// The generation of the tenant's database from which on the key is as it is: what every live replica must serve.
    /// `None`: the newest.
    pub(crate) served: Option<i64>,
    /// Empty: the name that the manifest gives is another key's.
    pub(crate) secret_name: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    /// Not told anew while it has moved by less than a minute.
    pub(crate) last_used_at: Option<jiff::Timestamp>,
    /// The 12 characters of the current secret that may be shown.
    pub(crate) current_secret: Option<String>,
    pub(crate) previous_secret_expires_at: Option<jiff::Timestamp>,
    pub(crate) next_rotation: Option<jiff::Timestamp>,
    pub(crate) permissions: Vec<ResolvedPermission>,
    /// As they stand in the object.
    pub(crate) conditions: Vec<Condition>,
}

/// Who serves, as the control database said last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replicas {
    /// The live ones, each with the generation that it serves of every tenant.
    pub(crate) live: Vec<BTreeMap<Ulid, i64>>,
    /// Why nobody knows whether they live: the control database has been silent for longer than a beat counts.
    pub(crate) silent: Option<String>,
}

/// How many live replicas serve what a tenant is now.
pub(crate) fn serving(state: &TenantState, replicas: &Replicas) -> usize {
    n_serving(state, state.served, replicas)
}

fn n_serving(state: &TenantState, wanted: Option<i64>, replicas: &Replicas) -> usize {
    let (Some(id), Some(wanted)) = (&state.id, wanted) else { return 0 };
    replicas.live.iter().filter(|served| served.get(id).is_some_and(|served| wanted <= *served)).count()
}

/// True when nothing but replicas is waited for.
pub(crate) fn awaits_replicas(state: &TenantState, replicas: &Replicas) -> bool {
    state.done && (replicas.live.is_empty() || serving(state, replicas) < replicas.live.len())
}

/// The verdict that `Ready`, `Reconciling` and `Stalled` spell out.
enum Verdict {
    Ready(Reason, String),
    Reconciling(Reason, String),
    Stalled(Reason, String),
    /// Neither ready nor on its way: a revoked or expired key.
    Ended(Reason, String),
}

/// `wanted`: the generation that is to be served.
fn verdict(findings: &Findings, tenant: &TenantState, wanted: Option<i64>, replicas: &Replicas) -> Verdict {
    if let Some((reason, message)) = &findings.retry {
        return Verdict::Reconciling(*reason, message.clone());
    }
    if let Some((reason, _)) = findings.stalled.first() {
        let messages: Vec<&str> = findings.stalled.iter().map(|(_, message)| message.as_str()).collect();
        return Verdict::Stalled(*reason, messages.join("; "));
    }
    if !tenant.done {
        return Verdict::Reconciling(Reason::Progressing, "being brought into the database".to_owned());
    }
    if let Some(error) = &replicas.silent {
        let message =
            format!("{error}; nobody knows which data-plane replicas live, so it is asked again and again");
        return Verdict::Reconciling(Reason::DatabaseUnavailable, message);
    }
    let serving = n_serving(tenant, wanted, replicas);
    if replicas.live.is_empty() {
        let message = "done in the database; no data-plane replica is alive to serve it: start one";
        return Verdict::Reconciling(Reason::NoReplica, message.to_owned());
    }
    if serving < replicas.live.len() {
        let n_live = replicas.live.len();
        let message = format!("done in the database; served by {serving} of {n_live} live replicas");
        return Verdict::Reconciling(Reason::AwaitingReplicas, message);
    }
    let notes = findings.warnings.join("; ");
    let message = format!("served by {serving} live replica{}", if serving == 1 { "" } else { "s" });
    Verdict::Ready(Reason::Served, if notes.is_empty() { message } else { format!("{message}; {notes}") })
}

pub(crate) fn tenant(
    state: &TenantState,
    replicas: &Replicas,
    before: &[Condition],
    api_url: &str,
    now: jiff::Timestamp,
) -> TenantStatus {
    let verdict = verdict(&state.findings, state, state.served, replicas);
    TenantStatus {
        observed_generation: state.generation,
        conditions: conditions(verdict, state.generation, before, now),
        tenant_id: state.id.as_ref().map(Ulid::to_string),
        slug: Some(state.slug.clone()),
        database: Some(state.database.clone()),
        endpoints: Some(Endpoints {
            rest: Some(format!("{api_url}/auth/{}/api", state.slug)),
            ..Endpoints::default()
        }),
        entities: i32::try_from(state.entities).ok(),
        keys: i32::try_from(state.keys.iter().filter(|key| key.revoked_at.is_none()).count()).ok(),
        replicas: i32::try_from(serving(state, replicas)).ok(),
        shared: state.shared.clone(),
        warnings: state.findings.warnings.clone(),
        ..TenantStatus::default()
    }
}

pub(crate) fn api_key(
    key: &KeyState,
    tenant: Option<&TenantState>,
    replicas: &Replicas,
    before: &[Condition],
    now: jiff::Timestamp,
) -> ApiKeyStatus {
    let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok()).map(Time);
    let verdict = key_verdict(key, tenant, replicas, now);
    ApiKeyStatus {
        observed_generation: key.generation,
        conditions: conditions(verdict, key.generation, before, now),
        api_key_id: key.id.as_ref().map(Ulid::to_string),
        role: key.role.clone(),
        secret_name: Some(key.secret_name.clone()).filter(|name| !name.is_empty()),
        expires_at: time(&key.expires_at),
        revoked_at: time(&key.revoked_at),
        last_used_at: key.last_used_at.map(Time),
        current_secret: key.current_secret.clone(),
        previous_secret_expires_at: key.previous_secret_expires_at.map(Time),
        next_rotation: key.next_rotation.map(Time),
        permissions: key.permissions.clone(),
        warnings: key.findings.warnings.clone(),
        ..ApiKeyStatus::default()
    }
}

fn key_verdict(
    key: &KeyState,
    tenant: Option<&TenantState>,
    replicas: &Replicas,
    now: jiff::Timestamp,
) -> Verdict {
    if let Some((Reason::Deleting, message)) = &key.findings.retry {
        return Verdict::Reconciling(Reason::Deleting, message.clone());
    }
    let expires_at = key.expires_at.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    match tenant {
        _ if key.revoked_at.is_some() => {
            Verdict::Ended(Reason::Revoked, "the key is revoked for good; make a new ApiKey".to_owned())
        }
        _ if expires_at.is_some_and(|time| time <= now) => Verdict::Ended(
            Reason::Expired,
            "the key has expired; set a later expiresAt or make a new ApiKey".to_owned(),
        ),
        Some(tenant) if !tenant.done && key.findings.stalled.is_empty() => {
            let told = tenant.findings.retry.iter().chain(&tenant.findings.stalled).next();
            let why = told.map_or("it is being brought into the database", |(_, message)| message.as_str());
            let message = format!("Tenant {} is not ready: {why}", tenant.object.name);
            // what is tried again by itself is nothing to wait for in the Tenant
            let of_itself = [Reason::DatabaseUnavailable, Reason::Drifted];
            let reason = told.map(|(reason, _)| *reason).filter(|it| of_itself.contains(it));
            Verdict::Reconciling(reason.unwrap_or(Reason::TenantNotReady), message)
        }
        Some(tenant) => verdict(&key.findings, tenant, key.served.or(tenant.served), replicas),
        None => match (key.findings.stalled.first(), &key.findings.retry) {
            (Some((reason, message)), _) => Verdict::Stalled(*reason, message.clone()),
            (None, Some((reason, message))) => Verdict::Reconciling(*reason, message.clone()),
            (None, None) => Verdict::Reconciling(Reason::Progressing, "waits for its Tenant".to_owned()),
        },
    }
}

fn conditions(
    verdict: Verdict,
    generation: i64,
    before: &[Condition],
    now: jiff::Timestamp,
) -> Vec<Condition> {
    let (ready, reconciling, stalled, reason, message) = match verdict {
        Verdict::Ready(reason, message) => (true, false, false, reason, message),
        Verdict::Reconciling(reason, message) => (false, true, false, reason, message),
        Verdict::Stalled(reason, message) => {
            debug_assert!(reason.stalls(), "{reason:?} is no reason to call for somebody");
            (false, false, true, reason, message)
        }
        Verdict::Ended(reason, message) => (false, false, false, reason, message),
    };
    let one = |kind: ConditionType, status: bool| {
        let (reason, message) = match kind {
            ConditionType::Ready => (reason, message.clone()),
            _ if status => (reason, message.clone()),
            _ => (Reason::Done, String::new()),
        };
        let mut condition = condition(kind, status, reason, message, generation, Time(now));
        // the time says when the status turned, not when it was last written
        let same = before.iter().find(|old| old.type_ == condition.type_ && old.status == condition.status);
        if let Some(old) = same {
            condition.last_transition_time = old.last_transition_time.clone();
        }
        condition
    };
    vec![
        one(ConditionType::Ready, ready),
        one(ConditionType::Reconciling, reconciling),
        one(ConditionType::Stalled, stalled),
    ]
}
