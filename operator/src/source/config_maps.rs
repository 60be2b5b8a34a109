//! The ConfigMaps that Tenants name, each asked for by its name: a right to list them all would show everybody's.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Client};
use parking_lot::Mutex;
use rowgate_crds::{Bootstrap, ConditionType, Reason, Tenant};
use rowgate_reconcile::source::SourceError;

use super::watch::collection::Name;
use super::{KubeSource, MAX_CONCURRENT, ask};

/// How often those are asked for that keep a Tenant from its script.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// After so many of these intervals some of those are asked for whose scripts ran, of Tenants that list them.
const SETTLED_INTERVALS: usize = 5;
/// How many, in turn.
const SETTLED_AT_ONCE: usize = 20;

type Data = Arc<BTreeMap<String, String>>;

pub(crate) struct ConfigMaps {
    client: Client,
    /// As they were last read: a Tenant that got ready is to look as it did before.
    read: Mutex<BTreeMap<Name, Data>>,
}

impl ConfigMaps {
    pub(crate) fn new(client: Client) -> ConfigMaps {
        ConfigMaps { client, read: Mutex::default() }
    }

    /// Those that Tenants name. Those of one that is ready are not asked for again: an only script runs once, and of scripts in a list
    /// [`follow`] finds what changed.
    pub(crate) async fn read(&self, tenants: &[Arc<Tenant>]) -> Result<BTreeMap<Name, Data>, SourceError> {
        let (kept, wanted) = self.kept_and_wanted(tenants);
        let maps: Vec<(Name, Option<BTreeMap<String, String>>)> = stream::iter(wanted)
            .map(|name| async move { Ok::<_, SourceError>((name.clone(), self.one(&name).await?)) })
            .buffer_unordered(MAX_CONCURRENT)
            .try_collect()
            .await?;
        let mut read = self.read.lock();
        let kept = kept.into_iter().filter_map(|name| read.remove_entry(&name)).collect::<Vec<_>>();
        *read = maps.into_iter().filter_map(|(name, data)| Some((name, Arc::new(data?)))).collect();
        for (name, data) in kept {
            read.entry(name).or_insert(data);
        }
        Ok(read.clone())
    }

    /// Those that stay as they were read, and those that have to be asked for.
    fn kept_and_wanted(&self, tenants: &[Arc<Tenant>]) -> (BTreeSet<Name>, BTreeSet<Name>) {
        let read = self.read.lock();
        let (mut kept, mut wanted) = (BTreeSet::new(), BTreeSet::new());
        for tenant in tenants {
            let (settled, lists) = (is_settled(tenant), lists_scripts(tenant));
            for name in named(tenant) {
                let stays = settled && (!lists || read.contains_key(&name));
                let names = if stays { &mut kept } else { &mut wanted };
                names.insert(name);
            }
        }
        (kept, wanted)
    }

    async fn one(&self, (namespace, name): &Name) -> Result<Option<BTreeMap<String, String>>, SourceError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let attempt = || format!("read ConfigMap {namespace}/{name}");
        let map = ask(attempt, api.get_opt(name)).await?;
        Ok(map.map(|map| map.data.unwrap_or_default()))
    }

    /// Whether one of them is another one than it was when it was read, or came, or is gone. It is then as it was found here.
    async fn changed(&self, names: BTreeSet<Name>) -> bool {
        let mut changed = false;
        for name in names {
            let Ok(now) = self.one(&name).await else { continue };
            let mut read = self.read.lock();
            if now.as_ref() == read.get(&name).map(|data| &**data) {
                continue;
            }
            changed = true;
            match now {
                Some(data) => drop(read.insert(name, Arc::new(data))),
                None => drop(read.remove(&name)),
            }
        }
        changed
    }
}

/// Wakes the source when a ConfigMap came that was missing, one was corrected whose script had failed, or one changed whose script ran: they
/// are not watched.
pub(crate) async fn follow(source: Arc<KubeSource>) {
    let mut last = None;
    for interval in 1_usize.. {
        tokio::time::sleep(POLL_INTERVAL).await;
        let of_tenants = source.tenants.map(|held| {
            let tenant = held.object().filter(|tenant| waits(tenant) || lists_scripts(tenant))?;
            Some((waits(tenant), named(tenant).collect::<Vec<_>>()))
        });
        let (waiting, others): (Vec<_>, Vec<_>) = of_tenants.into_iter().partition(|(waits, _)| *waits);
        let mut names: BTreeSet<Name> = waiting.into_iter().flat_map(|(_, names)| names).collect();
        if interval.is_multiple_of(SETTLED_INTERVALS) {
            let others = others.into_iter().flat_map(|(_, names)| names).collect();
            names.extend(in_turn(&others, &mut last));
        }
        if source.config_maps.changed(names).await {
            source.shared.wake.notify_one();
        }
    }
}

/// The next of `all` after `last`, and from the first one on again.
fn in_turn(all: &BTreeSet<Name>, last: &mut Option<Name>) -> Vec<Name> {
    let after = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let rest = all.range((after, Bound::Unbounded));
    let next: Vec<Name> = rest.chain(all).take(SETTLED_AT_ONCE.min(all.len())).cloned().collect();
    *last = next.last().cloned();
    next
}

/// The ConfigMaps of its scripts.
fn named(tenant: &Tenant) -> impl Iterator<Item = Name> {
    let namespace = tenant.metadata.namespace.clone();
    let references = tenant.spec.database.bootstrap.iter().flat_map(Bootstrap::references);
    references.filter_map(move |reference| Some((namespace.clone()?, reference.name.clone())))
}

fn lists_scripts(tenant: &Tenant) -> bool {
    tenant.spec.database.bootstrap.as_ref().is_some_and(|bootstrap| !bootstrap.scripts.is_empty())
}

fn ready(tenant: &Tenant) -> Option<&Condition> {
    let ready = format!("{:?}", ConditionType::Ready);
    tenant.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == ready)
}

/// Ready; and where it lists its scripts, as it is now.
fn is_settled(tenant: &Tenant) -> bool {
    let is_as_now =
        |ready: &Condition| !lists_scripts(tenant) || ready.observed_generation == tenant.metadata.generation;
    ready(tenant).is_some_and(|ready| ready.status == "True" && is_as_now(ready))
}

/// For a script, or for another text of it.
fn waits(tenant: &Tenant) -> bool {
    let reasons =
        [Reason::ConfigMapNotFound, Reason::BootstrapFailed, Reason::ScriptChanged].map(Reason::as_str);
    ready(tenant).is_some_and(|ready| reasons.contains(&&*ready.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_asked_for_in_its_turn() {
        let all: BTreeSet<Name> = (10..55).map(|n| ("a".to_owned(), format!("c{n}"))).collect();
        let mut last = None;
        let mut turns = || {
            let turn = in_turn(&all, &mut last);
            assert_eq!(turn.len(), SETTLED_AT_ONCE);
            format!("{} {}", turn[0].1, turn[SETTLED_AT_ONCE - 1].1)
        };
        assert_eq!([turns(), turns(), turns(), turns()], ["c10 c29", "c30 c49", "c50 c24", "c25 c44"]);
        let few: BTreeSet<Name> = [("a".to_owned(), "c".to_owned())].into();
        assert_eq!(in_turn(&few, &mut last).len(), 1);
        assert_eq!(in_turn(&BTreeSet::new(), &mut last), []);
    }
}
