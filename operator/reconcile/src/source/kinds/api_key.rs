//! The kind `ApiKey`.

use std::sync::Arc;

use kube_core::ObjectMeta;
use rowgate_crds::{ApiKey, ApiKeyStatus, Kind};
use serde::Deserialize as _;
use serde_json::Value;

use super::Described;
use crate::source::{Snapshot, Status};

impl Described for ApiKey {
    const KIND: Kind = Kind::ApiKey;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Option<Status> {
        Some(Status::ApiKey(self.status.clone()?.into()))
    }

    fn read_status(value: &Value) -> Option<Status> {
        Some(Status::ApiKey(Box::new(ApiKeyStatus::deserialize(value).ok()?)))
    }

    fn in_snapshot(snapshot: &mut Snapshot) -> &mut Vec<Arc<ApiKey>> {
        &mut snapshot.api_keys
    }
}
