//! The status of resources. Pure: the outcome of a pass and the live replicas in, status out.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use rowgate_core::name::Ulid;
use rowgate_core::role::CONTROL_DATABASE;
use rowgate_crds::{
    ApiKeyStatus, ConditionType, Endpoints, Reason, ResolvedPermission, TenantStatus, condition,
};
use rowgate_pg::login_failure::LoginFailure;
use rowgate_pg::replicas::Serving;

use crate::source::ObjectRef;

pub(crate) mod object_status;
pub(crate) mod report;
pub(crate) mod reporter;
mod transitions;

pub(crate) use transitions::Transitions;

/// A reason and a sentence that says what to change.
pub(crate) type Finding = (Reason, String);

/// What a pass found out about one object, whichever its kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    /// A person has to change something.
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
    /// Released: no status is reported any more.
    pub(crate) gone: bool,
    /// Another reconciler has taken over.
    pub(crate) replaced: bool,
    pub(crate) id: Option<Ulid>,
    pub(crate) slug: String,
    /// Empty: not known yet.
    pub(crate) database: String,
    /// Of `dl.state`: what every live replica must serve.
    pub(crate) served: Option<i64>,
    pub(crate) entities: usize,
    pub(crate) shared: Arc<[ResolvedPermission]>,
    pub(crate) keys: Vec<KeyState>,
    /// As they stand in the object.
    pub(crate) transitions: Transitions,
    /// Why the data plane's login could not get into the tenant's database from here, when that was last tried.
    pub(crate) login_failure: Option<LoginFailure>,
    /// After this long, by the database's clock, a secret or key is due: for rotation, or to die.
    pub(crate) next_look: Option<std::time::Duration>,
}

#[derive(Debug, Clone)]
pub(crate) struct KeyState {
    pub(crate) object: ObjectRef,
    pub(crate) generation: i64,
    pub(crate) findings: Findings,
    /// Released: no status is reported any more.
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
    /// Not reported again while it has moved by less than a minute.
    pub(crate) last_used_at: Option<Timestamp>,
    /// The 12 characters of the current secret that may be shown.
    pub(crate) current_secret: Option<String>,
    pub(crate) previous_secret_expires_at: Option<Timestamp>,
    pub(crate) next_rotation: Option<Timestamp>,
    /// Of the key's permission set; all keys of a set share them.
    pub(crate) permissions: Arc<[ResolvedPermission]>,
    /// As they stand in the object.
    pub(crate) transitions: Transitions,
}

/// Who serves, as the control database said last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replicas {
    /// The live ones, each with what it serves of every tenant.
    pub(crate) live: Vec<BTreeMap<Ulid, Serving>>,
    /// Why no data plane can log in to the control database from here, while none lives.
    pub(crate) control: Option<LoginFailure>,
    /// Why the live replicas are unknown: the control database has not answered for longer than a heartbeat counts.
    pub(crate) silent: Option<String>,
}

/// How many live replicas serve what a tenant is now.
pub(crate) fn serving(state: &TenantState, replicas: &Replicas) -> usize {
    n_serving(state, state.served, replicas)
}

fn n_serving(state: &TenantState, wanted: Option<i64>, replicas: &Replicas) -> usize {
    let (Some(id), Some(wanted)) = (&state.id, wanted) else { return 0 };
    let serves = |it: &Serving| it.login_failure.is_none() && wanted <= it.generation;
    replicas.live.iter().filter(|served| served.get(id).is_some_and(serves)).count()
}

/// Why live replicas cannot open a connection for a tenant's requests: how many, and what one of them says, preferring
/// those for which a person has to change something.
pub(crate) fn login_failure<'a>(
    state: &TenantState,
    replicas: &'a Replicas,
) -> Option<(usize, &'a LoginFailure)> {
    let id = state.id.as_ref()?;
    let failing = || replicas.live.iter().filter_map(|served| served.get(id)?.login_failure.as_ref());
    Some((failing().count(), failing().min_by_key(|it| (!it.needs_a_change(), *it))?))
}

/// What the data plane's logins came to from here, where no replica says anything of the tenant: it may go there by another
/// address, so that its own word counts more.
fn own_failure<'a>(state: &'a TenantState, replicas: &'a Replicas) -> Option<Verdict> {
    let id = state.id.as_ref()?;
    if replicas.live.iter().any(|served| served.contains_key(id)) {
        return None;
    }
    let control = replicas.control.iter().map(|it| (it, CONTROL_DATABASE));
    let both = control.chain(state.login_failure.iter().map(|it| (it, state.database.as_str())));
    let (failure, database) = both.into_iter().find(|(failure, _)| failure.needs_a_change())?;
    let message = format!("the data plane cannot log in to database {database}: {}", failure.sentence());
    Some(Verdict::Stalled(Reason::LoginRefused, message))
}

