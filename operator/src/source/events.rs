//! Kubernetes Events. One that cannot be written is no reason to stop anything.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{self, EventType, Recorder, Reporter};
use rowgate_crds::API_VERSION;
use rowgate_reconcile::source::{Event, ObjectRef};

use super::{MANAGER, said};
use crate::api::PATIENCE;
use crate::meter::Meter;

/// The API server takes no more of a note.
const LONGEST_NOTE: usize = 1024;

/// Repeats of one reason for one object within six minutes become a series.
pub(crate) struct Events {
    recorder: Recorder,
    meter: Arc<Meter>,
}

impl Events {
    pub(crate) fn new(client: Client, identity: &str, meter: Arc<Meter>) -> Events {
        let reporter = Reporter { controller: MANAGER.to_owned(), instance: Some(identity.to_owned()) };
        Events { recorder: Recorder::new(client, reporter), meter }
    }

    pub(crate) async fn publish(&self, object: &ObjectRef, event: Event) {
        match event.warning {
            true => tracing::warn!(%object, reason = event.reason, "{}", event.note),
            false => tracing::info!(%object, reason = event.reason, "{}", event.note),
        }
        let reference = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(object.kind.as_str().to_owned()),
            namespace: Some(object.namespace.clone()),
            name: Some(object.name.clone()),
            uid: Some(object.uid.clone()),
            ..ObjectReference::default()
        };
        let event = events::Event {
            type_: if event.warning { EventType::Warning } else { EventType::Normal },
            reason: event.reason,
            note: Some(shortened(event.note)),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let published = tokio::time::timeout(PATIENCE, self.recorder.publish(&event, &reference)).await;
        let cause = match published {
            Ok(Ok(())) => {
                self.meter.events.add_one();
                return;
            }
            Ok(Err(error)) => said(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        self.meter.event_failures.add_one();
        tracing::warn!(%object, cause, "an Event could not be written; the line before is all there is of it");
    }
}

fn shortened(mut note: String) -> String {
    if LONGEST_NOTE < note.len() {
        let end = (0..=LONGEST_NOTE - 3).rev().find(|at| note.is_char_boundary(*at)).unwrap_or_default();
        note.truncate(end);
        note.push_str("...");
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_fits_and_breaks_between_characters() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = shortened("ü".repeat(2000));
        assert!(long.len() <= LONGEST_NOTE && long.ends_with("ü..."), "{}", long.len());
    }
}
