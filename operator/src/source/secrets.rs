//! Secrets. Each is read by its name when it is needed, and none is kept in memory; of ours a watch shows the metadata, so
//! that those that are as they were are not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt as _};
use parking_lot::{Mutex, MutexGuard};
use rowgate_crds::API_VERSION;
use rowgate_reconcile::source::{Found, ObjectRef, SecretView, SourceError, Version};

use super::finalizer::refused;
use super::watch::collection::Name;
use super::watch::secret_versions::{SecretVersions, Versions, version};
use super::{MANAGED_BY, MANAGER, ask, ask_unless_refused};

pub(crate) type SharedVersions = Arc<Mutex<SecretVersions>>;

/// What is seen of our Secrets: in the cluster, or in each namespace that is watched. `None`: all.
pub(crate) struct Watched(Vec<(Option<String>, SharedVersions)>);

impl Watched {
    pub(crate) fn new(namespaces: &[String]) -> Watched {
        match namespaces {
            [] => Watched(vec![(None, SharedVersions::default())]),
            names => {
                Watched(names.iter().map(|name| (Some(name.clone()), SharedVersions::default())).collect())
            }
        }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (Option<&str>, &SharedVersions)> {
        self.0.iter().map(|(namespace, versions)| (namespace.as_deref(), versions))
    }

    pub(crate) fn secret_view(&self, namespace: &str, name: &str) -> SecretView {
        let of = |(of, _): &(Option<&str>, &SharedVersions)| of.is_none_or(|of| of == namespace);
        let Some((_, versions)) = self.each().find(of) else { return SecretView::Unwatched };
        match versions.lock().known() {
            None => SecretView::Unwatched,
            Some(known) => {
                seen(known, namespace, name).cloned().map_or(SecretView::Absent, SecretView::Present)
            }
        }
    }

    /// Those that are watched and not to be seen. A key's namespace and the name of its Secret are what is asked for.
    pub(crate) fn missing<'a>(&self, names: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeSet<Name> {
        let all: Vec<(Option<&str>, MutexGuard<'_, SecretVersions>)> =
            self.each().map(|(of, versions)| (of, versions.lock())).collect();
        let is_missing = |(namespace, name): &(&str, &str)| {
            let versions = all.iter().find(|(of, _)| of.is_none_or(|of| of == *namespace));
            let known = versions.and_then(|(_, versions)| versions.known());
            known.is_some_and(|known| seen(known, namespace, name).is_none())
        };
        let missing = names.filter(is_missing);
        missing.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())).collect()
    }
}

fn seen<'a>(known: &'a Versions, namespace: &str, name: &str) -> Option<&'a Version> {
    known.get(namespace)?.get(name)
}

/// The labels of our Secrets, by which they are watched.
pub(crate) fn selector() -> String {
    format!("{MANAGED_BY}={MANAGER}")
}

/// The Secret as it is now, whether it says that it is ours or not; `None`: there is none.
pub(crate) async fn read(client: &Client, namespace: &str, name: &str) -> Result<Option<Found>, SourceError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let attempt = || format!("read Secret {namespace}/{name}");
    let secret = ask(attempt, api.get_opt(name)).await?;
    Ok(secret.map(|secret| {
        let entries = secret.data.unwrap_or_default().into_iter();
        let data = entries.filter_map(|(name, value)| Some((name, String::from_utf8(value.0).ok()?)));
        Found { data: data.collect(), version: version(&secret.metadata) }
    }))
}

/// Makes the Secret, or gives the one of `owner` these entries, and our label.
///
/// A new one, as most are, is created and never applied, and an old one changed only in the version that we saw: of two
/// operators one is refused.
pub(crate) async fn write(
    client: &Client,
    owner: &ObjectRef,
    namespace: &str,
    name: &str,
    data: &BTreeMap<String, String>,
) -> Result<Option<Version>, SourceError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let attempt = || format!("write Secret {namespace}/{name}");
    let mut secret = secret(owner, namespace, name, data);
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let created = ask_unless_refused(attempt, api.create(&params, &secret)).await?;
    let written = match created {
        Err(status) if status.reason == "AlreadyExists" => {
            let before = ask(attempt, api.get_metadata(name)).await?;
            if before.owner_references().iter().any(|other| other.uid != owner.uid) {
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                return Err(SourceError::SecretTaken { namespace, name });
            }
            secret.metadata.resource_version = before.resource_version();
            secret.metadata.uid = before.uid();
            let params = PatchParams::apply(MANAGER).force();
            ask_unless_refused(attempt, async { api.patch(name, &params, &Patch::Apply(&secret)).await })
                .await?
        }
        created => created,
    };
    written.map(|secret| version(&secret.metadata)).map_err(|status| refused(attempt(), &status))
}

/// Removes the Secret of `owner`; another one is left alone.
pub(crate) async fn delete(
    client: &Client,
    owner: &ObjectRef,
    namespace: &str,
    name: &str,
) -> Result<(), SourceError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let attempt = || format!("delete Secret {namespace}/{name}");
    let Some(there) = ask(attempt, api.get_metadata_opt(name)).await? else { return Ok(()) };
    if !there.owner_references().iter().any(|of| of.uid == owner.uid) {
        return Ok(());
    }
    let preconditions = Some(Preconditions { uid: there.uid(), resource_version: there.resource_version() });
    let params = DeleteParams { preconditions, ..DeleteParams::default() };
    match ask_unless_refused(attempt, api.delete(name, &params)).await? {
        Ok(_) => Ok(()),
        Err(status) if status.code == 404 => Ok(()),
        Err(status) => Err(refused(attempt(), &status)),
    }
}

fn secret(owner: &ObjectRef, namespace: &str, name: &str, data: &BTreeMap<String, String>) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(MANAGED_BY.to_owned(), MANAGER.to_owned())])),
            owner_references: Some(vec![OwnerReference {
                api_version: API_VERSION.to_owned(),
                kind: owner.kind.as_str().to_owned(),
                name: owner.name.clone(),
                uid: owner.uid.clone(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        string_data: Some(data.clone()),
        ..Secret::default()
    }
}
