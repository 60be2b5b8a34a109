//! Status: written when it says something else than what stands there, times aside.

use std::collections::HashMap;

use futures_util::{TryStreamExt as _, stream};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams};
use parking_lot::Mutex;
use rowgate_crds::API_VERSION;
use rowgate_reconcile::source::{Event, ObjectRef, SourceError, Status, StatusReport};
use rowgate_reconcile::with_kind;
use serde_json::json;

use super::watch::listed::Listed;
use super::{Declared, KubeSource, MANAGER, MAX_CONCURRENT, ask_unless_refused};

/// What was written and did not come back by the watch yet, by uid: resource version and status.
#[derive(Default)]
pub(crate) struct Statuses(Mutex<HashMap<String, (String, Status)>>);

impl Statuses {
    /// The watch shows this version.
    pub(crate) fn seen(&self, meta: &ObjectMeta) {
        let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) else { return };
        let mut written = self.0.lock();
        if written.get(uid).is_some_and(|(ours, _)| ours == version) {
            written.remove(uid);
        }
    }

    /// A list shows what stands there.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }

    fn of(&self, uid: &str) -> Option<Status> {
        self.0.lock().get(uid).map(|(_, status)| status.clone())
    }

    fn wrote(&self, uid: &str, version: String, status: Status) {
        self.0.lock().insert(uid.to_owned(), (version, status));
    }
}

/// Writes what is new. An object that is gone, or was recreated, is no error.
///
/// # Errors
/// The first that the API server did not answer to; or else the last that it refused.
pub(crate) async fn write(source: &KubeSource, reports: &[StatusReport]) -> Result<(), SourceError> {
    let news: Vec<(&ObjectRef, News)> = reports
        .iter()
        .filter_map(|report| {
            let news = with_kind!(report.object.kind, T => news::<T>(source, report));
            Some((&report.object, news?))
        })
        .collect();
    let refused = Mutex::new(None);
    let refused = &refused;
    stream::iter(news.into_iter().map(Ok))
        .try_for_each_concurrent(MAX_CONCURRENT, |(object, News { status, events })| async move {
            let written = with_kind!(object.kind, T => one::<T>(source, object, status).await?);
            match written {
                // only now: a status that is tried again brings its Events again
                Ok(true) => {
                    for event in events {
                        source.events.publish(object, event).await;
                    }
                }
                Ok(false) => {}
                Err(refusal) => drop(refused.lock().replace(refusal)),
            }
            Ok::<_, SourceError>(())
        })
        .await?;
    let refused = refused.lock().take();
    refused.map_or(Ok(()), Err)
}

/// What is to be written.
struct News {
    status: Status,
    /// What happened, as it says.
    events: Vec<Event>,
}

/// The status to write, if the one that stands there says something else.
fn news<T: Declared>(source: &KubeSource, report: &StatusReport) -> Option<News> {
    let ObjectRef { namespace, name, uid, .. } = &report.object;
    let there = T::stores(source).with(namespace, name, |held| {
        let is_it = held.meta().uid.as_deref() == Some(uid.as_str());
        is_it.then(|| held.object().cloned())
    });
    let object = there.flatten()?;
    let there = source.shared.statuses.of(uid).or_else(|| object?.status());
    let events = report.status.events(there.as_ref());
    let status = there.map_or_else(|| Some(report.status.clone()), |there| report.status.over(&there));
    status.map(|status| News { status, events })
}

/// Writes one. The inner error is a refusal of this one alone; false: the object is gone.
async fn one<T: Declared>(
    source: &KubeSource,
    object: &ObjectRef,
    status: Status,
) -> Result<Result<bool, SourceError>, SourceError> {
    let api: Api<Listed<T>> = Api::namespaced(source.client.clone(), &object.namespace);
    let attempt = || format!("write the status of {object}");
    let change = json!({
        "apiVersion": API_VERSION,
        "kind": object.kind.as_str(),
        // with its uid, or the status of an object that is gone would go to its namesake
        "metadata": { "name": object.name, "namespace": object.namespace, "uid": object.uid },
        "status": status.to_value(),
    });
    let params = PatchParams::apply(MANAGER).force();
    let change = Patch::Apply(&change);
    let request = api.patch_status(&object.name, &params, &change);
    match ask_unless_refused(attempt, request).await? {
        Ok(written) => {
            source.shared.meter.statuses.add_one();
            let version = written.meta.resource_version.unwrap_or_default();
            source.shared.statuses.wrote(&object.uid, version.clone(), status);
            // the watch may have been quicker than the answer
            if T::stores(source).version(&object.namespace, &object.name).as_ref() == Some(&version) {
                source.shared.statuses.seen(&written_meta(object, version));
            }
            Ok(Ok(true))
        }
        Err(refusal) if matches!(refusal.code, 404 | 409) => Ok(Ok(false)),
        Err(refusal) => {
            source.shared.meter.status_failures.add_one();
            Ok(Err(super::finalizer::refused(attempt(), &refusal)))
        }
    }
}

fn written_meta(object: &ObjectRef, version: String) -> ObjectMeta {
    ObjectMeta { uid: Some(object.uid.clone()), resource_version: Some(version), ..ObjectMeta::default() }
}
