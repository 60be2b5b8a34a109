//! What is said of a WebhookSubscription.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::status::default_observed_generation;

/// The state of a WebhookSubscription. Every field may be absent until the first pass has ended.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct WebhookSubscriptionStatus {
    /// The `metadata.generation` that this status describes; -1: none yet.
    #[serde(default = "default_observed_generation")]
    pub observed_generation: i64,
    /// `Ready`: the subscription stands in the database as the manifest says. `Reconciling`: work is in progress. `Stalled`:
    /// work cannot continue until a person changes what the message names. `Delivering`: whether events reach the receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The subscription's identifier, as the API and the receiver know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `enabled` or `disabled`: a fact, which only deliveries, replays and the API change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it is disabled: `DeadLetters`, `Undelivered` or `Gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Events that are not delivered yet; counted up to 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_events: Option<i64>,
    /// When the oldest event that is not delivered yet was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_undelivered: Option<Time>,
    /// Deliveries given up since the last success; the third disables the subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_dead_letters: Option<i64>,
    /// Deliveries that were given up and not redelivered since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<i64>,
    /// When the receiver last accepted a delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivery: Option<Time>,
    /// Why the last failed attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The value of the annotation `rowgate.dev/replay` that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_replay: Option<String>,
    /// The Secret that holds the signing secret; of mirrors absent: the API showed the secret once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Warnings: what works but may be unexpected, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub warnings: Vec<String>,
    /// With the annotation `rowgate.dev/mode: Observe`: the statements that would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub plan: Vec<String>,
}
