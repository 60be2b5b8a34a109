//! The state of a Tenant after a pass, and its status.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rowgate_core::name::Ulid;
use rowgate_crds::{ConditionType, ResolvedPermission, TenantStatus, condition};
use rowgate_pg::connect::login_failure::LoginFailure;

use super::{
    Finding, Findings, KeyState, RelationshipState, Replicas, SubscriptionState, Transitions, Verdict,
    serving, verdict,
};
use crate::public_urls::PublicUrls;
use crate::source::ObjectRef;

#[derive(Debug, Clone)]
pub(crate) struct TenantState {
    pub(crate) object: ObjectRef,
    pub(crate) generation: i64,
    pub(crate) findings: Findings,
    /// Of the log of row changes, where some are captured: whether all is well, and why.
    pub(crate) events: Option<(bool, Finding)>,
    /// Of the rights of PUBLIC in its database, once they were read: whether none is left that nothing needs, and why.
    pub(crate) hardened: Option<(bool, Finding)>,
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
    /// The Secret of the login of migration tools, where there is one.
    pub(crate) migrations_secret: Option<String>,
    /// What would be run, where the plan is only shown.
    pub(crate) plan: Vec<String>,
    /// Of `dl.state`: what every live replica must serve.
    pub(crate) served: Option<i64>,
    pub(crate) entities: usize,
    pub(crate) shared: Arc<[ResolvedPermission]>,
    pub(crate) keys: Vec<KeyState>,
    pub(crate) relationships: Vec<RelationshipState>,
    pub(crate) subscriptions: Vec<SubscriptionState>,
    /// As they stand in the object.
    pub(crate) transitions: Transitions,
    /// Why the data plane's login could not get into the tenant's database from here, when that was last tried.
    pub(crate) login_failure: Option<LoginFailure>,
    /// After this long, by the database's clock, a secret or key is due: for rotation, or to die.
    pub(crate) next_due: Option<std::time::Duration>,
}

impl TenantState {
    /// Why what depends on the Tenant waits for it.
    pub(crate) fn not_ready(&self) -> String {
        let finding = self.findings.retry.iter().chain(&self.findings.stalled).next();
        let why = finding.map_or("it is being applied to the database", |(_, message)| message.as_str());
        format!("Tenant {} is not ready: {why}", self.object.name)
    }
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
    migrations_secret: Option<&'a str>,
    urls: &'a PublicUrls,
    n_entities: usize,
    n_keys: usize,
    n_serving: usize,
    shared: &'a [ResolvedPermission],
    warnings: &'a [String],
    plan: &'a [String],
    events: Option<&'a (bool, Finding)>,
    hardened: Option<&'a (bool, Finding)>,
}

impl<'a> TenantFacts<'a> {
    pub(crate) fn of(state: &'a TenantState, replicas: &Replicas, urls: &'a PublicUrls) -> TenantFacts<'a> {
        TenantFacts {
            verdict: verdict(&state.findings, state, state.served, replicas),
            generation: state.generation,
            id: state.id.as_ref(),
            slug: &state.slug,
            database: &state.database,
            migrations_secret: state.migrations_secret.as_deref(),
            urls,
            n_entities: state.entities,
            n_keys: state.keys.iter().filter(|key| key.revoked_at.is_none()).count(),
            n_serving: serving(state, replicas),
            shared: &state.shared,
            warnings: &state.findings.warnings,
            plan: &state.plan,
            events: state.events.as_ref(),
            hardened: state.hardened.as_ref(),
        }
    }

    pub(crate) fn status(&self, before: Transitions, now: Timestamp) -> TenantStatus {
        let own =
            [(ConditionType::EventsHealthy, self.events), (ConditionType::CatalogHardened, self.hardened)];
        let own = own.into_iter().filter_map(|(kind, found)| {
            let (status, (reason, message)) = found?;
            let since = before.since(kind, *status).unwrap_or(now);
            Some(condition(kind, *status, *reason, message.as_str(), self.generation, Time(since)))
        });
        let conditions = self.verdict.conditions(self.generation, before, now);
        TenantStatus {
            observed_generation: self.generation,
            conditions: conditions.into_iter().chain(own).collect(),
            tenant_id: self.id.map(Ulid::to_string),
            slug: Some(self.slug.to_owned()),
            database: Some(self.database.to_owned()).filter(|name| !name.is_empty()),
            migrations_secret: self.migrations_secret.map(str::to_owned),
            endpoints: Some(self.urls.endpoints(self.slug)),
            entities: i32::try_from(self.n_entities).ok(),
            keys: i32::try_from(self.n_keys).ok(),
            replicas: i32::try_from(self.n_serving).ok(),
            shared: self.shared.to_vec(),
            warnings: self.warnings.to_vec(),
            plan: self.plan.to_vec(),
        }
    }
}