/// True when nothing but replicas is waited for. One that cannot open connections says when it can.
pub(crate) fn awaits_replicas(state: &TenantState, replicas: &Replicas) -> bool {
    let n_failing = login_failure(state, replicas).map_or(0, |(n, _)| n);
    state.done && (replicas.live.is_empty() || serving(state, replicas) + n_failing < replicas.live.len())
}

/// The verdict that `Ready`, `Reconciling` and `Stalled` spell out.
#[derive(Debug, Hash)]
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
        return Verdict::Reconciling(Reason::Progressing, "being applied to the database".to_owned());
    }
    if let Some(error) = &replicas.silent {
        let message = format!("{error}; the state of the data-plane replicas is unknown; retrying");
        return Verdict::Reconciling(Reason::DatabaseUnavailable, message);
    }
    let n_live = replicas.live.len();
    if let Some((n_failing, failure)) = login_failure(tenant, replicas) {
        let sentence = failure.sentence();
        let message =
            format!("{n_failing} of {n_live} live replicas cannot connect to answer requests: {sentence}");
        return match failure.needs_a_change() {
            true => Verdict::Stalled(Reason::LoginRefused, message),
            false => Verdict::Reconciling(Reason::DatabaseUnavailable, format!("{message}; retrying")),
        };
    }
    let serving = n_serving(tenant, wanted, replicas);
    if serving < n_live.max(1)
        && let Some(verdict) = own_failure(tenant, replicas)
    {
        return verdict;
    }
    if replicas.live.is_empty() {
        let message = "applied to the database; no data-plane replica is live to serve it: start one";
        return Verdict::Reconciling(Reason::NoReplica, message.to_owned());
    }
    if serving < n_live {
        let message = format!("applied to the database; served by {serving} of {n_live} live replicas");
        return Verdict::Reconciling(Reason::AwaitingReplicas, message);
    }
    let notes = findings.warnings.join("; ");
    let message = format!("served by {serving} live replica{}", if serving == 1 { "" } else { "s" });
    Verdict::Ready(Reason::Served, if notes.is_empty() { message } else { format!("{message}; {notes}") })
}

/// All that a Tenant's status is made of, but for the times at which conditions turned: where it is the same, so is the
/// status.
#[derive(Debug, Hash)]
pub(crate) struct TenantFacts<'a> {
    verdict: Verdict,
    generation: i64,
    id: Option<&'a Ulid>,
    slug: &'a str,
    database: &'a str,
    api_url: &'a str,
    n_entities: usize,
    n_keys: usize,
    n_serving: usize,
    shared: &'a [ResolvedPermission],
    warnings: &'a [String],
}

pub(crate) fn tenant<'a>(state: &'a TenantState, replicas: &Replicas, api_url: &'a str) -> TenantFacts<'a> {
    TenantFacts {
        verdict: verdict(&state.findings, state, state.served, replicas),
        generation: state.generation,
        id: state.id.as_ref(),
        slug: &state.slug,
        database: &state.database,
        api_url,
        n_entities: state.entities,
        n_keys: state.keys.iter().filter(|key| key.revoked_at.is_none()).count(),
        n_serving: serving(state, replicas),
        shared: &state.shared,
        warnings: &state.findings.warnings,
    }
}

impl TenantFacts<'_> {
    pub(crate) fn status(&self, before: Transitions, now: Timestamp) -> TenantStatus {
        TenantStatus {
            observed_generation: self.generation,
            conditions: self.verdict.conditions(self.generation, before, now),
            tenant_id: self.id.map(Ulid::to_string),
            slug: Some(self.slug.to_owned()),
            database: Some(self.database.to_owned()).filter(|name| !name.is_empty()),
            endpoints: Some(Endpoints {
                rest: Some(format!("{}/auth/{}/api", self.api_url, self.slug)),
                ..Endpoints::default()
            }),
            entities: i32::try_from(self.n_entities).ok(),
            keys: i32::try_from(self.n_keys).ok(),
            replicas: i32::try_from(self.n_serving).ok(),
            shared: self.shared.to_vec(),
            warnings: self.warnings.to_vec(),
            ..TenantStatus::default()
        }
    }
}

/// As [`TenantFacts`], of a key.
#[derive(Debug, Hash)]
pub(crate) struct ApiKeyFacts<'a> {
    verdict: Verdict,
    generation: i64,
    id: Option<&'a Ulid>,
    role: Option<&'a str>,
    secret_name: &'a str,
    expires_at: Option<&'a str>,
    revoked_at: Option<&'a str>,
    last_used_at: Option<Timestamp>,
    current_secret: Option<&'a str>,
    previous_secret_expires_at: Option<Timestamp>,
    next_rotation: Option<Timestamp>,
    permissions: &'a [ResolvedPermission],
    warnings: &'a [String],
}

