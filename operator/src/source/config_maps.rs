//! The ConfigMaps that Tenants name, each asked for by its name: a right to list them all would show everybody's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Client};
use parking_lot::Mutex;
use rowgate_crds::{ConditionType, Reason, Tenant};
use rowgate_reconcile::source::SourceError;

use super::watch::collection::Name;
use super::{KubeSource, MAX_CONCURRENT, ask};

/// How often those are asked for that keep a Tenant from its script.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

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

    /// Those that Tenants name. The script of one that is ready is not asked for again: it runs once.
    pub(crate) async fn read(&self, tenants: &[Arc<Tenant>]) -> Result<BTreeMap<Name, Data>, SourceError> {
        let named = |tenant: &Arc<Tenant>| Some((named(tenant)?, is_ready(tenant)));
        let (ready, wanted): (Vec<_>, Vec<_>) =
            tenants.iter().filter_map(named).partition(|(_, ready)| *ready);
        let wanted: BTreeSet<Name> = wanted.into_iter().map(|(name, _)| name).collect();
        let maps: Vec<(Name, Option<BTreeMap<String, String>>)> = stream::iter(wanted)
            .map(|name| async move { Ok::<_, SourceError>((name.clone(), self.one(&name).await?)) })
            .buffer_unordered(MAX_CONCURRENT)
            .try_collect()
            .await?;
        let mut read = self.read.lock();
        let kept = ready.into_iter().filter_map(|(name, _)| read.remove_entry(&name)).collect::<Vec<_>>();
        *read = maps.into_iter().filter_map(|(name, data)| Some((name, Arc::new(data?)))).collect();
        for (name, data) in kept {
            read.entry(name).or_insert(data);
        }
        Ok(read.clone())
    }

    async fn one(&self, (namespace, name): &Name) -> Result<Option<BTreeMap<String, String>>, SourceError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let attempt = || format!("read ConfigMap {namespace}/{name}");
        let map = ask(attempt, api.get_opt(name)).await?;
        Ok(map.map(|map| map.data.unwrap_or_default()))
    }

    /// Whether one of them is another one than it was when it was read, or came, or is gone.
    async fn changed(&self, names: Vec<Name>) -> bool {
        for name in names {
            let Ok(now) = self.one(&name).await else { continue };
            let before = self.read.lock().get(&name).cloned();
            if now.as_ref() != before.as_deref() {
                return true;
            }
        }
        false
    }
}

/// Wakes the source when a ConfigMap came that was missing, or one was corrected whose script had failed: they are not
/// watched.
pub(crate) async fn follow(source: Arc<KubeSource>) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let waiting = source.tenants.map(|held| {
            let tenant = held.object().map(|tenant| &**tenant).filter(|tenant| waits(tenant))?;
            named(tenant)
        });
        if source.config_maps.changed(waiting).await {
            source.shared.wake.notify_one();
        }
    }
}

fn named(tenant: &Tenant) -> Option<Name> {
    let reference = &tenant.spec.database.bootstrap.as_ref()?.config_map_ref;
    Some((tenant.metadata.namespace.clone()?, reference.name.clone()))
}

fn ready(tenant: &Tenant) -> Option<&Condition> {
    let ready = format!("{:?}", ConditionType::Ready);
    tenant.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == ready)
}

fn is_ready(tenant: &Tenant) -> bool {
    ready(tenant).is_some_and(|ready| ready.status == "True")
}

/// For its script, or for another one.
fn waits(tenant: &Tenant) -> bool {
    let reasons = [Reason::ConfigMapNotFound, Reason::BootstrapFailed].map(Reason::as_str);
    ready(tenant).is_some_and(|ready| reasons.contains(&&*ready.reason))
}
