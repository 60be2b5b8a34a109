//! The structural part of a schema: defaults, types, bounds, unknown fields.

use std::collections::HashSet;

use k8s_openapi::jiff::Timestamp;
use regex::Regex;
use rowgate_core::nearest::nearest;
use serde_json::{Map, Value};

use crate::admit::FieldError;
use crate::definition::{HOLDS_NUL, NO_NUL};

/// Fills in what is absent and has a default, nested defaults included. A null counts as absent, as the API server has
/// it for fields that are not nullable; none of ours is.
pub(crate) fn apply_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let empty = Map::new();
            let properties = schema["properties"].as_object().unwrap_or(&empty);
            for (name, property) in properties {
                if map.get(name).is_some_and(Value::is_null) {
                    map.shift_remove(name);
                }
                if let (false, Some(default)) = (map.contains_key(name), property.get("default")) {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(child) = map.get_mut(name) {
                    apply_defaults(property, child);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| apply_defaults(&schema["items"], item)),
        _ => {}
    }
}

/// Appends everything at and below `path` that the schema refuses.
pub(crate) fn check(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut refuse = |message: String| errors.push(FieldError { path: path.to_owned(), message });
    let wanted = schema["type"].as_str().unwrap_or("object");
    if !fits(wanted, value) {
        return refuse(format!("must be {}, not {}", with_article(wanted), shown(value)));
    }
    match value {
        Value::String(text) => {
            has_nul(text).into_iter().chain(text_errors(schema, text)).for_each(refuse);
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
                refuse(format!("must be at least {least}"));
            }
            if let Some(most) = schema["maximum"].as_f64().filter(|most| *most < number) {
                refuse(format!("must be at most {most}"));
            }
        }
        Value::Array(items) => {
            bound_errors(schema, "Items", items.len(), "entries").into_iter().for_each(&mut refuse);
            repeated(schema, items).into_iter().for_each(&mut refuse);
            for (i, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{path}[{i}]"), errors);
            }
        }
        Value::Object(map) => {
            map.keys().find_map(|name| has_nul(name)).into_iter().for_each(&mut refuse);
            bound_errors(schema, "Properties", map.len(), "entries").into_iter().for_each(&mut refuse);
            object_errors(schema, map, path, errors);
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// PostgreSQL has no text with a NUL: a claim or an expression with one would stop the whole tenant.
fn has_nul(text: &str) -> Option<String> {
    text.contains('\0').then(|| HOLDS_NUL.to_owned())
}

fn object_errors(schema: &Value, map: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let is_root = path.is_empty();
    let at = |name: &str| if is_root { name.to_owned() } else { format!("{path}.{name}") };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !map.contains_key(name) {
            errors.push(FieldError { path: at(name), message: "is required".to_owned() });
        }
    }
    for (name, child) in map {
        match (properties.get(name), schema["additionalProperties"].is_object()) {
            _ if is_root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") => {}
            (Some(property), _) => check(property, child, &at(name), errors),
            (None, true) => check(&schema["additionalProperties"], child, &at(name), errors),
            (None, false) => {
                let own: &[&str] = if is_root { &["apiVersion", "kind", "metadata"] } else { &[] };
                let known = properties.keys().map(String::as_str).chain(own.iter().copied());
                errors.push(FieldError { path: at(name), message: unknown(name, known) });
            }
        }
    }
}

/// The message for a field that does not exist.
pub(crate) fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("unknown field; did you mean {near}?"),
        None => {
            let mut known: Vec<&str> = known.into_iter().collect();
            known.sort_unstable();
            format!("unknown field; known fields: {}", known.join(", "))
        }
    }
}

fn fits(wanted: &str, value: &Value) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    }
}

fn with_article(kind: &str) -> &'static str {
    match kind {
        "object" => "a mapping of names to values",
        "array" => "a list",
        "string" => "text (put it in quotes)",
        "boolean" => "true or false",
        "integer" => "a whole number",
        _ => "a number",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a mapping".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Null => "empty".to_owned(),
        Value::String(_) => "text".to_owned(),
        other => other.to_string(),
    }
}

fn text_errors(schema: &Value, text: &str) -> Vec<String> {
    let mut found = bound_errors(schema, "Length", text.chars().count(), "characters");
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        if !values.contains(&text) {
            let hint = nearest(text, values.iter().copied()).map(|near| format!(" (did you mean {near}?)"));
            found.push(format!("{text:?} is not one of {}{}", values.join(", "), hint.unwrap_or_default()));
        }
    }
    // that one is `has_nul`'s to tell
    if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| *pattern != NO_NUL) {
        let matches = Regex::new(pattern).is_ok_and(|regex| regex.is_match(text));
        if !matches {
            found.push(format!("{text:?} does not match {pattern}"));
        }
    }
    if schema["format"] == "date-time" && text.parse::<Timestamp>().is_err() {
        found.push(format!("{text:?} is not a time; write it as 2030-01-31T12:00:00Z"));
    }
    found
}

fn bound_errors(schema: &Value, suffix: &str, n: usize, things: &str) -> Vec<String> {
    let bound =
        |prefix: &str| schema[format!("{prefix}{suffix}")].as_u64().and_then(|n| usize::try_from(n).ok());
    let mut found = Vec::new();
    if let Some(least) = bound("min").filter(|least| n < *least) {
        found.push(format!("must have at least {least} {things}, not {n}"));
    }
    if let Some(most) = bound("max").filter(|most| *most < n) {
        found.push(format!("must have at most {most} {things}, not {n}"));
    }
    found
}

/// Entries that a `set` or a `map` list holds twice.
fn repeated(schema: &Value, items: &[Value]) -> Vec<String> {
    let keys: Option<Vec<&str>> = match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => None,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            Some(keys.into_iter().flatten().filter_map(Value::as_str).collect())
        }
        _ => return Vec::new(),
    };
    let identity = |item: &Value| match &keys {
        None => item.to_string(),
        Some(keys) => {
            keys.iter().map(|key| format!("{key} {} ", item[*key])).collect::<String>().trim_end().to_owned()
        }
    };
    let mut seen = HashSet::new();
    items
        .iter()
        .map(identity)
        .filter(|id| !seen.insert(id.clone()))
        .map(|id| format!("holds {id} twice"))
        .collect()
}
