//! Subscriptions that were made through the API, as objects that show them. Pure: the API stays their owner, and nothing is
//! read from an object.

use std::collections::{BTreeMap, BTreeSet};

use kube_core::ObjectMeta;
use rowgate_core::name::Ulid;
use rowgate_crds::{
    Batch, EventOp, Filter, ORIGIN, OwnerRef, Retry, Span, TenantRef, WebhookSubscriptionSpec,
};
use rowgate_pg::control::subscriptions::Said;
use serde::Deserialize;

use crate::source::Status;

/// The value of the label [`ORIGIN`] of an object that shows one.
pub const API: &str = "api";
/// Label of such an object: the subscription's id. With it alone it is one, too.
pub const SUBSCRIPTION: &str = "rowgate.dev/subscription";
/// Characters of a name that an object's name begins with.
const MAX_NAME: usize = 48;
/// Characters of the id that it ends with, the random ones.
const ID_LEN: usize = 12;

/// What is to be shown.
#[derive(Debug, Clone, Default)]
pub struct Mirrors {
    pub mirrors: Vec<Mirror>,
    /// Subscriptions of a Tenant of which nothing is known now: an object that shows one stays as it is.
    pub undecided: BTreeSet<Ulid>,
}

/// An object that shows a subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct Mirror {
    pub namespace: String,
    pub name: String,
    pub id: Ulid,
    pub spec: WebhookSubscriptionSpec,
    /// For sources where what shows it is no object of a snapshot.
    pub status: Status,
}

impl Mirror {
    /// The object's labels.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        let labels = [(ORIGIN, API), (SUBSCRIPTION, self.id.as_str())];
        labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }
}

impl Mirrors {
    /// Whether an object with the label [`SUBSCRIPTION`] of this value stays as it is.
    #[must_use]
    pub fn is_undecided(&self, id: Option<&str>) -> bool {
        id.is_some_and(|id| self.undecided.iter().any(|it| it.as_str() == id))
    }
}

/// Whether the object shows what the API made, and declares nothing.
#[must_use]
pub fn is_mirror(metadata: &ObjectMeta) -> bool {
    metadata.labels.as_ref().is_some_and(|labels| {
        labels.get(ORIGIN).is_some_and(|it| it == API) || labels.contains_key(SUBSCRIPTION)
    })
}

/// The name of the object: what the subscription is called, as far as a name may hold it, and a part of its id, which makes
/// it the only one.
#[must_use]
pub fn name(called: &str, id: &Ulid) -> String {
    let id = &id.as_str()[id.as_str().len() - ID_LEN..];
    let mut name = String::new();
    for c in called.to_lowercase().chars() {
        match c.is_ascii_lowercase() || c.is_ascii_digit() {
            true => name.push(c),
            false if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            false => {}
        }
        if MAX_NAME <= name.len() {
            break;
        }
    }
    match name.trim_end_matches('-') {
        "" => format!("webhook-{id}"),
        name => format!("{name}-{id}"),
    }
}

/// `control.subscriptions.spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Row {
    name: String,
    url: String,
    pub(crate) owner_key: String,
    tables: Option<Vec<String>>,
    ops: Vec<EventOp>,
    payload_query: Option<String>,
    suspend: bool,
    batch: Limits,
    retry: Schedule,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limits {
    max_events: Option<u32>,
    max_bytes: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Schedule {
    max_attempts: Option<u32>,
    initial_seconds: Option<u32>,
    max_seconds: Option<u32>,
    disable_on_gone: Option<bool>,
}

/// What a data plane wrote of a subscription; `None`: nothing yet, or not in a form of this version.
pub(crate) fn row(said: &Said) -> Option<Row> {
    serde_json::from_str(&said.spec).ok().filter(|row: &Row| !row.url.is_empty())
}

/// The object for a subscription of the Tenant `tenant`. `owner`: the ApiKey whose key owns it.
pub(crate) fn mirror(
    said: &Said,
    row: Row,
    (namespace, tenant): (&str, &str),
    owner: String,
    status: Status,
) -> Mirror {
    let span = |seconds: Option<u32>| seconds.and_then(|it| format!("{it}s").parse::<Span>().ok());
    Mirror {
        namespace: namespace.to_owned(),
        name: name(&row.name, &said.id),
        id: said.id.clone(),
        spec: WebhookSubscriptionSpec {
            tenant_ref: TenantRef { name: tenant.to_owned() },
            owner_ref: OwnerRef { name: owner },
            url: row.url,
            filter: Some(Filter { tables: row.tables.unwrap_or_default(), ops: row.ops }),
            payload_query: row.payload_query,
            suspend: row.suspend.then_some(true),
            batch: Some(Batch { max_events: row.batch.max_events, max_bytes: row.batch.max_bytes }),
            retry: Some(Retry {
                max_attempts: row.retry.max_attempts,
                initial_delay: span(row.retry.initial_seconds),
                max_delay: span(row.retry.max_seconds),
                disable_on_gone: row.retry.disable_on_gone,
            }),
            // they may hold credentials, which not everyone who reads the object may know
            headers: BTreeMap::new(),
            secret_name: None,
        },
        status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_kubernetes_takes_and_no_other_subscriptions() {
        let id = Ulid::from_parts(1, [7; 10]);
        let end = &id.as_str()[14..];
        for (called, begin) in [
            ("orders", "orders"),
            ("Orders of 2026!", "orders-of-2026"),
            ("--", "webhook"),
            ("", "webhook"),
            ("é", "webhook"),
            (&"a".repeat(100), &*"a".repeat(48)),
        ] {
            assert_eq!(name(called, &id), format!("{begin}-{end}"), "{called}");
        }
        let other = Ulid::from_parts(1, [8; 10]);
        assert_ne!(name("orders", &id), name("orders", &other));
    }
}
