//! Permissions: entity by entity, action by action, field by field. Absent means refused.

use kube_derive::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Actions on one entity.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.fields) || self.actions.all(a, a in ['read', 'create', 'update'])")
        .message("fields apply to read, create and update only; give delete and execute an entry of their own"),
    validation = Rule::new("!('execute' in self.actions) || self.actions.size() == 1")
        .message("a Procedure takes execute and nothing else; a Table or View takes the other actions"),
)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The entity's name.
    #[schemars(length(min = 1, max = 63))]
    pub entity: String,
    /// What may be done: `create`, `read`, `update`, `delete`; `execute` for procedures. Read, update and delete always
    /// include reading the key fields.
    #[schemars(length(min = 1, max = 5), extend("x-kubernetes-list-type" = "set"))]
    pub actions: Vec<Action>,
    /// Which fields, by exposed name. Default (only in a Tenant's shared permissions): every column present when this
    /// generation was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<FieldSet>,
}

#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Read,
    Update,
    Delete,
    Execute,
}

impl Action {
    /// The name in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Read => "read",
            Action::Update => "update",
            Action::Delete => "delete",
            Action::Execute => "execute",
        }
    }
}

/// A choice of fields, by exposed name.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.include) || !('*' in self.include) || self.include.size() == 1")
        .message("fields.include is either ['*'] or names, not both"),
)]
pub struct FieldSet {
    /// These fields. `['*']`: every column present when this generation was applied; columns added later are not
    /// included before the resource changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1600), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub include: Vec<String>,
    /// Fields that are excluded. Key fields cannot be excluded from read, update and delete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1600), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub exclude: Vec<String>,
}

impl FieldSet {
    /// True when `include` asks for every column: `['*']`, or left out (shared permissions only).
    #[must_use]
    pub fn includes_all(&self) -> bool {
        self.include.is_empty() || self.include.iter().any(|field| field == "*")
    }
}

/// Names and values that policies read with `dl.claim`: at most 64, values of at most 1024 characters.
pub(crate) fn claims_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 1024 },
    })
}
