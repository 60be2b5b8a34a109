//! The collections of one kind: one for the cluster, or one for each namespace that is watched.

use std::sync::Arc;

use kube::Resource;
use parking_lot::Mutex;

use super::collection::{Collection, KnownObject};
use super::listed::Listed;
use crate::source::{Declared, ObjectRef, SourceProblem};

pub(crate) type Store<T> = Arc<Mutex<Collection<T>>>;

/// By namespace; `None`: all.
pub(crate) struct Stores<T>(Vec<(Option<String>, Store<T>)>);

impl<T> Default for Stores<T> {
    fn default() -> Stores<T> {
        Stores(Vec::new())
    }
}

impl<T: Resource> Stores<T> {
    pub(crate) fn new(namespaces: &[String]) -> Stores<T> {
        match namespaces {
            [] => Stores(vec![(None, Store::default())]),
            names => Stores(names.iter().map(|name| (Some(name.clone()), Store::default())).collect()),
        }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (Option<&str>, &Store<T>)> {
        self.0.iter().map(|(namespace, store)| (namespace.as_deref(), store))
    }

    pub(crate) fn are_known(&self) -> bool {
        self.0.iter().all(|(_, store)| store.lock().known().is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().filter_map(|(_, store)| store.lock().known().map(|known| known.len())).sum()
    }

    /// What is made of each object, those left out of which nothing is.
    pub(crate) fn map<U>(&self, make: impl Fn(&KnownObject<T>) -> Option<U>) -> Vec<U> {
        let mut made = Vec::new();
        for (_, store) in &self.0 {
            made.extend(store.lock().known().into_iter().flat_map(|known| known.values()).filter_map(&make));
        }
        made
    }

    /// What is made of one object, if it is there.
    pub(crate) fn with<U>(
        &self,
        namespace: &str,
        name: &str,
        make: impl FnOnce(&KnownObject<T>) -> U,
    ) -> Option<U> {
        let store = self.of(namespace)?.lock();
        store.known()?.get(&(namespace.to_owned(), name.to_owned())).map(make)
    }

    /// The object's resource version.
    pub(crate) fn version(&self, namespace: &str, name: &str) -> Option<String> {
        self.with(namespace, name, |held| held.meta().resource_version.clone())?
    }

    /// As [`Collection::wrote`].
    pub(crate) fn wrote(&self, from: Option<&str>, listed: Listed<T>) {
        if let Some(store) = self.of(listed.meta.namespace.as_deref().unwrap_or_default()) {
            store.lock().wrote(from, listed);
        }
    }

    fn of(&self, namespace: &str) -> Option<&Store<T>> {
        let of = |of: &Option<String>| of.as_deref().is_none_or(|of| of == namespace);
        self.0.iter().find(|(scope, _)| of(scope)).map(|(_, store)| store)
    }
}

impl<T: Declared> Stores<T> {
    /// Those of which no version was ever understood, and that are not being deleted.
    pub(crate) fn unread(&self) -> Vec<ObjectRef> {
        self.map(|held| {
            if held.object().is_some() || held.meta().deletion_timestamp.is_some() {
                return None;
            }
            let (namespace, name) = super::collection::name(held.meta());
            let uid = held.meta().uid.clone().unwrap_or_default();
            Some(ObjectRef { kind: T::KIND, namespace, name, uid })
        })
    }

    /// What is not understood.
    pub(crate) fn problems(&self) -> Vec<SourceProblem> {
        self.map(|held| {
            let message = held.problem()?.to_owned();
            let (namespace, name) = super::collection::name(held.meta());
            Some(SourceProblem { file: format!("{} {namespace}/{name}", T::KIND.as_str()), message })
        })
    }
}
