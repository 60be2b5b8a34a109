//! The Kubernetes API as a source. `watch` keeps the objects current; the other files each read or write one thing: status,
//! Events, finalizers, Secrets, ConfigMaps.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ObjectMeta};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher;
use kube::{Client, Resource};
use rowgate_crds::{ApiKey, Kind, Relationship, Tenant, WebhookSubscription};
use rowgate_reconcile::source::{
    Described, Event, Found, Mirrors, ObjectRef, ResourceSource, SecretView, Snapshot, SourceError,
    SourceProblem, StatusReport, Version,
};
use tokio::sync::{Notify, watch as watch_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::api::{Progress, REQUEST_TIMEOUT};
use crate::meter::Meter;
use rowgate_reconcile::mirrors::is_mirror;
use rowgate_reconcile::with_kind;

mod config_maps;
mod events;
mod finalizer;
mod mirrors;
mod secrets;
mod status;
mod watch;

pub(crate) use finalizer::refused;
use watch::stores::Stores;

/// Requests of one kind of work that are under way at once.
pub(crate) const MAX_CONCURRENT: usize = 16;
/// Under which name our fields are ours, and in Events.
pub(crate) const MANAGER: &str = "rowgate-operator";
/// The label of what we make, with [`MANAGER`] as its value.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Objects in one page of a list.
const PAGE_SIZE: u32 = 100;

/// A kind that is watched.
pub(crate) trait Declared:
    Described + Resource<DynamicType = (), Scope = NamespaceResourceScope>
{
    /// Whether its definition came with a later version than the first: an installation that upgrades may lack it.
    const IS_LATER: bool = false;

    /// The objects of this kind.
    fn stores(source: &KubeSource) -> &Stores<Self>;
}

impl Declared for Tenant {
    fn stores(source: &KubeSource) -> &Stores<Tenant> {
        &source.tenants
    }
}

impl Declared for ApiKey {
    fn stores(source: &KubeSource) -> &Stores<ApiKey> {
        &source.api_keys
    }
}

impl Declared for Relationship {
    const IS_LATER: bool = true;

    fn stores(source: &KubeSource) -> &Stores<Relationship> {
        &source.relationships
    }
}

impl Declared for WebhookSubscription {
    const IS_LATER: bool = true;

    fn stores(source: &KubeSource) -> &Stores<WebhookSubscription> {
        &source.subscriptions
    }
}

/// What the tasks of the watches share with the source.
pub(crate) struct Shared {
    /// Something may be new. Kept until a task waits for it.
    wake: Notify,
    /// A first list has ended.
    listed: watch_channel::Sender<()>,
    statuses: status::Statuses,
    pub(crate) progress: Progress,
    pub(crate) meter: Arc<Meter>,
}

/// The resources of a cluster, or of some of its namespaces.
pub struct KubeSource {
    client: Client,
    tenants: Stores<Tenant>,
    api_keys: Stores<ApiKey>,
    relationships: Stores<Relationship>,
    subscriptions: Stores<WebhookSubscription>,
    secrets: secrets::Watched,
    config_maps: config_maps::ConfigMaps,
    events: events::Events,
    shared: Arc<Shared>,
}

impl KubeSource {
    /// Begins to watch, in tasks of `tasks`: everything, or (not empty) `namespaces`. A watch is renewed after `watch`.
    #[must_use]
    pub fn start(
        client: Client,
        namespaces: &[String],
        identity: &str,
        watch: Duration,
        progress: Progress,
        meter: Arc<Meter>,
        tasks: &mut JoinSet<()>,
    ) -> Arc<KubeSource> {
        let shared = Arc::new(Shared {
            wake: Notify::new(),
            listed: watch_channel::Sender::new(()),
            statuses: status::Statuses::default(),
            progress,
            meter,
        });
        let source = Arc::new(KubeSource {
            tenants: Stores::new(namespaces),
            api_keys: Stores::new(namespaces),
            relationships: Stores::new(namespaces),
            subscriptions: Stores::new(namespaces),
            secrets: secrets::Watched::new(namespaces),
            config_maps: config_maps::ConfigMaps::new(client.clone()),
            events: events::Events::new(client.clone(), identity, shared.meter.clone()),
            client,
            shared,
        });
        for kind in Kind::ALL {
            with_kind!(kind, T => source.watch(T::stores(&source), watch, tasks));
        }
        for (namespace, versions) in source.secrets.each() {
            let api = scoped(&source.client, namespace);
            let config = config(watch).labels(&secrets::selector());
            tasks.spawn(watch::secrets(versions.clone(), source.shared.clone(), api, config));
        }
        tasks.spawn(config_maps::follow(source.clone()));
        source
    }

    fn watch<T: Declared>(&self, stores: &Stores<T>, lasts: Duration, tasks: &mut JoinSet<()>) {
        for (namespace, store) in stores.each() {
            let watch =
                watch::Watch { name: T::plural(&()), store: store.clone(), shared: self.shared.clone() };
            tasks.spawn(watch.follow(scoped(&self.client, namespace), config(lasts)));
        }
    }

    /// Whether every first list has ended.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        Kind::ALL.into_iter().all(|kind| with_kind!(kind, T => T::stores(self).are_known()))
    }

    async fn ready(&self) {
        let mut listed = self.shared.listed.subscribe();
        while !self.is_ready() {
            // the sender lives as long as we do
            let _ = listed.changed().await;
        }
    }

    /// How many objects there are, by kind.
    #[must_use]
    pub fn n_objects(&self) -> [(Kind, usize); Kind::ALL.len()] {
        Kind::ALL.map(|kind| (kind, with_kind!(kind, T => T::stores(self).len())))
    }

    /// How many of them stand there in a form that this version cannot read, by kind.
    #[must_use]
    pub fn n_problems(&self) -> [(Kind, usize); Kind::ALL.len()] {
        Kind::ALL.map(|kind| (kind, with_kind!(kind, T => T::stores(self).problems().len())))
    }
}

