//! The kind `Tenant`.

use std::sync::Arc;

use kube_core::ObjectMeta;
use rowgate_crds::{Kind, Tenant, TenantStatus};
use serde::Deserialize as _;
use serde_json::Value;

use super::Described;
use crate::source::{Snapshot, Status};

impl Described for Tenant {
    const KIND: Kind = Kind::Tenant;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Option<Status> {
        Some(Status::Tenant(self.status.clone()?.into()))
    }

    fn read_status(value: &Value) -> Option<Status> {
        Some(Status::Tenant(Box::new(TenantStatus::deserialize(value).ok()?)))
    }

    fn in_snapshot(snapshot: &mut Snapshot) -> &mut Vec<Arc<Tenant>> {
        &mut snapshot.tenants
    }
}
