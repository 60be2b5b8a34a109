//! What the API server demands of `metadata`, which no schema of ours describes.

use serde_json::Value;

use super::structural::unknown;
use crate::admit::FieldError;

const KNOWN: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Appends everything that is wrong with an object's `metadata`.
pub(crate) fn check(object: &Value, errors: &mut Vec<FieldError>) {
    let mut refuse = |path: &str, message: String| errors.push(FieldError { path: path.to_owned(), message });
    let Some(metadata) = object["metadata"].as_object() else {
        return refuse("metadata.name", "is required".to_owned());
    };
    match metadata.get("name").map(Value::as_str) {
        Some(Some(name)) => {
            name_error(name, 253, true).into_iter().for_each(|it| refuse("metadata.name", it))
        }
        Some(None) => refuse("metadata.name", "must be text (put it in quotes)".to_owned()),
        None => refuse("metadata.name", "is required".to_owned()),
    }
    match metadata.get("namespace").map(Value::as_str) {
        Some(Some(name)) => {
            name_error(name, 63, false).into_iter().for_each(|it| refuse("metadata.namespace", it))
        }
        Some(None) => refuse("metadata.namespace", "must be text (put it in quotes)".to_owned()),
        None => {}
    }
    for field in ["annotations", "labels"] {
        for (name, value) in metadata.get(field).and_then(Value::as_object).into_iter().flatten() {
            if !value.is_string() {
                refuse(&format!("metadata.{field}[{name}]"), "must be text (put it in quotes)".to_owned());
            }
        }
    }
    for name in metadata.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
        refuse(&format!("metadata.{name}"), unknown(name, KNOWN));
    }
}

fn name_error(name: &str, most: usize, dots: bool) -> Option<String> {
    let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends = |b: Option<&u8>| b.is_some_and(|b| good(*b));
    let bytes = name.as_bytes();
    if most < bytes.len() {
        return Some(format!("is longer than {most} characters"));
    }
    let well_formed = ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| good(*b) || *b == b'-' || (dots && *b == b'.'));
    let and_dots = if dots { ", hyphens and dots" } else { " and hyphens" };
    (!well_formed).then(|| {
        format!(
            "{name:?} holds characters other than lower-case letters, digits{and_dots}, or does not begin and end with a letter or digit"
        )
    })
}
