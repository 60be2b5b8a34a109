//! The kind `WebhookSubscription`.

use std::sync::Arc;

use kube_core::ObjectMeta;
use rowgate_crds::{Kind, WebhookSubscription, WebhookSubscriptionStatus};
use serde::Deserialize as _;
use serde_json::Value;

use super::Described;
use crate::source::{Snapshot, Status};

impl Described for WebhookSubscription {
    const KIND: Kind = Kind::WebhookSubscription;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Option<Status> {
        Some(Status::WebhookSubscription(self.status.clone()?.into()))
    }

    fn read_status(value: &Value) -> Option<Status> {
        Some(Status::WebhookSubscription(Box::new(WebhookSubscriptionStatus::deserialize(value).ok()?)))
    }

    fn in_snapshot(snapshot: &mut Snapshot) -> &mut Vec<Arc<WebhookSubscription>> {
        &mut snapshot.subscriptions
    }
}
