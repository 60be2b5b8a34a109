//! Kubernetes Events. One that cannot be written is no reason to stop anything.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event as Written, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use parking_lot::Mutex;
use rowgate_crds::API_VERSION;
use rowgate_reconcile::source::{Event, ObjectRef};
use serde_json::json;
use tokio::time::Instant;

use super::{MANAGER, said};
use crate::api::REQUEST_TIMEOUT;
use crate::meter::Meter;
use rowgate_reconcile::entropy;

/// The API server takes no more bytes of a note.
const MAX_NOTE_LEN: usize = 1024;
/// Ends a note that was cut.
const ELLIPSIS: &str = "...";
/// How much of an object's name goes into the name of its Events, which takes 253 characters.
const MAX_NAME_LEN: usize = 200;
/// An Event that repeats within this time counts as a series.
const SERIES_TIMEOUT: Duration = Duration::from_secs(360);

/// An Event that repeats word for word is counted; another note is another Event, because a note behind the first one's
/// would not be read.
pub(crate) struct Events {
    client: Client,
    instance: String,
    recent: Mutex<HashMap<Said, Recent>>,
    meter: Arc<Meter>,
}

/// Uid, reason and note.
type Said = (String, String, String);

/// An Event that was written.
#[derive(Debug, Clone)]
struct Recent {
    name: String,
    count: i32,
    last: Instant,
}

impl Events {
    pub(crate) fn new(client: Client, identity: &str, meter: Arc<Meter>) -> Events {
        Events { client, instance: identity.to_owned(), recent: Mutex::default(), meter }
    }

    pub(crate) async fn publish(&self, object: &ObjectRef, event: Event) {
        match event.warning {
            true => tracing::warn!(%object, reason = event.reason, "{}", event.note),
            false => tracing::info!(%object, reason = event.reason, "{}", event.note),
        }
        let event = Event { note: shortened(event.note), ..event };
        let published = tokio::time::timeout(REQUEST_TIMEOUT, self.write(object, event)).await;
        let cause = match published {
            Ok(Ok(())) => {
                self.meter.events.add_one();
                return;
            }
            Ok(Err(error)) => said(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        self.meter.event_failures.add_one();
        tracing::warn!(%object, cause, "cannot write an Event; only the preceding line records it");
    }

    async fn write(&self, object: &ObjectRef, event: Event) -> kube::Result<()> {
        let api: Api<Written> = Api::namespaced(self.client.clone(), &object.namespace);
        let said = (object.uid.clone(), event.reason.clone(), event.note.clone());
        let before = self.before(&said);
        let again = match before {
            None => None,
            Some(before) => counted(&api, before).await?,
        };
        let written = match again {
            Some(again) => again,
            None => self.create(&api, object, event).await?,
        };
        self.recent.lock().insert(said, written);
        Ok(())
    }

    /// The same Event, if it was published within [`SERIES_TIMEOUT`].
    fn before(&self, said: &Said) -> Option<Recent> {
        let mut recent = self.recent.lock();
        recent.retain(|_, it| it.last.elapsed() < SERIES_TIMEOUT);
        recent.get(said).cloned()
    }

    async fn create(&self, api: &Api<Written>, object: &ObjectRef, event: Event) -> kube::Result<Recent> {
        let now = entropy::now();
        let name: String = object.name.chars().take(MAX_NAME_LEN).collect();
        let name = format!("{name}.{:x}", now.as_nanosecond());
        let regarding = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(object.kind.as_str().to_owned()),
            namespace: Some(object.namespace.clone()),
            name: Some(object.name.clone()),
            uid: Some(object.uid.clone()),
            ..ObjectReference::default()
        };
        let written = Written {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(object.namespace.clone()),
                ..ObjectMeta::default()
            },
            action: Some("Reconcile".to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(event.note),
            reason: Some(event.reason),
            regarding: Some(regarding),
            reporting_controller: Some(MANAGER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Written::default()
        };
        api.create(&PostParams::default(), &written).await?;
        Ok(Recent { name, count: 1, last: Instant::now() })
    }
}

/// Counts a repeated Event; `None`: it was deleted.
async fn counted(api: &Api<Written>, before: Recent) -> kube::Result<Option<Recent>> {
    let count = before.count + 1;
    let series = EventSeries { count, last_observed_time: MicroTime(entropy::now()) };
    let change = Patch::Merge(json!({ "series": series }));
    match api.patch(&before.name, &PatchParams::default(), &change).await {
        Ok(_) => Ok(Some(Recent { count, last: Instant::now(), ..before })),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Cut behind a word, so that it fits.
fn shortened(mut note: String) -> String {
    if MAX_NOTE_LEN < note.len() {
        let most = MAX_NOTE_LEN - ELLIPSIS.len();
        let end = (0..=most).rev().find(|at| note.is_char_boundary(*at)).unwrap_or_default();
        let word = note[..end].rfind(' ').filter(|at| end / 2 < *at);
        note.truncate(word.unwrap_or(end));
        note.push_str(ELLIPSIS);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_fits_and_breaks_between_words_or_at_least_characters() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = shortened("ü".repeat(2000));
        assert!(long.len() <= MAX_NOTE_LEN && long.ends_with("ü..."), "{}", long.len());
        let long = shortened("one two; ".repeat(200));
        assert!(long.len() <= MAX_NOTE_LEN && long.ends_with("; one..."), "{long}");
        assert!(MAX_NOTE_LEN - 20 < long.len(), "no more is cut than has to be");
    }
}
