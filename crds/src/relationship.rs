//! Relationship: how rows of one entity find rows of another.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api_key::TenantRef;
use crate::status::default_observed_generation;

/// A Relationship between two entities of a Tenant: a row of `from` leads to rows of `to` whose fields hold the same values.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "rowgate.dev",
    version = "v1alpha1",
    kind = "Relationship",
    plural = "relationships",
    shortname = "rgr",
    category = "rowgate",
    namespaced,
    status = "RelationshipStatus",
    derive = "PartialEq",
    crates(kube_core = "::kube_core"),
    doc = "A relationship between two entities of one Tenant, for $expand, paths in filters, and nested selections in GraphQL.",
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name"),
    printcolumn(name = "From", type_ = "string", json_path = ".spec.from.entity"),
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "To", type_ = "string", json_path = ".spec.to.entity"),
    printcolumn(name = "Cardinality", type_ = "string", json_path = ".spec.cardinality"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("has(self.through) || has(self.from.fields) == has(self.to.fields)")
        .message("give from.fields and to.fields both, or leave both out to take the columns of the foreign key"),
    validation = Rule::new("has(self.through) || !has(self.from.fields) || !has(self.to.fields) || size(self.from.fields) == size(self.to.fields)")
        .message("from.fields and to.fields hold equally many fields: the first of one equals the first of the other"),
    validation = Rule::new("!has(self.through) || !has(self.through.fromFields) || !has(self.from.fields) || size(self.through.fromFields) == size(self.from.fields)")
        .message("through.fromFields and from.fields hold equally many names"),
    validation = Rule::new("!has(self.through) || !has(self.through.toFields) || !has(self.to.fields) || size(self.through.toFields) == size(self.to.fields)")
        .message("through.toFields and to.fields hold equally many names"),
    validation = Rule::new("!has(self.through) || self.cardinality == 'Many'")
        .message("a relationship through a table leads to many rows: cardinality is Many"),
    validation = Rule::new("!has(self.assumeUnique) || !self.assumeUnique || self.cardinality == 'One'")
        .message("assumeUnique belongs to cardinality One"),
    validation = Rule::new("!has(self.inverse) || self.from.entity != self.to.entity || self.inverse != self.name")
        .message("name and inverse are fields of the same entity here: give them different names"),
)]
#[serde(rename_all = "camelCase")]
pub struct RelationshipSpec {
    /// The Tenant that both entities belong to, in this namespace. Cannot be changed.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("tenantRef cannot be changed; create a new Relationship"))]
    pub tenant_ref: TenantRef,
    /// What the way from `from` to `to` is called, beside the fields of `from`: letters, digits and underscores, at most
    /// 63, no digit first, not `__` first.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[_A-Za-z][_0-9A-Za-z]*$') && !self.startsWith('__')")
        .message("a relationship's name holds letters, digits and underscores, does not start with a digit and not with two underscores"))]
    pub name: String,
    /// Where it starts.
    pub from: End,
    /// Where it leads.
    pub to: End,
    /// The table that links both, for many-to-many. Left out: the fields of `from` and `to` are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Through>,
    /// `One`: a row leads to one row or none. `Many`: to a list.
    pub cardinality: Cardinality,
    /// With `One`, where no unique index proves that there is one row at most: the first row by key is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assume_unique: Option<bool>,
    /// What the way back is called, beside the fields of `to`. Left out: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[_A-Za-z][_0-9A-Za-z]*$') && !self.startsWith('__')")
        .message("a relationship's name holds letters, digits and underscores, does not start with a digit and not with two underscores"))]
    pub inverse: Option<String>,
}

/// One end of a relationship.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The entity's name.
    #[schemars(length(min = 1, max = 63))]
    pub entity: String,
    /// Exposed names of its fields. Left out: those of the foreign key between both tables; with `through`, the key fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub fields: Vec<String>,
}

/// A table that links both ends.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.schema != 'dl' && self.schema != 'information_schema' && !self.schema.startsWith('pg_')")
        .message("through.schema cannot be dl, information_schema or pg_...: those belong to Rowgate and to PostgreSQL"),
)]
#[serde(rename_all = "camelCase")]
pub struct Through {
    /// The schema.
    #[serde(default = "public")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: String,
    /// The table, spelled as the database spells it.
    #[schemars(length(min = 1, max = 63))]
    pub object: String,
    /// Columns of the table that equal `from.fields`. Left out: those of its foreign key to the table of `from`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub from_fields: Vec<String>,
    /// Columns of the table that equal `to.fields`. Left out: those of its foreign key to the table of `to`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub to_fields: Vec<String>,
}

/// How many rows a row leads to.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cardinality {
    One,
    Many,
}

/// What Rowgate made of a Relationship. Every field may be absent until the first pass has ended.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct RelationshipStatus {
    /// The `metadata.generation` that this status speaks about; -1: none yet.
    #[serde(default = "default_observed_generation")]
    pub observed_generation: i64,
    /// `Ready`: every live replica serves the relationship. `Reconciling`: work is under way. `Stalled`: it cannot go on until
    /// a person changes what the message names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The columns that are compared, such as `orders.customer_id = customers.id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<String>,
    /// What works but may surprise, one sentence each, such as a missing index with the statement that creates it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub warnings: Vec<String>,
    /// With the annotation `rowgate.dev/mode: Observe`: the statements that would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub plan: Vec<String>,
}

fn public() -> String {
    "public".to_owned()
}
