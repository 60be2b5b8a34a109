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
    /// The ids of all when that was; `None`: another replica may have written others, or this one before it was started.
    present: Option<Vec<String>>,
}

impl Found {
    /// In order: PostgreSQL gives them in any.
    fn present(&self) -> Vec<String> {
        let ids: BTreeSet<&String> = self.facts.iter().map(|fact| &fact.id).collect();
        ids.into_iter().cloned().collect()
    }

    fn is_new(&self) -> bool {
        let is_written = |fact: &Fact| self.written.get(&fact.id).is_some_and(|(it, _)| it == fact);
        self.present.as_ref() != Some(&self.present()) || !self.facts.iter().all(is_written)
    }
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
        self.found.lock().entry(tenant.clone()).or_default().facts = facts;
    }

    /// Another replica sweeps there now, and writes.
    pub(crate) fn forget(&self, tenant: &Ulid) {
        self.found.lock().remove(tenant);
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
        for (tenant, found) in self.found.lock().iter().filter(|(_, found)| found.is_new()) {
            let is_due = |fact: &&Fact| {
                found
                    .written
                    .get(&fact.id)
                    .is_none_or(|(written, at)| written != *fact && INTERVAL <= now.duration_since(*at))
            };
            let facts: Vec<Fact> = found.facts.iter().filter(is_due).cloned().collect();
            due.push((tenant.clone(), facts, found.present()));
        }
        due
    }

    /// They stand in the control database, and no others of this tenant than `present`. A sweep may have found others meanwhile.
    pub(crate) fn written(&self, tenant: &Ulid, facts: Vec<Fact>, present: Vec<String>, now: Instant) {
        let mut all = self.found.lock();
        let Some(found) = all.get_mut(tenant) else { return };
        for fact in facts {
            found.written.insert(fact.id.clone(), (fact, now));
        }
        found.written.retain(|id, _| present.contains(id));
        found.present = Some(present);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(id: &str) -> Fact {
        let text = |it: &str| it.to_owned();
        let (origin, state, spec, status) = (text("api"), text("enabled"), text("{}"), text("{}"));
        Fact { id: id.to_owned(), origin, uid: None, state, lag: 0, spec, status }
    }

    /// Seen to fail where what was written is compared with what is found by then: the deletion was never written, and the object
    /// that showed the subscription stayed in the cluster.
    #[test]
    fn what_is_deleted_while_it_is_written_is_written_as_deleted() {
        let (facts, tenant, now) =
            (SubscriptionFacts::default(), Ulid::from_parts(1, [1; 10]), Instant::now());
        facts.note(&tenant, vec![fact("a"), fact("b")]);
        let (_, due, present) = facts.due(now).pop().expect("nothing was written");
        assert_eq!((due.len(), present.len()), (2, 2));
        facts.note(&tenant, vec![fact("b")]);
        facts.written(&tenant, due, present, now);
        let (_, due, present) = facts.due(now).pop().expect("one is gone");
        assert_eq!((due.len(), &present), (0, &vec!["b".to_owned()]));
        facts.written(&tenant, due, present, now);
        assert!(facts.due(now).is_empty());
    }

    /// A replica that was killed before it wrote leaves what it had not deleted.
    #[test]
    fn the_first_look_is_written_though_it_finds_none() {
        let (facts, tenant, now) =
            (SubscriptionFacts::default(), Ulid::from_parts(1, [1; 10]), Instant::now());
        facts.note(&tenant, Vec::new());
        let (_, due, present) = facts.due(now).pop().expect("nothing was written");
        facts.written(&tenant, due, present, now);
        assert!(facts.due(now).is_empty());
        facts.forget(&tenant);
        assert!(facts.due(now).is_empty());
        facts.note(&tenant, Vec::new());
        assert_eq!(facts.due(now).len(), 1, "another replica may have written others");
    }
}
