//! Rows of `dl.subscriptions` that Kubernetes declares, and the secrets that sign. `state` is a fact that deliveries and
//! replays make: no statement here changes it.

use std::collections::BTreeMap;

use serde_json::json;

use super::records::record;
use crate::text::Sql;

/// All that a manifest says of a subscription, as its row holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub name: String,
    /// The id of the API key in whose name it delivers.
    pub owner_key: String,
    pub url: String,
    /// `None`: all whose events the owner may read.
    pub tables: Option<Vec<String>>,
    /// As in `dl.outbox`: `i`, `u`, `d`, `t`.
    pub ops: Vec<String>,
    pub payload_query: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub max_events: i32,
    pub max_bytes: i32,
    pub max_attempts: i32,
    pub initial_seconds: i32,
    pub max_seconds: i32,
    pub disable_on_gone: bool,
    pub suspend: bool,
}

impl Settings {
    /// One object of the columns: `json_populate_record` reads it.
    fn columns(&self) -> String {
        let columns = json!({
            "name": self.name, "owner_key": self.owner_key, "url": self.url, "tables": self.tables, "ops": self.ops,
            "payload_query": self.payload_query, "headers": self.headers, "max_events": self.max_events,
            "max_bytes": self.max_bytes, "max_attempts": self.max_attempts, "initial_seconds": self.initial_seconds,
            "max_seconds": self.max_seconds, "disable_on_gone": self.disable_on_gone, "suspend": self.suspend,
        });
        columns.to_string()
    }
}

/// A new subscription: it starts with what is captured from now on.
#[must_use]
pub fn insert(id: &str, uid: &str, settings: &Settings) -> Sql {
    record(
        "insert into dl.subscriptions (id, origin, uid, name, owner_key, url, tables, ops, payload_query, headers, max_events, \
         max_bytes, max_attempts, initial_seconds, max_seconds, disable_on_gone, suspend, cursor_tick, cursor_seq) \
         select $1, 'kubernetes', $2, n.name, n.owner_key, n.url, n.tables, n.ops, n.payload_query, n.headers, n.max_events, \
         n.max_bytes, n.max_attempts, n.initial_seconds, n.max_seconds, n.disable_on_gone, n.suspend, t.number + 1, 0 \
         from pg_catalog.json_populate_record(null::dl.subscriptions, $3::json) n cross join dl.tick() t",
        &[Some(id), Some(uid), Some(&settings.columns())],
    )
}

/// What the manifest says is another thing now. A delivery under way learns of it by the version, and one of other events, or as
/// another owner, loses its lease, so that it writes nothing. Another owner is taken for one that lives until a delivery finds out.
#[must_use]
pub fn update(id: &str, settings: &Settings) -> Sql {
    record(
        "update dl.subscriptions s set name = n.name, owner_key = n.owner_key, url = n.url, tables = n.tables, ops = n.ops, \
         payload_query = n.payload_query, headers = n.headers, max_events = n.max_events, max_bytes = n.max_bytes, \
         max_attempts = n.max_attempts, initial_seconds = n.initial_seconds, max_seconds = n.max_seconds, \
         disable_on_gone = n.disable_on_gone, suspend = n.suspend, version = s.version + 1, \
         owner_inactive = s.owner_inactive and s.owner_key = n.owner_key, \
         rels = case when o.keeps then s.rels end, lease = case when o.keeps then s.lease end, \
         lease_until = case when o.keeps then s.lease_until end \
         from pg_catalog.json_populate_record(null::dl.subscriptions, $2::json) n \
         cross join lateral (select b.tables is not distinct from n.tables and b.ops = n.ops and b.owner_key = n.owner_key \
             from dl.subscriptions b where b.id = $1) o (keeps) \
         where s.id = $1",
        &[Some(id), Some(&settings.columns())],
    )
}

/// With its secrets, dead letters and deliveries.
#[must_use]
pub fn delete(id: &str) -> Sql {
    record("delete from dl.subscriptions where id = $1 and origin = 'kubernetes'", &[Some(id)])
}

/// The secrets that sign now go on for a day beside the next one.
#[must_use]
pub fn retire_secrets(subscription: &str) -> Sql {
    record(
        "update dl.subscription_secrets set expires_at = pg_catalog.clock_timestamp() + interval '24 hours' \
         where subscription = $1 and expires_at is null",
        &[Some(subscription)],
    )
}

/// `sealed` in hexadecimal digits.
#[must_use]
pub fn insert_secret(id: &str, subscription: &str, sealed: &str) -> Sql {
    record(
        "insert into dl.subscription_secrets (id, subscription, sealed) values ($1, $2, pg_catalog.decode($3, 'hex'))",
        &[Some(id), Some(subscription), Some(sealed)],
    )
}

/// The value of the annotation was acted on.
#[must_use]
pub fn set_last_replay(id: &str, value: &str) -> Sql {
    record("update dl.subscriptions set last_replay = $2 where id = $1", &[Some(id), Some(value)])
}
