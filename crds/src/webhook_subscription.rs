//! WebhookSubscription: events of a Tenant, sent to an address.

use std::collections::BTreeMap;

use kube_derive::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::api_key::TenantRef;
use crate::span::{Span, delay_schema};

mod status;

pub use status::WebhookSubscriptionStatus;

/// The events of a Tenant, or some of them, sent to a URL in the name of an ApiKey.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "rowgate.dev",
    version = "v1alpha1",
    kind = "WebhookSubscription",
    plural = "webhooksubscriptions",
    shortname = "rgw",
    category = "rowgate",
    namespaced,
    status = "WebhookSubscriptionStatus",
    derive = "PartialEq",
    crates(kube_core = "::kube_core"),
    doc = "Row-change events of one Tenant, sent to a URL as signed HTTP requests.",
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(
        name = "Delivering",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Delivering')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Delivering')].reason"
    ),
    printcolumn(name = "Lag", type_ = "integer", json_path = ".status.lagEvents"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct WebhookSubscriptionSpec {
    /// The Tenant whose events are sent, in this namespace. Cannot be changed.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("tenantRef cannot be changed; create a new WebhookSubscription"))]
    pub tenant_ref: TenantRef,
    /// The ApiKey of the same Tenant that owns the subscription: events are read with its role and no other. Another one
    /// may be named at any time.
    pub owner_ref: OwnerRef,
    /// Where to: an `https` URL, or a plain `http` one where the Tenant has `webhooks.allowHttp`.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("self.startsWith('https://') || self.startsWith('http://')")
        .message("url starts with https:// (or http:// where the Tenant has webhooks.allowHttp: true)"))]
    pub url: String,
    /// Which events. Default: inserts, updates and deletes of all tables whose events the owner may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// A SELECT with FOR JSON whose answer is sent as `data` in place of the stored row. Blank: the stored row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub payload_query: Option<String>,
    /// `true`: nothing is sent, and everything is kept. `status.state` is not affected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How much one request holds at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// How often and how soon a failed delivery is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Further headers of each request. Not for secrets: everyone who may read this object sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "headers_schema")]
    pub headers: BTreeMap<String, String>,
    /// The Secret, in this namespace, that holds the signing secret in its key `secret`. Default: the object's name with
    /// `-webhook` behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("secretName consists of lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"))]
    pub secret_name: Option<String>,
}

/// An ApiKey in this namespace.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRef {
    /// The ApiKey's object name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Which events are sent.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Entities of kind Table with `events: true`, or `schema.table`. Default: all whose events the owner may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 127)), extend("x-kubernetes-list-type" = "set"))]
    pub tables: Vec<String>,
    /// Default: `insert`, `update` and `delete`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub ops: Vec<EventOp>,
}

/// What happened to rows.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventOp {
    Insert,
    Update,
    Delete,
    Truncate,
}

/// How much one request holds at most.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_events: Option<u32>,
    /// Of the body; an event larger than this is sent alone. Default: 262144.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 262_144))]
    pub max_bytes: Option<u32>,
}

/// How often and how soon a failed delivery is tried again. Spans are a number with `s`, `m` or `h`, at most `24h`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.initialDelay) || !has(self.maxDelay) || int(self.initialDelay.substring(0, size(self.initialDelay) - 1)) * (self.initialDelay.endsWith('h') ? 3600 : self.initialDelay.endsWith('m') ? 60 : 1) <= int(self.maxDelay.substring(0, size(self.maxDelay) - 1)) * (self.maxDelay.endsWith('h') ? 3600 : self.maxDelay.endsWith('m') ? 60 : 1)")
        .message("initialDelay is longer than maxDelay; make initialDelay shorter or maxDelay longer"),
)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Attempts of one delivery until it becomes a dead letter. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub max_attempts: Option<u32>,
    /// The pause after the first failure; each further one is twice as long. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "delay_schema")]
    pub initial_delay: Option<Span>,
    /// The longest pause. Default: `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "delay_schema")]
    pub max_delay: Option<Span>,
    /// Whether the answer 410 disables the subscription at once. Default: it is a failure like others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_on_gone: Option<bool>,
}

/// Names and values of headers, none of which the delivery itself sets.
fn headers_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {
            "type": "string",
            "maxLength": 1024,
            "pattern": r"^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$",
        },
        "x-kubernetes-validations": [
            {
                "rule": r"self.all(name, size(name) <= 128 && name.matches('^[-!#$%&*+.^_`|~0-9A-Za-z]+$'))",
                "message": "a header's name holds letters, digits and hyphens, at most 128",
            },
            {
                "rule": format!("self.all(name, !name.matches('^(?i)({RESERVED})$'))"),
                "message": "host, content-length, content-type, webhook-..., rowgate-... and the headers of a connection are set by the delivery itself; use other names",
            },
        ],
    })
}

/// Names that no subscription sets.
const RESERVED: &str = "host|content-length|content-type|content-encoding|accept-encoding|user-agent|expect|connection|keep-alive|\
    proxy-authenticate|proxy-authorization|proxy-connection|te|trailer|transfer-encoding|upgrade|webhook-.*|rowgate-.*";

impl WebhookSubscription {
    /// The Secret's name: `spec.secretName`, else the object's name with `-webhook` behind it.
    #[must_use]
    pub fn secret_name(&self) -> String {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        self.spec.secret_name.clone().unwrap_or_else(|| format!("{name}-webhook"))
    }
}
