//! The status of resources. Pure: the outcome of a pass and the live replicas in, status out.
//!
//! State and status of each kind stand in a file of their own. `report` fills the states in from a pass and skips what was
//! reported already; `reporter` queues statuses for the source, which compares them as `object_status`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use rowgate_core::name::Ulid;
use rowgate_core::role::CONTROL_DATABASE;
use rowgate_crds::{ConditionType, Reason, condition};
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::control::replicas::Serving;

mod api_key;
mod cache;
pub(crate) mod object_status;
mod relationship;
pub(crate) mod report;
pub(crate) mod reporter;
mod subscription;
mod tenant;
mod transitions;

pub(crate) use api_key::{ApiKeyFacts, KeyState};
pub(crate) use cache::StatusCache;
pub(crate) use relationship::{RelationshipFacts, RelationshipState};
pub(crate) use subscription::{Fact, SubscriptionFacts, SubscriptionState};
pub(crate) use tenant::{TenantFacts, TenantState};
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
