//! What standalone tells in its files: keys, Secrets and statuses.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::World;
use crate::sweep;

impl World {
    /// The keys by the names of their ApiKeys, as the generated Secrets have them.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        let text = fs::read_to_string(self.ready_file()).expect("standalone has greeted");
        let ready: Value = serde_json::from_str(&text).expect("it is written whole");
        let keys = ready["keys"].as_array().expect("a list");
        let key = keys.iter().find(|key| key["name"] == name);
        let key = key.unwrap_or_else(|| panic!("no key {name} in {keys:?}"));
        let key = key["apiKey"].as_str().expect("a text");
        sweep::remember(key);
        key.to_owned()
    }

    /// The key in the Secret of an ApiKey, as soon as there is one.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<String> {
        let secrets = yaml(&self.state().join("secrets/default"));
        let secret =
            secrets.into_iter().find(|secret| secret["metadata"]["ownerReferences"][0]["name"] == name)?;
        let key = secret["stringData"]["apiKey"].as_str()?;
        sweep::remember(key);
        Some(key.to_owned())
    }

    /// The status of an object, as it is published; null when there is none yet.
    #[must_use]
    pub fn status(&self, kind: &str, name: &str) -> Value {
        let found = yaml(&self.state().join("status"))
            .into_iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.map_or(Value::Null, |object| object["status"].clone())
    }
}

/// The documents of a folder that are whole at this moment.
fn yaml(folder: &Path) -> Vec<Value> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .filter_map(|path| serde_yaml::from_str(&fs::read_to_string(path).ok()?).ok())
        .collect()
}