/// Where an object's Secret is, by its manifest: namespace and name.
fn secret_of(metadata: &ObjectMeta, name: impl Into<String>) -> (String, String) {
    (metadata.namespace.clone().unwrap_or_default(), name.into())
}

fn config(lasts: Duration) -> watcher::Config {
    let seconds = u32::try_from(lasts.as_secs()).expect("a few minutes");
    watcher::Config::default().timeout(seconds).page_size(PAGE_SIZE)
}

fn scoped<T: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
    client: &Client,
    namespace: Option<&str>,
) -> Api<T> {
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// A request to the API server, in time.
pub(crate) async fn ask<T>(
    attempt: impl FnOnce() -> String,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, SourceError> {
    let failed = |reason: String| SourceError::Cluster { attempt: attempt(), reason };
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(said(&error))),
        Err(_) => Err(failed(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()))),
    }
}

/// As [`ask`]; what the API server itself refuses is left to the caller.
pub(crate) async fn ask_unless_refused<T>(
    attempt: impl FnOnce() -> String,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<Result<T, Box<kube::core::Status>>, SourceError> {
    let refused = async {
        match request.await {
            Ok(answer) => Ok(Ok(answer)),
            Err(kube::Error::Api(status)) => Ok(Err(status)),
            Err(error) => Err(error),
        }
    };
    ask(attempt, refused).await
}

/// What the API server said, or what kept it from it.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("the API server answered {}: {}", status.code, status.message),
        other => other.to_string(),
    }
}

impl ResourceSource for KubeSource {
    async fn changed(&self) {
        self.shared.wake.notified().await;
    }

    async fn snapshot(&self) -> Result<Snapshot, SourceError> {
        self.ready().await;
        let began = Instant::now();
        let tenants = finalizer::objects(&self.client, &self.tenants).await?;
        let api_keys = finalizer::objects(&self.client, &self.api_keys).await?;
        let relationships = finalizer::objects(&self.client, &self.relationships).await?;
        let subscriptions = finalizer::objects(&self.client, &self.subscriptions).await?;
        let config_maps = self.config_maps.read(&tenants).await?;
        let (mut problems, mut unread) = (Vec::new(), BTreeSet::new());
        for kind in Kind::ALL {
            with_kind!(kind, T => {
                problems.extend(T::stores(self).problems());
                unread.extend(T::stores(self).unread());
            });
        }
        self.shared.meter.looks.observe(began.elapsed());
        let of_keys = api_keys.iter().map(|it| secret_of(&it.metadata, it.secret_name()));
        let declared = subscriptions.iter().filter(|it| !is_mirror(&it.metadata));
        let migrations = |it: &Arc<Tenant>| Some(secret_of(&it.metadata, it.migrations_secret()?));
        let declared = declared.map(|it| secret_of(&it.metadata, it.secret_name()));
        let named: Vec<(String, String)> =
            of_keys.chain(declared).chain(tenants.iter().filter_map(migrations)).collect();
        let named = named.iter().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let missing = self.secrets.missing(named);
        Ok(Snapshot {
            tenants,
            api_keys,
            relationships,
            subscriptions,
            config_maps,
            secrets: BTreeMap::new(),
            missing,
            problems,
            unread,
        })
    }

    async fn read_secret(&self, namespace: &str, name: &str) -> Result<Option<Found>, SourceError> {
        secrets::read(&self.client, namespace, name).await
    }

    async fn write_secret(
        &self,
        owner: &ObjectRef,
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, String>,
    ) -> Result<Option<Version>, SourceError> {
        secrets::write(&self.client, owner, namespace, name, data).await
    }

    fn watches_secrets(&self) -> bool {
        true
    }

    fn secret_view(&self, namespace: &str, name: &str) -> SecretView {
        self.secrets.secret_view(namespace, name)
    }

    async fn delete_secret(&self, owner: &ObjectRef, namespace: &str, name: &str) -> Result<(), SourceError> {
        secrets::delete(&self.client, owner, namespace, name).await
    }

    async fn report(&self, reports: &[StatusReport]) -> Result<(), SourceError> {
        status::write(self, reports).await
    }

    fn passed(&self, took: Duration) {
        self.shared.meter.passes.observe(took);
    }

    fn left_out(&self) {
        self.shared.meter.left_out.add_one();
    }

    async fn release(&self, object: &ObjectRef) -> Result<(), SourceError> {
        with_kind!(object.kind, T => finalizer::release::<T>(&self.client, object).await)
    }

    async fn show(&self, wanted: &Mirrors) -> Result<(), SourceError> {
        mirrors::show(self, wanted).await
    }

    async fn event(&self, object: &ObjectRef, event: Event) -> Result<(), SourceError> {
        self.events.publish(object, event).await;
        Ok(())
    }
}
