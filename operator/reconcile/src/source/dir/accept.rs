//! Accepting one document: who it is, whether it is good, and what it becomes.

use rowgate_core::nearest::nearest;
use rowgate_crds::{FieldError, admit};
use serde_json::{Map, Value, json};

use super::objects::{FileKind, Key, Stored};
use crate::with_kind;

/// Which object a document declares; or what it lacks to be one.
pub(super) fn identify(document: &Value) -> Result<Key, String> {
    if !document.is_object() {
        return Err(
            "holds a document that is not a mapping; a resource starts with apiVersion and kind".to_owned()
        );
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name = text(&document["metadata"]["name"]);
    let called = name.as_deref().unwrap_or("a resource without metadata.name");
    let Some(kind) = text(&document["kind"]) else { return Err(format!("{called}: kind is missing")) };
    let Some(known) = FileKind::all().find(|known| known.as_str() == kind) else {
        let names: Vec<&str> = FileKind::all().map(FileKind::as_str).collect();
        let hint = nearest(&kind, names.iter().copied())
            .map_or_else(|| names.join(", "), |near| format!("did you mean {near}?"));
        return Err(format!("{called}: kind {kind} is not one Rowgate knows; {hint}"));
    };
    let wanted = known.api_version();
    if document["apiVersion"] != wanted {
        return Err(format!("{kind} {called}: apiVersion must be {wanted}"));
    }
    let Some(name) = name else { return Err(format!("a {kind} has no metadata.name")) };
    let namespace = match &document["metadata"]["namespace"] {
        Value::Null => "default".to_owned(),
        Value::String(namespace) => namespace.clone(),
        _ => return Err(format!("{kind} {name}: metadata.namespace must be text (put it in quotes)")),
    };
    Ok(Key { kind: known, namespace, name })
}

/// The document with defaults, under its old identity or a new one; or everything that is wrong with it.
pub(super) fn accept(
    key: &Key,
    document: &Value,
    old: Option<&Stored>,
    file: &str,
    new_uid: &mut dyn FnMut() -> String,
) -> Result<Stored, Vec<FieldError>> {
    let mut document = document.clone();
    document["metadata"]["namespace"] = json!(key.namespace);
    // Status is ours to write; the API server drops one that comes with a manifest, too.
    document.as_object_mut().map(|map| map.shift_remove("status"));
    let body = key.kind.body();
    let admitted = match key.kind {
        FileKind::Resource(kind) => admit(kind, document, old.map(|old| &old.object))?,
        FileKind::ConfigMap => texts(document, &CONFIG_MAP)?,
        FileKind::Secret => texts(document, &SECRET)?,
    };
    let metadata = |field: &str| admitted["metadata"].get(field).cloned();
    let object = object(key, &admitted[body], body, metadata("labels"), metadata("annotations"));
    let (uid, generation) = match old {
        Some(old) => (old.uid.clone(), old.generation + i64::from(old.object[body] != object[body])),
        None => (new_uid(), 1),
    };
    let stored = Stored { key: key.clone(), uid, generation, file: file.to_owned(), object };
    let error = |message: String| vec![FieldError { path: String::new(), message }];
    if let FileKind::Resource(kind) = key.kind {
        with_kind!(kind, T => drop(stored.typed::<T>().map_err(error)?));
    }
    Ok(stored)
}

impl Stored {
    /// The object as its type, with uid and generation.
    pub(super) fn typed<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        let mut object = self.object.clone();
        object["metadata"]["uid"] = json!(self.uid);
        object["metadata"]["generation"] = json!(self.generation);
        serde_json::from_value(object).map_err(|error| error.to_string())
    }
}

fn object(
    key: &Key,
    content: &Value,
    body: &str,
    labels: Option<Value>,
    annotations: Option<Value>,
) -> Value {
    let api_version = key.kind.api_version();
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(key.name));
    metadata.insert("namespace".to_owned(), json!(key.namespace));
    metadata.extend(labels.map(|labels| ("labels".to_owned(), labels)));
    metadata.extend(annotations.map(|annotations| ("annotations".to_owned(), annotations)));
    json!({ "apiVersion": api_version, "kind": key.kind.as_str(), "metadata": metadata, body: content })
}

/// What holds named texts: where, and what else it may have.
struct Texts {
    body: &'static str,
    others: &'static [&'static str],
    unused: &'static str,
}

const CONFIG_MAP: Texts =
    Texts { body: "data", others: &["immutable"], unused: "is not used by Rowgate; a ConfigMap holds data" };
const SECRET: Texts = Texts {
    body: "stringData",
    others: &["immutable", "type"],
    unused: "is not used by Rowgate; a Secret beside manifests holds stringData, texts as they are",
};

fn texts(document: Value, kind: &Texts) -> Result<Value, Vec<FieldError>> {
    let Texts { body, others, unused } = *kind;
    let mut errors = Vec::new();
    let mut refuse =
        |path: String, message: &str| errors.push(FieldError { path, message: message.to_owned() });
    for name in document.as_object().into_iter().flat_map(Map::keys) {
        if !["apiVersion", "kind", "metadata", body].contains(&name.as_str())
            && !others.contains(&name.as_str())
        {
            refuse(name.clone(), unused);
        }
    }
    match &document[body] {
        Value::Null => {}
        Value::Object(data) => {
            for (name, _) in data.iter().filter(|(_, value)| !value.is_string()) {
                refuse(format!("{body}.{name}"), "must be text (put it in quotes, or use a block with |)");
            }
            for (name, _) in
                data.iter().filter(|(_, value)| value.as_str().is_some_and(|it| it.contains('\0')))
            {
                refuse(
                    format!("{body}.{name}"),
                    "holds a NUL character, which PostgreSQL cannot store; remove it",
                );
            }
        }
        _ => refuse(body.to_owned(), "must be a mapping of names to texts"),
    }
    match errors.is_empty() {
        true => Ok(document),
        false => Err(errors),
    }
}
