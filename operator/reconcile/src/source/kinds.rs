//! One description per kind of resource: what sources, statuses and metrics need to know of it.
//!
//! A new kind is a variant of `Kind`, a file beside `tenant` and `api_key`, an arm of [`with_kind!`](crate::with_kind), a
//! field of [`Snapshot`], a variant of [`Status`] with a file in `status`, an `impl Declared` in `operator/src/source.rs`, and a
//! line in the rules of `charts/rowgate/rbac/rules.yaml`.

use std::fmt;
use std::sync::Arc;

use kube_core::ObjectMeta;
use rowgate_crds::Kind;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ObjectRef, Snapshot, Status};

mod api_key;
mod relationship;
mod tenant;
mod webhook_subscription;

/// A kind of resource.
pub trait Described: DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static {
    const KIND: Kind;

    fn metadata(&self) -> &ObjectMeta;

    /// The status that stands in the object.
    fn status(&self) -> Option<Status>;

    /// A status of this kind as it was written; `None`: it is not in a form of this version.
    fn read_status(value: &Value) -> Option<Status>;

    /// The objects of this kind.
    fn in_snapshot(snapshot: &mut Snapshot) -> &mut Vec<Arc<Self>>;
}

/// Evaluates an expression in which the given name is the type of a kind: the one place that lists the types.
#[macro_export]
macro_rules! with_kind {
    ($kind:expr, $type:ident => $do:expr) => {
        match $kind {
            ::rowgate_crds::Kind::Tenant => {
                type $type = ::rowgate_crds::Tenant;
                $do
            }
            ::rowgate_crds::Kind::ApiKey => {
                type $type = ::rowgate_crds::ApiKey;
                $do
            }
            ::rowgate_crds::Kind::Relationship => {
                type $type = ::rowgate_crds::Relationship;
                $do
            }
            ::rowgate_crds::Kind::WebhookSubscription => {
                type $type = ::rowgate_crds::WebhookSubscription;
                $do
            }
        }
    };
}

impl<T: Described> From<&T> for ObjectRef {
    fn from(object: &T) -> ObjectRef {
        let ObjectMeta { namespace, name, uid, .. } = object.metadata().clone();
        ObjectRef {
            kind: T::KIND,
            namespace: namespace.unwrap_or_default(),
            name: name.unwrap_or_default(),
            uid: uid.unwrap_or_default(),
        }
    }
}
