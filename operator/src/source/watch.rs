//! Runs each watch in a task, with backoff after failures. What a watch keeps current stands in this folder.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use rowgate_core::backoff::Backoff;
use tokio::time::Instant;

use super::secrets::SharedVersions;
use super::watch::listed::Listed;
use super::watch::stores::Store;
use super::{Declared, Shared};
use crate::meter::WatchMeter;
use rowgate_reconcile::entropy;

pub(crate) mod changes;
pub(crate) mod collection;
pub(crate) mod listed;
pub(crate) mod secret_versions;
pub(crate) mod stores;

/// After a failure, and what it grows to while failures go on.
const INITIAL_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// A watch of Secrets that fails for so long shows nothing any more: they are read by their names again, with each look.
const WATCH_FAILURE_TIMEOUT: Duration = Duration::from_secs(20);

/// What a watch keeps current.
pub(crate) struct Watch<T> {
    /// The plural of the kind.
    pub(crate) name: Cow<'static, str>,
    pub(crate) store: Store<T>,
    pub(crate) shared: Arc<Shared>,
}

impl<T: Declared> Watch<T> {
    /// Watches for ever.
    pub(crate) async fn follow(self, api: Api<Listed<T>>, config: watcher::Config) {
        let path = api.resource_url().to_owned();
        self.shared.progress.expect(&path);
        let meter = self.shared.meter.watch(&self.name);
        let take = |event| self.take(&meter, event);
        let failing = |_, error: &watcher::Error| {
            if T::IS_LATER && is_undefined(error) {
                self.undefined(&path);
            }
        };
        each(&self.shared, &meter, &path, watcher(api, config), take, failing).await;
    }

    /// Nothing waits for a definition that is not there.
    fn undefined(&self, path: &str) {
        self.shared.progress.note(path);
        if self.store.lock().is_undefined() {
            let kind = T::KIND.as_str();
            tracing::warn!(
                kind,
                "the API server does not know the kind; apply its CustomResourceDefinition, which comes with this version; until then no object of this kind is served"
            );
            self.shared.listed.send_replace(());
            self.shared.wake.notify_one();
        }
    }

    fn take(&self, meter: &WatchMeter, event: Event<Listed<T>>) {
        meter.count(&event);
        let ended = matches!(event, Event::InitDone);
        if let Event::Apply(listed) | Event::InitApply(listed) = &event
            && let Err(problem) = &listed.object
        {
            let (namespace, name) = collection::name(&listed.meta);
            let object = format!("{} {namespace}/{name}", T::KIND.as_str());
            tracing::warn!(
                object,
                problem,
                "this version cannot read the object; the last readable version stays in force"
            );
        }
        let shown = match &event {
            Event::Apply(listed) => Some(listed.meta.clone()),
            _ => None,
        };
        let turned = self.store.lock().take(event, changes::of_object);
        if let Some(meta) = shown {
            self.shared.statuses.seen(&meta);
        }
        if ended {
            self.shared.statuses.forget();
            self.shared.listed.send_replace(());
        }
        if turned {
            self.shared.wake.notify_one();
        }
    }
}

/// Watches the metadata of our Secrets for ever. Nothing waits for it: where the rights to it are missing, as with the
/// rules of an older chart, Secrets are read by their names.
pub(crate) async fn secrets(
    versions: SharedVersions,
    shared: Arc<Shared>,
    api: Api<PartialObjectMeta<Secret>>,
    config: watcher::Config,
) {
    let path = api.resource_url().to_owned();
    let meter = shared.meter.watch("secrets");
    let take = |event| {
        meter.count(&event);
        if matches!(event, Event::InitDone) {
            // from now on its silence counts
            shared.progress.expect(&path);
        }
        if versions.lock().take(event) {
            shared.wake.notify_one();
        }
    };
    let failing = |since: Instant, _: &watcher::Error| {
        if WATCH_FAILURE_TIMEOUT <= since.elapsed() {
            versions.lock().forget();
        }
    };
    each(&shared, &meter, &path, watcher(api, config), take, failing).await;
}

/// Whether the API server has no definition of the kind.
fn is_undefined(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

/// Takes each event. `failing` is called with each failure, and the time of the first in a row.
async fn each<K>(
    shared: &Shared,
    meter: &WatchMeter,
    path: &str,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    take: impl Fn(Event<K>),
    failing: impl Fn(Instant, &watcher::Error),
) {
    let mut events = std::pin::pin!(events);
    let mut backoff = Backoff::new(INITIAL_BACKOFF);
    let mut failed: Option<Instant> = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                // a list that has only begun proves nothing
                if !matches!(event, Event::Init | Event::InitApply(_)) {
                    backoff.reset();
                    shared.progress.note(path);
                    if failed.take().is_some() {
                        tracing::info!(watch = path, "the watch continues");
                    }
                }
                take(event);
            }
            Err(error) => {
                meter.errors.add_one();
                let since = *failed.get_or_insert_with(|| {
                    tracing::warn!(watch = path, %error, "the watch failed; known objects are kept; retrying");
                    Instant::now()
                });
                failing(since, &error);
                tokio::time::sleep(backoff.pause(MAX_BACKOFF, entropy::between(0.0, 1.0))).await;
            }
        }
    }
}
