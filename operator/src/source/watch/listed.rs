//! One object as a list or watch gives it: understood or not, it is there.

use std::borrow::Cow;
use std::sync::Arc;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::{Map, Value};

/// What is kept of an object's metadata. The rest is most of a small object, and never asked for: `managedFields`, what
/// others note in labels and annotations.
const KEPT: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "finalizers",
    "annotations",
    "labels",
];
/// The labels and annotations that are kept.
const OURS: &str = "rowgate.dev/";

/// An object whose fields this version may not understand. One that cannot be read must not hide the others, nor look as
/// if it were gone.
#[derive(Debug, Clone)]
pub(crate) struct Listed<T> {
    /// Of [`KEPT`].
    pub(crate) meta: ObjectMeta,
    pub(crate) object: Result<Arc<T>, String>,
}

// by hand: kube's DeserializeGuard loses numbers where serde_json keeps their digits
impl<'de, T: DeserializeOwned> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Listed<T>, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.retain(|name, _| KEPT.contains(&name.as_str()));
            for field in ["annotations", "labels"] {
                if let Some(notes) = metadata.get_mut(field).and_then(Value::as_object_mut) {
                    notes.retain(|name, _| name.starts_with(OURS));
                }
                if metadata.get(field).and_then(Value::as_object).is_some_and(Map::is_empty) {
                    metadata.remove(field);
                }
            }
        }
        let meta = ObjectMeta::deserialize(&value["metadata"]).map_err(D::Error::custom)?;
        let object = T::deserialize(&value).map(Arc::new).map_err(|error| error.to_string());
        Ok(Listed { meta, object })
    }
}

impl<T: Resource> Resource for Listed<T> {
    type DynamicType = T::DynamicType;
    type Scope = T::Scope;

    fn kind(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::kind(dynamic)
    }

    fn group(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::group(dynamic)
    }

    fn version(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::version(dynamic)
    }

    fn plural(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use rowgate_crds::Tenant;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_is_not_understood_is_there_all_the_same() {
        let object = |max: Value| {
            json!({
                "apiVersion": "rowgate.dev/v1alpha1", "kind": "Tenant",
                "metadata": { "name": "shop", "namespace": "n", "uid": "u", "generation": 7, "managedFields": [{}],
                    "labels": { "a": "b", "rowgate.dev/origin": "api" }, "creationTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["f"],
                    "resourceVersion": "9", "deletionTimestamp": "2031-01-01T00:00:00Z",
                    "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}", "rowgate.dev/rotate": "1" } },
                "spec": { "limits": { "maxPageSize": max } },
            })
        };
        let good: Listed<Tenant> = serde_json::from_str(&object(json!(500)).to_string()).expect("an object");
        assert_eq!(good.meta.generation, Some(7));
        let tenant = good.object.expect("a Tenant");
        let kept = serde_json::to_value(&tenant.metadata).expect("plain values");
        let names: Vec<&String> = kept.as_object().expect("an object").keys().collect();
        assert_eq!(names.len(), KEPT.len(), "{names:?}");
        let annotations = kept["annotations"].as_object().expect("an object");
        assert_eq!(annotations.keys().collect::<Vec<_>>(), ["rowgate.dev/rotate"]);
        assert_eq!(tenant.spec.limits.clone().expect("limits").max_page_size, Some(500));
        let bad: Listed<Tenant> =
            serde_json::from_str(&object(json!("many")).to_string()).expect("an object");
        assert_eq!((bad.meta.name.as_deref(), bad.object.is_err()), (Some("shop"), true));
    }
}
