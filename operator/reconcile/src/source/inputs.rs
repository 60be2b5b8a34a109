//! What a pass over a tenant would follow, compared with what the last one followed. Pure.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use kube_core::ObjectMeta;
use rowgate_crds::{ApiKey, Bootstrap, Kind, Relationship, Tenant, WebhookSubscription};

use crate::source::Snapshot;

/// What was asked for at one moment. Status, labels and other people's annotations are no part of what is compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs {
    tenant: Option<Arc<Tenant>>,
    /// In the order of the snapshot.
    pub(crate) keys: Vec<Arc<ApiKey>>,
    /// The same.
    pub(crate) relationships: Vec<Arc<Relationship>>,
    /// The same.
    pub(crate) subscriptions: Vec<Arc<WebhookSubscription>>,
    /// Of the scripts and the server's Secret that the Tenant names, and whether each is there.
    scripts: u64,
    /// The Secrets that keys and subscriptions name and that are not there.
    missing: BTreeSet<String>,
    /// Objects of other kinds beside the Tenant that cannot be read, by uid: whose they are is not known.
    unread: BTreeSet<String>,
}

/// What changes with each edit of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revision {
    generation: i64,
    deleting: bool,
    /// Ours.
    annotations: Vec<(String, String)>,
}

impl Revision {
    pub(crate) fn of(metadata: &ObjectMeta) -> Revision {
        let annotations = metadata.annotations.iter().flatten();
        let ours = annotations.filter(|(name, _)| name.starts_with("rowgate.dev/"));
        Revision {
            generation: metadata.generation.unwrap_or(0),
            deleting: metadata.deletion_timestamp.is_some(),
            annotations: ours.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

impl Inputs {
    /// `keys` and the others: those that name the Tenant.
    pub(crate) fn of(
        tenant: &Arc<Tenant>,
        keys: Vec<Arc<ApiKey>>,
        relationships: Vec<Arc<Relationship>>,
        subscriptions: Vec<Arc<WebhookSubscription>>,
        snapshot: &Snapshot,
    ) -> Inputs {
        let namespace = tenant.metadata.namespace.clone().unwrap_or_default();
        let mut scripts = DefaultHasher::new();
        for reference in tenant.spec.database.bootstrap.iter().flat_map(Bootstrap::references) {
            let map = snapshot.config_maps.get(&(namespace.clone(), reference.name.clone()));
            map.and_then(|data| data.get(&reference.key)).hash(&mut scripts);
        }
        if let Some(secret) = &tenant.spec.database.server_secret_ref {
            snapshot.secrets.get(&(namespace.clone(), secret.name.clone())).hash(&mut scripts);
        }
        let scripts = scripts.finish();
        let mut missing = BTreeSet::new();
        if !snapshot.missing.is_empty() {
            let of_keys = keys.iter().map(|key| key.secret_name().to_owned());
            let of_migrations = tenant.migrations_secret().map(str::to_owned);
            let names = of_keys.chain(subscriptions.iter().map(|it| it.secret_name())).chain(of_migrations);
            let named = names.map(|name| (namespace.clone(), name));
            missing.extend(named.filter(|name| snapshot.missing.contains(name)).map(|(_, name)| name));
        }
        let unread = [Kind::ApiKey, Kind::Relationship, Kind::WebhookSubscription]
            .into_iter()
            .flat_map(|kind| snapshot.unread_of(kind));
        let unread = unread.filter(|object| object.namespace == namespace).map(|it| it.uid.clone()).collect();
        Inputs { tenant: Some(tenant.clone()), keys, relationships, subscriptions, scripts, missing, unread }
    }

    /// Whether a Secret was not there.
    pub(crate) fn misses_some(&self) -> bool {
        !self.missing.is_empty()
    }

    /// The Secret was seen to be there since: its absence is news again.
    pub(crate) fn is_there(&mut self, name: &str) {
        self.missing.remove(name);
    }

    /// Whether what a pass does in the database that follows `before` is not asked for any more, so that it need not end.
    pub(crate) fn is_another_task(&self, before: &Inputs) -> bool {
        let revision = |inputs: &Inputs| inputs.tenant.as_ref().map(|tenant| Revision::of(&tenant.metadata));
        before.tenant.is_some() && (self.scripts, revision(self)) != (before.scripts, revision(before))
    }

    /// Whether a pass is due that followed `before`. A Secret that came is no reason: the pass itself made it.
    pub(crate) fn differ(&self, before: &Inputs) -> bool {
        let tenants = || self.tenant.iter().zip(&before.tenant);
        let keys = || self.keys.iter().zip(&before.keys);
        let relationships = || self.relationships.iter().zip(&before.relationships);
        let subscriptions = || self.subscriptions.iter().zip(&before.subscriptions);
        let counts = |it: &Inputs| {
            (it.tenant.is_some(), it.keys.len(), it.relationships.len(), it.subscriptions.len())
        };
        counts(self) != counts(before)
            || tenants().any(|(now, before)| !asks_the_same(now, before, |it| &it.metadata))
            || keys().any(|(now, before)| !asks_the_same(now, before, |it| &it.metadata))
            || relationships().any(|(now, before)| !asks_the_same(now, before, |it| &it.metadata))
            || subscriptions().any(|(now, before)| !asks_the_same(now, before, |it| &it.metadata))
            || self.scripts != before.scripts
            || self.unread != before.unread
            || !self.missing.is_subset(&before.missing)
    }
}

/// An object that is the very same value needs no comparing: most are, with each look.
fn asks_the_same<T>(now: &Arc<T>, before: &Arc<T>, metadata: fn(&T) -> &ObjectMeta) -> bool {
    if Arc::ptr_eq(now, before) {
        return true;
    }
    let (now, before) = (metadata(now), metadata(before));
    now.uid == before.uid && Revision::of(now) == Revision::of(before)
}

/// Whether one of the objects is gone that were there before.
pub(crate) fn lost<T>(now: &[Arc<T>], before: &[Arc<T>], metadata: fn(&T) -> &ObjectMeta) -> bool {
    let kept: HashSet<*const T> = now.iter().map(Arc::as_ptr).collect();
    let mut others = before.iter().filter(|it| !kept.contains(&Arc::as_ptr(it))).peekable();
    if others.peek().is_none() {
        return false;
    }
    let uids: HashSet<Option<&str>> = now.iter().map(|it| metadata(it).uid.as_deref()).collect();
    others.any(|it| !uids.contains(&metadata(it).uid.as_deref()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn object<T: serde::de::DeserializeOwned>(kind: &str, metadata: &Value, spec: &Value) -> Arc<T> {
        let object =
            json!({"apiVersion": "rowgate.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
        Arc::new(serde_json::from_value(object).expect("the test's object"))
    }

    fn inputs(tenant: &Value, key: &Value, script: &str, secrets: &[&str]) -> Inputs {
        let mut snapshot = Snapshot::default();
        let data = BTreeMap::from([("schema.sql".to_owned(), script.to_owned())]);
        snapshot.config_maps.insert(("a".to_owned(), "script".to_owned()), Arc::new(data));
        let spec = json!({"database": {"bootstrap": {"configMapRef": {"name": "script"}}}});
        let tenant = object::<Tenant>("Tenant", tenant, &spec);
        let key = object::<ApiKey>("ApiKey", key, &json!({"tenantRef": {"name": "t"}}));
        if !secrets.contains(&key.secret_name()) {
            snapshot.missing.insert(("a".to_owned(), key.secret_name().to_owned()));
        }
        Inputs::of(&tenant, vec![key], Vec::new(), Vec::new(), &snapshot)
    }

    #[test]
    fn a_pass_is_due_when_somebody_changed_something_and_only_then() {
        let tenant = json!({"name": "t", "namespace": "a", "uid": "1", "generation": 3});
        let key = json!({"name": "k", "namespace": "a", "uid": "2", "generation": 1});
        let with = |base: &Value, field: &str, value: Value| {
            let mut base = base.clone();
            base[field] = value;
            base
        };
        let before = inputs(&tenant, &key, "select 1", &["k"]);
        for (what, due, after) in [
            ("nothing", false, inputs(&tenant, &key, "select 1", &["k"])),
            (
                "a version",
                false,
                inputs(&with(&tenant, "resourceVersion", json!("9")), &key, "select 1", &["k"]),
            ),
            ("a label", false, inputs(&with(&tenant, "labels", json!({"a": "b"})), &key, "select 1", &["k"])),
            (
                "a note",
                false,
                inputs(&with(&tenant, "annotations", json!({"a": "b"})), &key, "select 1", &["k"]),
            ),
            ("another Secret", false, inputs(&tenant, &key, "select 1", &["k", "l"])),
            ("the Tenant", true, inputs(&with(&tenant, "generation", json!(4)), &key, "select 1", &["k"])),
            ("the key", true, inputs(&tenant, &with(&key, "generation", json!(2)), "select 1", &["k"])),
            ("another key", true, inputs(&tenant, &with(&key, "uid", json!("3")), "select 1", &["k"])),
            ("the script", true, inputs(&tenant, &key, "select 2", &["k"])),
            ("the Secret", true, inputs(&tenant, &key, "select 1", &[])),
            (
                "a switch",
                true,
                inputs(
                    &with(&tenant, "annotations", json!({"rowgate.dev/reconcile-at": "1"})),
                    &key,
                    "select 1",
                    &["k"],
                ),
            ),
            (
                "its end",
                true,
                inputs(
                    &tenant,
                    &with(&key, "deletionTimestamp", json!("2030-01-01T00:00:00Z")),
                    "select 1",
                    &["k"],
                ),
            ),
        ] {
            assert_eq!(after.differ(&before), due, "{what}");
        }
        let mut without = inputs(&tenant, &key, "select 1", &[]);
        assert!(!before.differ(&without), "the Secret that a pass made");
        assert!(!without.clone().differ(&without), "a Secret that nobody saw yet");
        without.is_there("k");
        assert!(
            inputs(&tenant, &key, "select 1", &[]).differ(&without),
            "the Secret that a pass made, deleted"
        );
    }

    #[test]
    fn a_pass_is_due_when_one_of_several_scripts_changed_came_or_went() {
        let inputs = |data: &[(&str, &str)]| {
            let data = data.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
            let mut snapshot = Snapshot::default();
            snapshot.config_maps.insert(("a".to_owned(), "script".to_owned()), Arc::new(data));
            let metadata = json!({"name": "t", "namespace": "a", "uid": "1", "generation": 3});
            let scripts = json!([{"name": "script", "key": "1"}, {"name": "script", "key": "2"}]);
            let tenant = object::<Tenant>(
                "Tenant",
                &metadata,
                &json!({"database": {"bootstrap": {"scripts": scripts}}}),
            );
            Inputs::of(&tenant, Vec::new(), Vec::new(), Vec::new(), &snapshot)
        };
        let before = inputs(&[("1", "select 1"), ("2", "select 2")]);
        for (what, due, after) in [
            ("nothing", false, inputs(&[("1", "select 1"), ("2", "select 2")])),
            ("another key", false, inputs(&[("1", "select 1"), ("2", "select 2"), ("3", "select 3")])),
            ("the second", true, inputs(&[("1", "select 1"), ("2", "select 3")])),
            ("their order", true, inputs(&[("1", "select 2"), ("2", "select 1")])),
            ("one that is gone", true, inputs(&[("1", "select 1")])),
        ] {
            assert_eq!((after.differ(&before), before.differ(&after)), (due, due), "{what}");
        }
    }

    #[test]
    fn an_object_is_lost_when_it_is_there_no_more_under_its_uid() {
        let key = |uid: &str, generation: i64| {
            let metadata = json!({"name": "k", "uid": uid, "generation": generation});
            object::<ApiKey>("ApiKey", &metadata, &json!({"tenantRef": {"name": "t"}}))
        };
        let (a, b) = (key("a", 1), key("b", 1));
        for (what, now, gone) in [
            ("the same", vec![a.clone(), b.clone()], false),
            ("in another order", vec![b.clone(), a.clone()], false),
            ("one more", vec![key("c", 1), a.clone(), b.clone()], false),
            ("another version", vec![a.clone(), key("b", 2)], false),
            ("one less", vec![a.clone()], true),
            ("another one of that name", vec![a.clone(), key("c", 1)], true),
        ] {
            assert_eq!(lost(&now, &[a.clone(), b.clone()], |it| &it.metadata), gone, "{what}");
        }
    }
}