pub(crate) fn api_key<'a>(
    key: &'a KeyState,
    tenant: Option<&TenantState>,
    replicas: &Replicas,
    now: Timestamp,
) -> ApiKeyFacts<'a> {
    ApiKeyFacts {
        verdict: key_verdict(key, tenant, replicas, now),
        generation: key.generation,
        id: key.id.as_ref(),
        role: key.role.as_deref(),
        secret_name: &key.secret_name,
        expires_at: key.expires_at.as_deref(),
        revoked_at: key.revoked_at.as_deref(),
        last_used_at: key.last_used_at,
        current_secret: key.current_secret.as_deref(),
        previous_secret_expires_at: key.previous_secret_expires_at,
        next_rotation: key.next_rotation,
        permissions: &key.permissions,
        warnings: &key.findings.warnings,
    }
}

impl ApiKeyFacts<'_> {
    pub(crate) fn status(&self, before: Transitions, now: Timestamp) -> ApiKeyStatus {
        let time = |text: Option<&str>| text.and_then(|text| text.parse().ok()).map(Time);
        ApiKeyStatus {
            observed_generation: self.generation,
            conditions: self.verdict.conditions(self.generation, before, now),
            api_key_id: self.id.map(Ulid::to_string),
            role: self.role.map(str::to_owned),
            secret_name: Some(self.secret_name.to_owned()).filter(|name| !name.is_empty()),
            expires_at: time(self.expires_at),
            revoked_at: time(self.revoked_at),
            last_used_at: self.last_used_at.map(Time),
            current_secret: self.current_secret.map(str::to_owned),
            previous_secret_expires_at: self.previous_secret_expires_at.map(Time),
            next_rotation: self.next_rotation.map(Time),
            permissions: self.permissions.to_vec(),
            warnings: self.warnings.to_vec(),
            ..ApiKeyStatus::default()
        }
    }
}

fn key_verdict(key: &KeyState, tenant: Option<&TenantState>, replicas: &Replicas, now: Timestamp) -> Verdict {
    if let Some((Reason::Deleting, message)) = &key.findings.retry {
        return Verdict::Reconciling(Reason::Deleting, message.clone());
    }
    let expires_at = key.expires_at.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
    match tenant {
        _ if key.revoked_at.is_some() => {
            Verdict::Ended(Reason::Revoked, "the key is permanently revoked; create a new ApiKey".to_owned())
        }
        _ if expires_at.is_some_and(|time| time <= now) => Verdict::Ended(
            Reason::Expired,
            "the key has expired; set a later expiresAt or create a new ApiKey".to_owned(),
        ),
        Some(tenant) if !tenant.done && key.findings.stalled.is_empty() => {
            let finding = tenant.findings.retry.iter().chain(&tenant.findings.stalled).next();
            let why = finding.map_or("it is being applied to the database", |(_, message)| message.as_str());
            let message = format!("Tenant {} is not ready: {why}", tenant.object.name);
            // what is tried again by itself is nothing to wait for in the Tenant
            let of_itself = [Reason::DatabaseUnavailable, Reason::Drifted];
            let reason = finding.map(|(reason, _)| *reason).filter(|it| of_itself.contains(it));
            Verdict::Reconciling(reason.unwrap_or(Reason::TenantNotReady), message)
        }
        Some(tenant) => verdict(&key.findings, tenant, key.served.or(tenant.served), replicas),
        None => match (key.findings.stalled.first(), &key.findings.retry) {
            (Some((reason, message)), _) => Verdict::Stalled(*reason, message.clone()),
            (None, Some((reason, message))) => Verdict::Reconciling(*reason, message.clone()),
            (None, None) => Verdict::Reconciling(Reason::Progressing, "waiting for its Tenant".to_owned()),
        },
    }
}

impl Verdict {
    fn conditions(&self, generation: i64, before: Transitions, now: Timestamp) -> Vec<Condition> {
        let (ready, reconciling, stalled, reason, message) = match self {
            Verdict::Ready(reason, message) => (true, false, false, *reason, message),
            Verdict::Reconciling(reason, message) => (false, true, false, *reason, message),
            Verdict::Stalled(reason, message) => {
                debug_assert!(reason.stalls(), "{reason:?} is no reason to call for somebody");
                (false, false, true, *reason, message)
            }
            Verdict::Ended(reason, message) => (false, false, false, *reason, message),
        };
        let one = |kind: ConditionType, status: bool| {
            let (reason, message) = match kind {
                ConditionType::Ready => (reason, message.clone()),
                _ if status => (reason, message.clone()),
                _ => (Reason::Done, String::new()),
            };
            // the time says when the status turned, not when it was last written
            let since = before.since(kind, status).unwrap_or(now);
            condition(kind, status, reason, message, generation, Time(since))
        };
        vec![
            one(ConditionType::Ready, ready),
            one(ConditionType::Reconciling, reconciling),
            one(ConditionType::Stalled, stalled),
        ]
    }
}
