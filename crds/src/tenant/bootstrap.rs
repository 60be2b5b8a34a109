//! The scripts that a Tenant's database is made from.

use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scripts that run once, as the database's owner, before anything is exposed: exactly one of `configMapRef` and `scripts`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("has(self.configMapRef) != has(self.scripts)")
        .message("bootstrap takes exactly one of configMapRef and scripts"),
)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The ConfigMap that holds the only script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapKeyRef>,
    /// Scripts that run in this order, each in a transaction and each once: one that ran keeps its place and its text, and new
    /// ones are appended. Where `configMapRef` stood before, the first counts as run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100))]
    pub scripts: Vec<ConfigMapKeyRef>,
}

impl Bootstrap {
    /// Every script that is named, in its order.
    pub fn references(&self) -> impl Iterator<Item = &ConfigMapKeyRef> {
        self.config_map_ref.iter().chain(&self.scripts)
    }
}

/// One key of a ConfigMap in this namespace.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigMapKeyRef {
    /// The ConfigMap's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key of its data.
    #[serde(default = "schema_sql")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn schema_sql() -> String {
    "schema.sql".to_owned()
}
