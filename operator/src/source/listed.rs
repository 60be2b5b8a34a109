//! One object as a list or watch gives it: understood or not, it is there.

use std::borrow::Cow;
use std::sync::Arc;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;

/// What kubectl notes for itself: the whole manifest again.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object whose fields this version may not understand. One that cannot be read must not hide the others, nor look as
/// if it were gone.
#[derive(Debug, Clone)]
pub(crate) struct Listed<T> {
    /// Without `managedFields` and what kubectl notes: most of a small object, and never asked for.
    pub(crate) meta: ObjectMeta,
    pub(crate) object: Result<Arc<T>, String>,
}

// by hand: kube's DeserializeGuard loses numbers where serde_json keeps their digits
impl<'de, T: DeserializeOwned> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Listed<T>, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(LAST_APPLIED);
            }
        }
        let meta = serde_json::from_value(value["metadata"].clone()).map_err(D::Error::custom)?;
        Ok(Listed {
            meta,
            object: serde_json::from_value(value).map(Arc::new).map_err(|error| error.to_string()),
        })
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
                    "annotations": { LAST_APPLIED: "{}", "a": "1" } },
                "spec": { "limits": { "maxPageSize": max } },
            })
        };
        let good: Listed<Tenant> = serde_json::from_str(&object(json!(500)).to_string()).expect("an object");
        assert_eq!(good.meta.generation, Some(7));
        let tenant = good.object.expect("a Tenant");
        assert_eq!(tenant.metadata.managed_fields, None);
        assert_eq!(tenant.metadata.annotations.iter().flatten().count(), 1);
        assert_eq!(tenant.spec.limits.clone().expect("limits").max_page_size, Some(500));
        let bad: Listed<Tenant> =
            serde_json::from_str(&object(json!("many")).to_string()).expect("an object");
        assert_eq!((bad.meta.name.as_deref(), bad.object.is_err()), (Some("shop"), true));
    }
}
