//! What a pass over a tenant would follow, told apart from what the last one followed. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use kube_core::ObjectMeta;
use rowgate_crds::{ApiKey, Kind, Tenant};

use crate::source::Snapshot;

/// What was asked for at one moment. Status, labels and other people's annotations are no part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inputs {
    /// The Tenant and its keys, by uid.
    objects: BTreeMap<String, Mark>,
    /// Of the bootstrap script.
    script: Option<u64>,
    /// The Secrets that keys name and that are not there.
    missing: BTreeSet<String>,
    /// ApiKeys beside the Tenant that cannot be read, by uid: whose they are is not known.
    unread: BTreeSet<String>,
}

/// What changes when somebody changes an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    generation: i64,
    deleting: bool,
    /// Ours.
    annotations: Vec<(String, String)>,
}

impl Mark {
    pub(crate) fn of(metadata: &ObjectMeta) -> Mark {
        let annotations = metadata.annotations.iter().flatten();
        let ours = annotations.filter(|(name, _)| name.starts_with("rowgate.dev/"));
        Mark {
            generation: metadata.generation.unwrap_or(0),
            deleting: metadata.deletion_timestamp.is_some(),
            annotations: ours.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

impl Inputs {
    /// `keys`: those that name the Tenant.
    pub(crate) fn of(tenant: &Tenant, keys: &[Arc<ApiKey>], snapshot: &Snapshot) -> Inputs {
        let mark = |metadata: &ObjectMeta| (metadata.uid.clone().unwrap_or_default(), Mark::of(metadata));
        let objects = keys.iter().map(|key| mark(&key.metadata)).chain([mark(&tenant.metadata)]).collect();
        let namespace = tenant.metadata.namespace.clone().unwrap_or_default();
        let script = tenant.spec.database.bootstrap.as_ref().and_then(|bootstrap| {
            let reference = &bootstrap.config_map_ref;
            let map = snapshot.config_maps.get(&(namespace.clone(), reference.name.clone()))?;
            let mut hasher = DefaultHasher::new();
            map.get(&reference.key)?.hash(&mut hasher);
            Some(hasher.finish())
        });
        let named = keys.iter().map(|key| key.secret_name().to_owned());
        let missing =
            named.filter(|name| !snapshot.secrets.contains(&(namespace.clone(), name.clone()))).collect();
        let unread = snapshot.unread_of(Kind::ApiKey).filter(|key| key.namespace == namespace);
        let unread = unread.map(|key| key.uid.clone()).collect();
        Inputs { objects, script, missing, unread }
    }

    /// The Secret was seen to be there since: its absence is news again.
    pub(crate) fn is_there(&mut self, name: &str) {
        self.missing.remove(name);
    }

    /// Whether a pass is due that followed `before`. A Secret that came is no reason: the pass itself made it.
    pub(crate) fn differ(&self, before: &Inputs) -> bool {
        self.objects != before.objects
            || self.script != before.script
            || self.unread != before.unread
            || !self.missing.is_subset(&before.missing)
    }
}

#[cfg(test)]
mod tests {
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
        snapshot.secrets = secrets.iter().map(|name| ("a".to_owned(), (*name).to_owned())).collect();
        let spec = json!({"database": {"bootstrap": {"configMapRef": {"name": "script"}}}});
        let tenant = object::<Tenant>("Tenant", tenant, &spec);
        let key = object::<ApiKey>("ApiKey", key, &json!({"tenantRef": {"name": "t"}}));
        Inputs::of(&tenant, &[key], &snapshot)
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
}
