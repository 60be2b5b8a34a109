//! What changed objects, by the audit log of the API server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

/// A place in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditMark(u64);

/// A request that was to change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Such as `admin` or `system:serviceaccount:test-1:operator`.
    pub user: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Such as `tenants`, or `tenants/status` for a part of it.
    pub resource: String,
    /// Empty for what stands in none.
    pub namespace: String,
    /// Empty for what the server is to name.
    pub name: String,
    /// The status of the answer.
    pub code: u64,
    /// When the request came.
    pub time: Timestamp,
}

pub(super) fn mark(log: &Path) -> AuditMark {
    AuditMark(fs::metadata(log).map_or(0, |file| file.len()))
}

pub(super) fn writes_since(log: &Path, mark: &AuditMark) -> Vec<Write> {
    lines_since(log, mark).lines().filter_map(write).collect()
}

pub(super) fn requests_since(log: &Path, mark: &AuditMark, user: &str) -> BTreeMap<String, usize> {
    let event = |line: &str| -> Value { serde_json::from_str(line).expect("an audit log is JSON") };
    let lines = lines_since(log, mark);
    // a watch has a second line when it ends
    let begins = |event: &Value| event["verb"] != "watch" || event["stage"] == "ResponseStarted";
    let mut requests = BTreeMap::new();
    for event in lines.lines().map(event).filter(|it| it["user"]["username"] == user && begins(it)) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        *requests
            .entry(format!("{} {}", text(&event["verb"]), resource(&event["objectRef"])))
            .or_default() += 1;
    }
    requests
}

fn lines_since(log: &Path, mark: &AuditMark) -> String {
    let mut text = String::new();
    let mut file = File::open(log).expect("the server writes it from the start");
    file.seek(SeekFrom::Start(mark.0)).expect("it only grows");
    file.read_to_string(&mut text).expect("an audit log is UTF-8");
    // What stands behind the last line break is half a line as yet.
    text.truncate(text.rfind('\n').unwrap_or_default());
    text
}

/// Such as `tenants`, or `tenants/status` for a part of it.
fn resource(object: &Value) -> String {
    let resource = object["resource"].as_str().unwrap_or_default();
    match object["subresource"].as_str() {
        Some(part) => format!("{resource}/{part}"),
        None => resource.to_owned(),
    }
}

/// `None` for a line about reading.
fn write(line: &str) -> Option<Write> {
    let event: Value = serde_json::from_str(line).expect("an audit log is a line of JSON per request");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verb = text(&event["verb"]);
    if ["get", "list", "watch"].contains(&verb.as_str()) {
        return None;
    }
    let object = &event["objectRef"];
    Some(Write {
        user: text(&event["user"]["username"]),
        verb,
        resource: resource(object),
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        time: event["requestReceivedTimestamp"].as_str().and_then(|time| time.parse().ok()).expect("a time"),
    })
}
