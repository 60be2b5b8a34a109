//! The state of a WebhookSubscription after a pass over its Tenant, what the data planes say of it, and its status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use rowgate_core::name::Ulid;
use rowgate_crds::{ConditionType, Reason, WebhookSubscriptionStatus, condition};
use serde::Deserialize;

use super::{Findings, Replicas, TenantState, Transitions, Verdict, verdict};
use crate::source::ObjectRef;

#[derive(Debug, Clone)]
pub(crate) struct SubscriptionState {
    pub(crate) object: ObjectRef,
    pub(crate) generation: i64,
    pub(crate) findings: Findings,
    /// Released: no status is reported any more.
    pub(crate) gone: bool,
    /// `None`: it does not stand in the database.
    pub(crate) id: Option<Ulid>,
    /// The value of the annotation that was acted on last.
    pub(crate) last_replay: Option<String>,
    /// Empty: none, as of what the API made.
    pub(crate) secret_name: String,
    /// As they stand in the object.
    pub(crate) transitions: Transitions,
}

/// What a data plane said last, as it stands in `control.subscriptions.status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Fact {
    pub(crate) state: Option<String>,
    reason: Option<String>,
    lag_events: Option<i64>,
    oldest_undelivered: Option<Timestamp>,
    consecutive_dead_letters: Option<i64>,
    dead_letters: Option<i64>,
    last_delivery: Option<Timestamp>,
    last_error: Option<String>,
    last_replay: Option<String>,
    delivering: bool,
    delivering_reason: Option<String>,
}

/// As [`TenantFacts`](super::TenantFacts), of a subscription.
#[derive(Debug, Hash)]
pub(crate) struct SubscriptionFacts<'a> {
    verdict: Verdict,
    generation: i64,
    id: Option<&'a Ulid>,
    last_replay: Option<&'a str>,
    secret_name: &'a str,
    warnings: &'a [String],
    fact: Option<&'a Fact>,
}

impl<'a> SubscriptionFacts<'a> {
    pub(crate) fn of(
        it: &'a SubscriptionState,
        tenant: Option<&TenantState>,
        replicas: &Replicas,
        fact: Option<&'a Fact>,
    ) -> SubscriptionFacts<'a> {
        SubscriptionFacts {
            verdict: subscription_verdict(it, tenant, replicas),
            generation: it.generation,
            id: it.id.as_ref(),
            last_replay: it.last_replay.as_deref(),
            secret_name: &it.secret_name,
            warnings: &it.findings.warnings,
            fact,
        }
    }

    /// Of what the API made: it stands in the database, and nothing of it is asked for in the cluster.
    pub(crate) fn of_mirror(it: &'a SubscriptionState, fact: Option<&'a Fact>) -> SubscriptionFacts<'a> {
        let message = "made through the API, which stays its owner; changes of this object are reverted";
        SubscriptionFacts {
            verdict: Verdict::Ready(Reason::Served, message.to_owned()),
            generation: it.generation,
            id: it.id.as_ref(),
            last_replay: None,
            secret_name: "",
            warnings: &[],
            fact,
        }
    }

    pub(crate) fn status(&self, before: Transitions, now: Timestamp) -> WebhookSubscriptionStatus {
        let fact = self.fact.cloned().unwrap_or_default();
        let mut conditions = self.verdict.conditions(self.generation, before, now);
        if self.id.is_some() {
            conditions.push(self.delivering(before, now));
        }
        WebhookSubscriptionStatus {
            observed_generation: self.generation,
            conditions,
            id: self.id.map(Ulid::to_string),
            state: fact.state,
            reason: fact.reason,
            lag_events: fact.lag_events,
            oldest_undelivered: fact.oldest_undelivered.map(Time),
            consecutive_dead_letters: fact.consecutive_dead_letters,
            dead_letters: fact.dead_letters,
            last_delivery: fact.last_delivery.map(Time),
            last_error: fact.last_error,
            last_replay: self.last_replay.map(str::to_owned).or(fact.last_replay),
            secret_name: Some(self.secret_name.to_owned()).filter(|name| !name.is_empty()),
            warnings: self.warnings.to_vec(),
            ..WebhookSubscriptionStatus::default()
        }
    }

    fn delivering(&self, before: Transitions, now: Timestamp) -> Condition {
        let (status, reason, message) = self.fact.map_or_else(
            || (false, Reason::Progressing, "no data plane has said anything of it yet".to_owned()),
            said,
        );
        let since = before.since(ConditionType::Delivering, status).unwrap_or(now);
        condition(ConditionType::Delivering, status, reason, message, self.generation, Time(since))
    }
}

/// The condition that a fact comes to.
fn said(fact: &Fact) -> (bool, Reason, String) {
    let error = || fact.last_error.as_deref().unwrap_or("the receiver did not accept it");
    match fact.delivering_reason.as_deref() {
        Some("OwnerInactive") => {
            let message = "the owner's key is revoked, expired or gone, and nothing is sent; name another ApiKey in spec.ownerRef";
            (false, Reason::OwnerInactive, message.to_owned())
        }
        Some("Disabled") => {
            let why = fact.reason.as_deref().unwrap_or("Disabled");
            let message = format!(
                "disabled ({why}): {}; repair the receiver and set the annotation rowgate.dev/replay",
                error()
            );
            (false, Reason::Disabled, message)
        }
        Some("Suspended") => {
            let message = "suspended by spec.suspend; events are kept";
            (false, Reason::Suspended, message.to_owned())
        }
        Some("Failing") => {
            (false, Reason::Failing, format!("the last delivery failed and is tried again: {}", error()))
        }
        _ if fact.delivering => (true, Reason::Delivering, "events are delivered".to_owned()),
        _ => (false, Reason::Progressing, "no data plane has said whether it delivers".to_owned()),
    }
}

fn subscription_verdict(
    subscription: &SubscriptionState,
    tenant: Option<&TenantState>,
    replicas: &Replicas,
) -> Verdict {
    let findings = &subscription.findings;
    match tenant {
        Some(tenant) if !tenant.done && findings.stalled.is_empty() => {
            Verdict::Reconciling(Reason::TenantNotReady, tenant.not_ready())
        }
        Some(tenant) => verdict(findings, tenant, tenant.served, replicas),
        None => match (findings.stalled.first(), &findings.retry) {
            (Some((reason, message)), _) => Verdict::Stalled(*reason, message.clone()),
            (None, Some((reason, message))) => Verdict::Reconciling(*reason, message.clone()),
            (None, None) => Verdict::Reconciling(Reason::Progressing, "waiting for its Tenant".to_owned()),
        },
    }
}
