//! The state of a Relationship after a pass over its Tenant, and its status.

use jiff::Timestamp;
use rowgate_crds::{Reason, RelationshipStatus};

use super::{Findings, Replicas, TenantState, Transitions, Verdict, verdict};
use crate::source::ObjectRef;

#[derive(Debug, Clone)]
pub(crate) struct RelationshipState {
    pub(crate) object: ObjectRef,
    pub(crate) generation: i64,
    pub(crate) findings: Findings,
    /// Released: no status is reported any more.
    pub(crate) gone: bool,
    /// The generation of the tenant's database from which on the relationship is as it is. `None`: the newest.
    pub(crate) served: Option<i64>,
    pub(crate) joins: Option<String>,
    /// As they stand in the object.
    pub(crate) transitions: Transitions,
}

/// As [`TenantFacts`](super::TenantFacts), of a relationship.
#[derive(Debug, Hash)]
pub(crate) struct RelationshipFacts<'a> {
    verdict: Verdict,
    generation: i64,
    joins: Option<&'a str>,
    warnings: &'a [String],
}

impl<'a> RelationshipFacts<'a> {
    pub(crate) fn of(
        relationship: &'a RelationshipState,
        tenant: Option<&TenantState>,
        replicas: &Replicas,
    ) -> RelationshipFacts<'a> {
        RelationshipFacts {
            verdict: relationship_verdict(relationship, tenant, replicas),
            generation: relationship.generation,
            joins: relationship.joins.as_deref(),
            warnings: &relationship.findings.warnings,
        }
    }

    pub(crate) fn status(&self, before: Transitions, now: Timestamp) -> RelationshipStatus {
        RelationshipStatus {
            observed_generation: self.generation,
            conditions: self.verdict.conditions(self.generation, before, now),
            joins: self.joins.map(str::to_owned),
            warnings: self.warnings.to_vec(),
            ..RelationshipStatus::default()
        }
    }
}

fn relationship_verdict(
    relationship: &RelationshipState,
    tenant: Option<&TenantState>,
    replicas: &Replicas,
) -> Verdict {
    let findings = &relationship.findings;
    match tenant {
        Some(tenant) if !tenant.done && findings.stalled.is_empty() => {
            Verdict::Reconciling(Reason::TenantNotReady, tenant.not_ready())
        }
        Some(tenant) => verdict(findings, tenant, relationship.served.or(tenant.served), replicas),
        None => match (findings.stalled.first(), &findings.retry) {
            (Some((reason, message)), _) => Verdict::Stalled(*reason, message.clone()),
            (None, Some((reason, message))) => Verdict::Reconciling(*reason, message.clone()),
            (None, None) => Verdict::Reconciling(Reason::Progressing, "waiting for its Tenant".to_owned()),
        },
    }
}
