//! The folder's side of a stage: a standalone process, a file for each object.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Event, Wish};
use crate::servers::data_plane::DataPlane;
use crate::servers::postgres::Server;
use crate::sweep;
use crate::wait::until;
use crate::world::World;

#[derive(Debug)]
pub(super) struct InFolder {
    world: World,
    serving: Vec<String>,
}

fn file((kind, name): &(String, String)) -> String {
    format!("{}-{name}.yaml", kind.to_lowercase())
}

impl InFolder {
    pub(super) fn new(server: &Server, url: String, wish: Wish<'_>) -> InFolder {
        let mut world = World::on(server, &[]).over(server, url);
        world.resync_seconds = wish.resync_seconds;
        InFolder { world, serving: wish.serving.iter().map(ToString::to_string).collect() }
    }

    pub(super) fn put(&self, key: &(String, String), text: &str) {
        self.world.write(&file(key), text);
    }

    /// Puts it, waits for the word on it, and puts back what stood there.
    pub(super) async fn refused(
        &self,
        key: &(String, String),
        text: &str,
        before: Option<&String>,
    ) -> String {
        let name = file(key);
        let start = self.world.log().len();
        self.put(key, text);
        let said = until("a word on the manifest", async || {
            let log = self.world.log();
            log[start..].lines().find(|line| line.contains(&name)).map(str::to_owned)
        })
        .await;
        match before {
            Some(before) => self.put(key, before),
            None => self.remove(key),
        }
        said
    }

    pub(super) fn remove(&self, key: &(String, String)) {
        fs::remove_file(self.world.manifests().join(file(key))).expect("the manifest is there");
    }

    /// The file that stands for what is told of an object, whole; `None`: there is none. `name`: `namespace/name` outside
    /// `default`.
    pub(super) fn object(&self, kind: &str, name: &str) -> Option<Value> {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let file = format!("status/{}_{namespace}_{name}.yaml", kind.to_lowercase());
        serde_yaml::from_str(&fs::read_to_string(self.world.state().join(file)).ok()?).ok()
    }

    pub(super) fn events(&self, kind: &str, name: &str) -> Vec<Event> {
        let object = self.object(kind, name).unwrap_or_default();
        let events = object["events"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = events.iter().map(|event| Event {
            reason: text(&event["reason"]),
            note: text(&event["note"]),
            warning: event["type"] == "Warning",
            count: event["count"].as_u64().expect("events are counted"),
        });
        told.collect()
    }

    pub(super) fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let file = self.secret_object(name)?;
        let entries: BTreeMap<String, String> = serde_json::from_value(file["stringData"].clone()).ok()?;
        if let Some(key) = entries.get("apiKey").filter(|key| key.contains(":dlk_")) {
            sweep::remember(key);
        }
        Some(entries)
    }

    pub(super) fn secret_object(&self, name: &str) -> Option<Value> {
        serde_yaml::from_str(&fs::read_to_string(self.secret_file(name)).ok()?).ok()
    }

    pub(super) fn set_secret(&self, name: &str, entries: &BTreeMap<String, String>) {
        let path = self.secret_file(name);
        let metadata = json!({ "name": name, "namespace": "default" });
        let new = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        let mut secret = self.secret_object(name).unwrap_or(new);
        secret["stringData"] = json!(entries);
        fs::create_dir_all(path.parent().expect("a folder of Secrets")).expect("the folder is ours");
        fs::write(&path, secret.to_string()).expect("the folder is ours");
    }

    pub(super) fn drop_secret(&self, name: &str) {
        fs::remove_file(self.secret_file(name)).expect("it was there");
    }

    fn secret_file(&self, name: &str) -> PathBuf {
        self.world.state().join(format!("secrets/default/{name}.yaml"))
    }

    /// Text and time of every file that reconciling writes.
    pub(super) fn written(&self) -> BTreeMap<PathBuf, (String, SystemTime)> {
        let mut files = BTreeMap::new();
        for folder in ["status", "secrets/default", "."] {
            for entry in fs::read_dir(self.world.state().join(folder)).into_iter().flatten() {
                let path = entry.expect("a readable folder").path();
                if path.is_file() {
                    let modified = fs::metadata(&path).and_then(|it| it.modified()).expect("it is there");
                    files.insert(path.clone(), (fs::read_to_string(&path).expect("it is text"), modified));
                }
            }
        }
        files
    }

    pub(super) fn written_since(&self, before: &BTreeMap<PathBuf, (String, SystemTime)>) -> Vec<String> {
        let now = self.written();
        let paths: BTreeSet<_> = before.keys().chain(now.keys()).collect();
        let changed = paths.into_iter().filter(|path| before.get(*path) != now.get(*path));
        changed.map(|path| path.file_name().expect("a file").to_string_lossy().into_owned()).collect()
    }

    pub(super) fn url(&self) -> String {
        self.world.url()
    }

    pub(super) async fn is_ready(&self) -> bool {
        let answer = reqwest::get(format!("{}/readyz", self.world.probes_url())).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    pub(super) async fn replica(&self) -> DataPlane {
        self.world.replica().await
    }

    /// Nobody waits for its greeting: what is told of the objects says more.
    pub(super) fn start(&mut self) {
        let serving = self.serving.clone();
        self.world.spawn(|command: &mut Command| {
            command.args(serving);
        });
    }

    pub(super) async fn ended(&mut self) -> bool {
        self.world.ended().await.success()
    }

    pub(super) fn pid(&self) -> u32 {
        self.world.pid()
    }

    pub(super) fn log(&self) -> String {
        self.world.log()
    }

    /// The operator's and the data plane's.
    pub(super) async fn roots(&self) -> [String; 2] {
        let mut roots = [String::new(), String::new()];
        for (root, name) in roots.iter_mut().zip(["operator", "dataplane"]) {
            let path = self.world.state().join(format!("{name}.root"));
            *root = until("a root", async || fs::read_to_string(&path).ok()).await;
        }
        roots
    }
}
