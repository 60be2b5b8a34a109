//! Our finalizer: no object is shown before it holds one, so that none goes without our having seen it.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::core::Status;
use kube::{Api, Client};
use rowgate_reconcile::source::{ObjectRef, SourceError};
use serde_json::json;

use super::watch::changes::has_ours;
use super::watch::collection::{KnownObject, name};
use super::watch::listed::Listed;
use super::watch::stores::Stores;
use super::{Declared, MANAGER, MAX_CONCURRENT, ask, ask_unless_refused};

/// The finalizer of every object of ours.
pub(crate) const FINALIZER: &str = "rowgate.dev/cleanup";

/// How often the object may change between our read and our write.
const MAX_ATTEMPTS: usize = 5;

/// Every object, as it was last understood; each of them holds our finalizer or is being deleted.
///
/// # Errors
/// When one does not take the finalizer: left out, it would look as if it were gone.
pub(crate) async fn objects<T: Declared>(
    client: &Client,
    stores: &Stores<T>,
) -> Result<Vec<Arc<T>>, SourceError> {
    let bare = stores.map(|held| (!is_held(held.meta())).then(|| held.meta().clone()));
    let gone: Vec<ObjectMeta> = stream::iter(bare)
        .map(|meta| hold(client, stores, meta))
        .buffer_unordered(MAX_CONCURRENT)
        .try_filter_map(|gone| async { Ok(gone) })
        .try_collect()
        .await?;
    let is_gone = |meta: &ObjectMeta| gone.iter().any(|gone| gone.uid == meta.uid);
    Ok(stores.map(|held| if is_gone(held.meta()) { None } else { shown(held) }))
}

fn is_held(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some() || has_ours(meta)
}

fn shown<T: Declared>(held: &KnownObject<T>) -> Option<Arc<T>> {
    let object = held.object()?.clone();
    if held.problem().is_none() {
        return Some(object);
    }
    // what was understood last, as it stands now; its status is about the generation that is in force
    let mut object = T::clone(&object);
    let generation = object.meta().generation;
    object.meta_mut().clone_from(held.meta());
    object.meta_mut().generation = generation;
    Some(Arc::new(object))
}

/// Puts the finalizer there. Gives back the object if it is gone instead.
async fn hold<T: Declared>(
    client: &Client,
    stores: &Stores<T>,
    seen: ObjectMeta,
) -> Result<Option<ObjectMeta>, SourceError> {
    let (namespace, name) = name(&seen);
    let api: Api<Listed<T>> = Api::namespaced(client.clone(), &namespace);
    let attempt = || format!("add a finalizer to {} {namespace}/{name}", T::KIND.as_str());
    let from = seen.resource_version.clone();
    let mut meta = seen.clone();
    for _ in 0..MAX_ATTEMPTS {
        if is_held(&meta) {
            return Ok(None);
        }
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        match patch(&api, &meta, &finalizers, attempt).await? {
            Ok(written) => {
                stores.wrote(from.as_deref(), written);
                return Ok(None);
            }
            Err(status) if status.code == 409 || status.code == 404 => {}
            Err(status) => return Err(refused(attempt(), &status)),
        }
        match ask(attempt, api.get_opt(&name)).await? {
            Some(now) if now.meta.uid == seen.uid => {
                meta = now.meta.clone();
                if is_held(&meta) {
                    stores.wrote(from.as_deref(), now);
                }
            }
            // the watch says so in a moment
            _ => return Ok(Some(seen)),
        }
    }
    Err(SourceError::Cluster { attempt: attempt(), reason: "the object keeps changing".to_owned() })
}

/// Takes our finalizer off an object that is being deleted.
pub(crate) async fn release<T: Declared>(client: &Client, object: &ObjectRef) -> Result<(), SourceError> {
    let api: Api<Listed<T>> = Api::namespaced(client.clone(), &object.namespace);
    let attempt = || format!("remove the finalizer from {object}");
    for _ in 0..MAX_ATTEMPTS {
        let Some(now) = ask(attempt, api.get_opt(&object.name)).await? else { return Ok(()) };
        let meta = now.meta;
        let is_it = meta.uid.as_deref() == Some(object.uid.as_str()) && meta.deletion_timestamp.is_some();
        if !is_it || !has_ours(&meta) {
            return Ok(());
        }
        let finalizers = meta.finalizers.iter().flatten().filter(|name| *name != FINALIZER).cloned();
        match patch(&api, &meta, &finalizers.collect::<Vec<_>>(), attempt).await? {
            Ok(_) => return Ok(()),
            Err(status) if status.code == 404 => return Ok(()),
            Err(status) if status.code == 409 => {}
            Err(status) => return Err(refused(attempt(), &status)),
        }
    }
    Err(SourceError::Cluster { attempt: attempt(), reason: "the object keeps changing".to_owned() })
}

/// Sets the finalizers of this version of the object, and of no other.
async fn patch<T: Declared>(
    api: &Api<Listed<T>>,
    meta: &ObjectMeta,
    finalizers: &[String],
    attempt: impl FnOnce() -> String,
) -> Result<Result<Listed<T>, Box<Status>>, SourceError> {
    let name = meta.name.clone().unwrap_or_default();
    let change =
        json!({ "metadata": { "resourceVersion": meta.resource_version, "finalizers": finalizers } });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    ask_unless_refused(attempt, async { api.patch(&name, &params, &Patch::Merge(&change)).await }).await
}

pub(crate) fn refused(attempt: String, status: &Status) -> SourceError {
    SourceError::Cluster {
        attempt,
        reason: format!("the API server answered {}: {}", status.code, status.message),
    }
}
