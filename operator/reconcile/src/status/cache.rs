//! What was reported of each object already: nothing is reported twice.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::entropy;
use crate::public_urls::PublicUrls;
use crate::source::{ObjectRef, Status, StatusReport};
use crate::status::{
    ApiKeyFacts, Fact, KeyState, RelationshipFacts, RelationshipState, Replicas, SubscriptionFacts,
    SubscriptionState, TenantFacts, TenantState, Transitions,
};

/// What was last reported of each object, so that a time says when a status turned, and nothing is said twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusCache {
    /// By uid.
    reported: Arc<Mutex<HashMap<Box<str>, Reported>>>,
    /// Tenants of which a pass has found that the last one's state does not hold any more, until it ends; by uid.
    revised: Arc<Mutex<BTreeSet<String>>>,
    /// What the data planes said last of each subscription, by its id.
    facts: Arc<Mutex<HashMap<Box<str>, Arc<Fact>>>>,
    /// For `status.endpoints`.
    pub(crate) urls: PublicUrls,
}

#[derive(Debug, Clone, Copy)]
struct Reported {
    transitions: Transitions,
    /// Of all that the status was made of, times at which conditions turned left out.
    facts: u64,
}

impl StatusCache {
    pub(crate) fn new(urls: PublicUrls) -> StatusCache {
        StatusCache { urls, ..StatusCache::default() }
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
        for relationship in tenant.relationships.iter().filter(|it| !it.gone) {
            reports.extend(self.relationship(relationship, Some(tenant), replicas, all, now));
        }
        for subscription in tenant.subscriptions.iter().filter(|it| !it.gone) {
            reports.extend(self.subscription(subscription, Some(tenant), replicas, all, now));
        }
        if !tenant.gone {
            let facts = TenantFacts::of(tenant, replicas, &self.urls);
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

    /// The same of a relationship.
    pub(crate) fn orphan_relationship(&self, relationship: &RelationshipState) -> Option<StatusReport> {
        self.relationship(relationship, None, &Replicas::default(), false, now())
    }

    /// The same of a subscription.
    pub(crate) fn orphan_subscription(&self, subscription: &SubscriptionState) -> Option<StatusReport> {
        self.subscription(subscription, None, &Replicas::default(), false, now())
    }

    /// The status of an object that shows what the API made, if it is another one than before.
    pub(crate) fn mirror(&self, mirror: &SubscriptionState) -> Option<StatusReport> {
        let (fact, now) = (self.fact(mirror), now());
        let facts = SubscriptionFacts::of_mirror(mirror, fact.as_deref());
        self.one(&mirror.object, mirror.transitions, false, &facts, |before| {
            Status::WebhookSubscription(Box::new(facts.status(before, now)))
        })
    }

    /// The status of what shows it where no object does.
    pub(crate) fn mirror_status(&self, mirror: &SubscriptionState) -> Status {
        let fact = self.fact(mirror);
        let facts = SubscriptionFacts::of_mirror(mirror, fact.as_deref());
        Status::WebhookSubscription(Box::new(facts.status(Transitions::default(), now())))
    }

    /// What a data plane said of a subscription; `None`: it is gone.
    pub(crate) fn note(&self, id: &str, fact: Option<Fact>) {
        let mut facts = self.facts.lock();
        match fact {
            Some(fact) => drop(facts.insert(id.into(), Arc::new(fact))),
            None => drop(facts.remove(id)),
        }
    }

    fn fact(&self, subscription: &SubscriptionState) -> Option<Arc<Fact>> {
        self.facts.lock().get(subscription.id.as_ref()?.as_str()).cloned()
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

    fn relationship(
        &self,
        relationship: &RelationshipState,
        tenant: Option<&TenantState>,
        replicas: &Replicas,
        all: bool,
        now: Timestamp,
    ) -> Option<StatusReport> {
        let facts = RelationshipFacts::of(relationship, tenant, replicas);
        self.one(&relationship.object, relationship.transitions, all, &facts, |before| {
            Status::Relationship(Box::new(facts.status(before, now)))
        })
    }

    fn subscription(
        &self,
        subscription: &SubscriptionState,
        tenant: Option<&TenantState>,
        replicas: &Replicas,
        all: bool,
        now: Timestamp,
    ) -> Option<StatusReport> {
        let fact = self.fact(subscription);
        let facts = SubscriptionFacts::of(subscription, tenant, replicas, fact.as_deref());
        self.one(&subscription.object, subscription.transitions, all, &facts, |before| {
            Status::WebhookSubscription(Box::new(facts.status(before, now)))
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
