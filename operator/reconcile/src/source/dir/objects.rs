//! The last accepted objects, kept in the state folder across restarts.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use rowgate_crds::{API_VERSION, Kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::replace;
use crate::source::{ObjectRef, SourceError};

/// What the folder may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) enum FileKind {
    Resource(Kind),
    ConfigMap,
    /// Of a server that a Tenant names.
    Secret,
}

impl FileKind {
    pub(super) fn all() -> impl Iterator<Item = FileKind> {
        Kind::ALL.into_iter().map(FileKind::Resource).chain([FileKind::ConfigMap, FileKind::Secret])
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            FileKind::Resource(kind) => kind.as_str(),
            FileKind::ConfigMap => "ConfigMap",
            FileKind::Secret => "Secret",
        }
    }

    /// The field of a document that holds what it declares.
    pub(super) fn body(self) -> &'static str {
        match self {
            FileKind::Resource(_) => "spec",
            FileKind::ConfigMap => "data",
            FileKind::Secret => "stringData",
        }
    }

    pub(super) fn api_version(self) -> &'static str {
        match self {
            FileKind::Resource(_) => API_VERSION,
            FileKind::ConfigMap | FileKind::Secret => "v1",
        }
    }
}

impl From<FileKind> for String {
    fn from(kind: FileKind) -> String {
        kind.as_str().to_owned()
    }
}

impl TryFrom<String> for FileKind {
    type Error = String;

    fn try_from(name: String) -> Result<FileKind, String> {
        FileKind::all().find(|kind| kind.as_str() == name).ok_or_else(|| format!("unknown kind {name}"))
    }
}

/// Which object: kind, namespace, name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Key {
    pub kind: FileKind,
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "default" => write!(f, "{} {}", self.kind.as_str(), self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind.as_str(), self.name),
        }
    }
}

/// One accepted object, defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stored {
    #[serde(flatten)]
    pub key: Key,
    pub uid: String,
    /// Grows when the spec (or what a ConfigMap or Secret holds) changes.
    pub generation: i64,
    /// The file that declared it last.
    pub file: String,
    pub object: Value,
}

impl Stored {
    /// Whom a status or a Secret belongs to; `None`: to nothing of ours, for it is a ConfigMap or a Secret.
    pub(super) fn object_ref(&self) -> Option<ObjectRef> {
        let FileKind::Resource(kind) = self.key.kind else { return None };
        let Key { namespace, name, .. } = self.key.clone();
        Some(ObjectRef { kind, namespace, name, uid: self.uid.clone() })
    }
}

pub(super) type Objects = BTreeMap<Key, Stored>;

#[derive(Serialize, Deserialize)]
struct Document {
    objects: Vec<Stored>,
}

/// Reads `objects.json`; none at all is an empty one.
pub(super) fn load(path: &Path) -> Result<Objects, SourceError> {
    let damaged = |reason: String| SourceError::Damaged { path: path.to_owned(), reason };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Objects::new()),
        Err(error) => return Err(damaged(error.to_string())),
    };
    let document: Document = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    Ok(document.objects.into_iter().map(|stored| (stored.key.clone(), stored)).collect())
}

/// Replaces `objects.json` in one step.
pub(super) fn save(path: &Path, objects: &Objects) -> Result<(), SourceError> {
    let document = Document { objects: objects.values().cloned().collect() };
    let text = serde_json::to_string_pretty(&document).expect("objects are JSON");
    replace(path, text.as_bytes())
}
