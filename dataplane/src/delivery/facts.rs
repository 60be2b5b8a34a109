//! What sweeps found, until it stands in the control database.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_pg::tenant::delivery::facts::Fact;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// What is said of one subscription changes at most this often, and within 5 s of what it speaks of.
const INTERVAL: Duration = Duration::from_secs(4);

/// For the control database to take note of a new subscription.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(5);

/// By tenant.
#[derive(Default)]
pub struct SubscriptionFacts {
    found: Mutex<HashMap<Ulid, Found>>,
    /// The tenants that have subscriptions, by the control database.
    listed: Mutex<BTreeSet<Ulid>>,
    /// Tenants and subscriptions that were made through this replica and that the control database does not know yet.
    unannounced: watch::Sender<BTreeSet<(Ulid, Ulid)>>,
}

#[derive(Default)]
struct Found {
    facts: Vec<Fact>,
    /// As they were written, and when.
    written: HashMap<String, (Fact, Instant)>,
    is_new: bool,
}

impl SubscriptionFacts {
    /// Lets the other replicas know of a new subscription, so that it is delivered to whatever becomes of this one. Gives up waiting
    /// for that while the control database does not answer.
    pub(crate) async fn announce(&self, tenant: &Ulid, subscription: &Ulid, wake: &Notify) {
        let new = (tenant.clone(), subscription.clone());
        let mut unannounced = self.unannounced.subscribe();
        self.unannounced.send_modify(|all| all.extend([new.clone()]));
        wake.notify_one();
        let announced = unannounced.wait_for(|all| !all.contains(&new));
        let _late_or_done = timeout(ANNOUNCE_TIMEOUT, announced).await;
    }

    pub(crate) fn unannounced(&self) -> Vec<(Ulid, Ulid)> {
        self.unannounced.borrow().iter().cloned().collect()
    }

    /// The control database knows them.
    pub(crate) fn announced(&self, all: &[(Ulid, Ulid)]) {
        self.unannounced.send_modify(|unannounced| unannounced.retain(|it| !all.contains(it)));
    }

    /// What a sweep found in a tenant's database: all its subscriptions.
    pub(crate) fn note(&self, tenant: &Ulid, facts: Vec<Fact>) {
        let mut found = self.found.lock();
        let found = found.entry(tenant.clone()).or_default();
        found.is_new |= found.facts != facts;
        found.facts = facts;
    }

    pub(crate) fn list(&self, tenants: BTreeSet<Ulid>) {
        *self.listed.lock() = tenants;
    }

    pub(crate) fn is_listed(&self, tenant: &Ulid) -> bool {
        self.listed.lock().contains(tenant)
    }

    /// What is to be written now: of each tenant those that have changed and were not written a moment ago, and the ids of all.
    pub(crate) fn due(&self, now: Instant) -> Vec<(Ulid, Vec<Fact>, Vec<String>)> {
        let mut due = Vec::new();
        for (tenant, found) in self.found.lock().iter_mut().filter(|(_, found)| found.is_new) {
            let is_due = |fact: &&Fact| {
                found
                    .written
                    .get(&fact.id)
                    .is_none_or(|(written, at)| written != *fact && INTERVAL <= now.duration_since(*at))
            };
            let facts: Vec<Fact> = found.facts.iter().filter(is_due).cloned().collect();
            due.push((tenant.clone(), facts, found.facts.iter().map(|fact| fact.id.clone()).collect()));
        }
        due
    }

    /// They stand in the control database.
    pub(crate) fn written(&self, tenant: &Ulid, facts: Vec<Fact>, now: Instant) {
        let mut all = self.found.lock();
        let Some(found) = all.get_mut(tenant) else { return };
        for fact in facts {
            found.written.insert(fact.id.clone(), (fact, now));
        }
        let present: BTreeSet<&String> = found.facts.iter().map(|fact| &fact.id).collect();
        found.written.retain(|id, _| present.contains(id));
        let is_written = |fact: &Fact| found.written.get(&fact.id).is_some_and(|(it, _)| it == fact);
        found.is_new = !found.facts.iter().all(is_written);
    }
}
