//! The kind `Relationship`.

use std::sync::Arc;

use kube_core::ObjectMeta;
use rowgate_crds::{Kind, Relationship, RelationshipStatus};
use serde::Deserialize as _;
use serde_json::Value;

use super::Described;
use crate::source::{Snapshot, Status};

impl Described for Relationship {
    const KIND: Kind = Kind::Relationship;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Option<Status> {
        Some(Status::Relationship(self.status.clone()?.into()))
    }

    fn read_status(value: &Value) -> Option<Status> {
        Some(Status::Relationship(Box::new(RelationshipStatus::deserialize(value).ok()?)))
    }

    fn in_snapshot(snapshot: &mut Snapshot) -> &mut Vec<Arc<Relationship>> {
        &mut snapshot.relationships
    }
}
