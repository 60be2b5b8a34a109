//! Secrets as files: `secrets/<namespace>/<name>.yaml` of the state folder, in the form that `kubectl apply` takes; and those beside the
//! manifests, which are read and never written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rowgate_core::yaml::{self, YamlError};
use rowgate_crds::API_VERSION;
use serde::{Deserialize, Serialize};

use super::files::replace;
use super::objects::Stored;
use crate::source::{ObjectRef, SourceError};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecretFile {
    api_version: String,
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    string_data: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
}

/// Where a Secret's file is.
pub(super) fn path(state: &Path, namespace: &str, name: &str) -> Result<PathBuf, SourceError> {
    for part in [namespace, name] {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        if part.is_empty() || 253 < part.len() || part.starts_with('.') || !part.chars().all(good) {
            return Err(SourceError::BadName(part.to_owned()));
        }
    }
    Ok(state.join("secrets").join(namespace).join(format!("{name}.yaml")))
}

/// Namespace and name of the Secret at `path`.
pub(super) fn name_of(path: &Path) -> Option<(String, String)> {
    let namespace = path.parent()?.file_name()?;
    Some((namespace.to_str()?.to_owned(), path.file_stem()?.to_str()?.to_owned()))
}

/// The entries of the Secret at `path`; `None`: there is none.
pub(super) fn read(path: &Path) -> Result<Option<BTreeMap<String, String>>, SourceError> {
    Ok(load(path)?.map(|secret| secret.string_data))
}

/// The entries of a Secret that stands beside the manifests.
pub(super) fn declared(stored: &Stored) -> BTreeMap<String, String> {
    let entries = stored.object["stringData"].as_object().into_iter().flatten();
    entries.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

/// Makes or replaces the Secret at `path`, unless another object owns it.
pub(super) fn write(
    path: &Path,
    owner: &ObjectRef,
    namespace: &str,
    name: &str,
    data: &BTreeMap<String, String>,
) -> Result<(), SourceError> {
    // A damaged file has no owner.
    let present = load(path).ok().flatten();
    let owners = present.map(|secret| secret.metadata.owner_references).unwrap_or_default();
    if owners.iter().any(|other| other.uid != owner.uid) {
        return Err(SourceError::SecretTaken { namespace: namespace.to_owned(), name: name.to_owned() });
    }
    let secret = SecretFile {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        metadata: Metadata {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            owner_references: vec![Owner {
                api_version: API_VERSION.to_owned(),
                kind: owner.kind.as_str().to_owned(),
                name: owner.name.clone(),
                uid: owner.uid.clone(),
            }],
        },
        string_data: data.clone(),
    };
    let text = yaml::to_string(&serde_json::to_value(&secret).expect("a Secret is JSON"));
    replace(path, text.as_bytes())
}

/// The Secret files that exist now.
pub(super) fn list(state: &Path) -> BTreeSet<PathBuf> {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(&state.join("secrets"))
        .flat_map(|namespace| entries(&namespace).collect::<Vec<_>>())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect()
}

/// The entries of a Secret of the state folder that has this one among them; `None`: none has.
pub fn entries_with(
    state: &Path,
    key: &str,
    value: &str,
) -> Result<Option<BTreeMap<String, String>>, SourceError> {
    for path in list(state) {
        let found = read(&path)?.filter(|data| data.get(key).is_some_and(|it| it == value));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Those of `paths` whose owner is the object `uid`.
pub(super) fn owned_by(paths: &BTreeSet<PathBuf>, uid: &str) -> Vec<PathBuf> {
    let owned = |path: &&PathBuf| {
        let secret = load(path).ok().flatten();
        secret.is_some_and(|it| it.metadata.owner_references.iter().any(|owner| owner.uid == uid))
    };
    paths.iter().filter(owned).cloned().collect()
}

fn load(path: &Path) -> Result<Option<SecretFile>, SourceError> {
    let damaged = |reason: String| SourceError::Damaged { path: path.to_owned(), reason };
    match fs::read_to_string(path) {
        // The reason never quotes the file: it holds a secret.
        Ok(text) => {
            let read = yaml::document(&text).map_err(|error| match error {
                YamlError::Syntax { line: Some(line), .. } => format!(", line {line}"),
                _ => String::new(),
            });
            let secret = read.and_then(|read| serde_json::from_value(read).map_err(|_| String::new()));
            secret.map(Some).map_err(|line| damaged(format!("not a Secret in YAML{line}")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(damaged(error.to_string())),
    }
}
