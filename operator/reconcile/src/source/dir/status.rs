//! Status and events as files: `status/<kind>_<namespace>_<name>.yaml`; no name of Kubernetes holds `_`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rowgate_core::yaml;
use rowgate_crds::{API_VERSION, Kind, ORIGIN};
use serde_json::{Value, json};

use super::files::{remove, replace_unsynced};
use super::objects::Key;
use crate::mirrors::{API, Mirrors, SUBSCRIPTION};
use crate::source::{Event, ObjectRef, SourceError, Status};

/// Events kept per object.
const N_EVENTS: usize = 20;

/// What the status folder holds, by file.
#[derive(Debug, Default)]
pub(super) struct Statuses {
    dir: PathBuf,
    documents: BTreeMap<PathBuf, Value>,
}

impl Statuses {
    /// Reads what an earlier run left; files that do not parse are rewritten.
    pub(super) fn open(state: &Path) -> Statuses {
        let dir = state.join("status");
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).ok()?;
            Some((path, yaml::document(&text).ok()?))
        };
        let paths = fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let documents =
            paths.filter(|path| path.extension().is_some_and(|it| it == "yaml")).filter_map(read).collect();
        Statuses { dir, documents }
    }

    /// The status of an object, if it was reported for this very one.
    pub(super) fn get(&self, key: &Key, uid: &str) -> Option<&Value> {
        let document = self.documents.get(&self.path(key.kind.as_str(), &key.namespace, &key.name))?;
        (document["metadata"]["uid"] == uid)
            .then_some(&document["status"])
            .filter(|status| status.is_object())
    }

    /// Writes a status, unless it says what stands there already but for the times at which conditions turned; with it the
    /// events of what happened. Returns whether it was written.
    pub(super) fn report(
        &mut self,
        object: &ObjectRef,
        status: &Status,
        now: Timestamp,
    ) -> Result<bool, SourceError> {
        let mut document = self.document(object);
        let there = Status::read(object.kind, &document["status"]);
        let events = status.events(there.as_ref());
        let new = there.map_or_else(|| Some(status.clone()), |there| status.over(&there));
        let path = self.path(object.kind.as_str(), &object.namespace, &object.name);
        let Some(new) = new.or_else(|| (!path.exists()).then(|| status.clone())) else { return Ok(false) };
        document["status"] = new.to_value();
        events.into_iter().for_each(|event| add(&mut document, &event, now));
        self.write(object, document)?;
        Ok(true)
    }

    /// Adds an event; one that says what the last one said is counted.
    pub(super) fn event(
        &mut self,
        object: &ObjectRef,
        event: &Event,
        now: Timestamp,
    ) -> Result<(), SourceError> {
        let mut document = self.document(object);
        add(&mut document, event, now);
        self.write(object, document)
    }

    /// Makes the files that show what the API made these, and no others.
    pub(super) fn show(&mut self, wanted: &Mirrors) -> Result<(), SourceError> {
        let kind = Kind::WebhookSubscription;
        let mut others: BTreeSet<PathBuf> = self
            .documents
            .iter()
            .filter(|(_, document)| {
                let labels = &document["metadata"]["labels"];
                labels[ORIGIN] == API && !wanted.is_undecided(labels[SUBSCRIPTION].as_str())
            })
            .map(|(path, _)| path.clone())
            .collect();
        for mirror in &wanted.mirrors {
            let path = self.path(kind.as_str(), &mirror.namespace, &mirror.name);
            others.remove(&path);
            let there = self.documents.get(&path);
            let status = there.and_then(|it| Status::read(kind, &it["status"]));
            let status =
                status.map_or_else(|| mirror.status.clone(), |it| mirror.status.over(&it).unwrap_or(it));
            let document = json!({
                "apiVersion": API_VERSION, "kind": kind.as_str(),
                "metadata": { "name": mirror.name, "namespace": mirror.namespace, "labels": mirror.labels() },
                "spec": mirror.spec, "status": status.to_value(),
            });
            let text = yaml::to_string(&document);
            // a file that was changed or removed by hand is written again
            if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
                replace_unsynced(&path, text.as_bytes())?;
            }
            self.documents.insert(path, document);
        }
        for path in others {
            self.documents.remove(&path);
            remove(&path)?;
        }
        Ok(())
    }

    /// Forgets a deleted object.
    pub(super) fn forget(&mut self, key: &Key) -> Result<(), SourceError> {
        let path = self.path(key.kind.as_str(), &key.namespace, &key.name);
        self.documents.remove(&path);
        remove(&path)
    }

    fn path(&self, kind: &str, namespace: &str, name: &str) -> PathBuf {
        self.dir.join(format!("{}_{namespace}_{name}.yaml", kind.to_lowercase()))
    }

    fn document(&self, object: &ObjectRef) -> Value {
        let path = self.path(object.kind.as_str(), &object.namespace, &object.name);
        let known = self.documents.get(&path).filter(|known| known["metadata"]["uid"] == object.uid.as_str());
        known.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": API_VERSION, "kind": object.kind.as_str(),
                "metadata": { "name": object.name, "namespace": object.namespace, "uid": object.uid },
                "status": {}, "events": [],
            })
        })
    }

    fn write(&mut self, object: &ObjectRef, document: Value) -> Result<(), SourceError> {
        let path = self.path(object.kind.as_str(), &object.namespace, &object.name);
        let text = yaml::to_string(&document);
        replace_unsynced(&path, text.as_bytes())?;
        self.documents.insert(path, document);
        Ok(())
    }
}

fn add(document: &mut Value, event: &Event, now: Timestamp) {
    let mut events = document["events"].as_array().cloned().unwrap_or_default();
    let kind = if event.warning { "Warning" } else { "Normal" };
    let same = |last: &Value| last["reason"] == event.reason && last["note"] == event.note;
    match events.last_mut().filter(|last| same(last)) {
        Some(last) => {
            last["count"] = json!(last["count"].as_u64().unwrap_or(1) + 1);
            last["time"] = json!(now);
        }
        None => events.push(
            json!({ "time": now, "type": kind, "reason": event.reason, "note": event.note, "count": 1 }),
        ),
    }
    events.drain(..events.len().saturating_sub(N_EVENTS));
    document["events"] = Value::Array(events);
}
