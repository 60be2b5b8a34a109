//! Entity: a table, view or procedure under an exposed name. Part of Tenant.

use std::collections::BTreeMap;

use kube_derive::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::tenant::row_level_security::RowLevelSecurity;

/// A table, view or procedure under an exposed name. Fields are named by exposed name everywhere except in `source` and
/// SQL expressions.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.kind != 'View' || has(self.keyFields)")
        .message("a View needs keyFields: the fields that identify one row"),
    validation = Rule::new("self.kind == 'Table' || !has(self.rowLevelSecurity)")
        .message("rowLevelSecurity belongs to a Table; rows of a View are filtered by the policies of the tables under it"),
    validation = Rule::new("self.kind == 'Table' || !has(self.concurrencyProtection)")
        .message("concurrencyProtection belongs to a Table"),
    validation = Rule::new("self.kind != 'Procedure' || !has(self.keyFields)")
        .message("a Procedure has no keyFields"),
    validation = Rule::new("self.kind != 'Procedure' || !has(self.events) || !self.events")
        .message("a Procedure has no events; what it changes is captured at the tables"),
    validation = Rule::new("self.kind != 'Table' || !has(self.allowDefiner) || !self.allowDefiner")
        .message("allowDefiner belongs to a Procedure or a View"),
)]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    /// The name in URLs and in GraphQL: at most 63 letters, digits and underscores, starting neither with a digit nor with `__`.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[_A-Za-z][_0-9A-Za-z]*$') && !self.startsWith('__')")
        .message("an entity's name consists of letters, digits and underscores, and starts neither with a digit nor with two underscores"))]
    pub name: String,
    /// The table, view or routine in the database.
    pub source: Source,
    /// `Table`, `View` or `Procedure` (a function or a procedure).
    #[serde(default)]
    pub kind: EntityKind,
    /// The fields that identify one row. Default: the table's primary key. A View needs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub key_fields: Vec<String>,
    /// Exposed names of columns, `column: exposedName`; of a Procedure, of parameters and of columns of its result. Those not
    /// listed keep their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "mappings_schema")]
    pub mappings: BTreeMap<String, String>,
    /// Whether and how the entity is served over REST.
    #[serde(default)]
    pub rest: Rest,
    /// Whether and how the entity is served over GraphQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql: Option<GraphQl>,
    /// Refuses writes that do not send the row's current version, and deletes by flag only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_protection: Option<ConcurrencyProtection>,
    /// Whether reads omit rows that are flagged as deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hide_soft_deleted: Option<bool>,
    /// Whether row changes are captured as events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<bool>,
    /// Whether the routine may be SECURITY DEFINER, and so run with the privileges of its owner instead of its caller. Of a View: whether it may
    /// call such functions, which no policy filters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_definer: Option<bool>,
    /// Which rows a key sees. Default: row-level security is on and shows no row. If several entities expose one table, one of
    /// them declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_level_security: Option<RowLevelSecurity>,
}

#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntityKind {
    #[default]
    Table,
    View,
    Procedure,
}

/// A table, view, function or procedure in the database, by its names there.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.schema != 'dl' && self.schema != 'information_schema' && !self.schema.startsWith('pg_')")
        .message("source.schema cannot be dl, information_schema or pg_...: those belong to Rowgate and to PostgreSQL"),
)]
pub struct Source {
    /// The schema.
    #[serde(default = "public")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: String,
    /// The table, view, function or procedure, spelled as in the database.
    #[schemars(length(min = 1, max = 63))]
    pub object: String,
}

/// Whether and how an entity is served over REST.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// If false, the entity still counts for policies and for views over it.
    #[serde(default = "yes")]
    pub enabled: bool,
}

impl Default for Rest {
    fn default() -> Rest {
        Rest { enabled: true }
    }
}

/// Whether and how an entity is served over GraphQL.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphQl {
    /// Default: as `rest.enabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The name of one row's type, used as it is. Default: the entity's name with a capital first letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "graphql_name_schema")]
    pub singular: Option<String>,
    /// The name of the list field. Default: the entity's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "graphql_name_schema")]
    pub plural: Option<String>,
}

/// Refuses writes that do not send the row's current version (column `dl_expected_ts`), and deletes by flag only.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConcurrencyProtection {
    /// The boolean column that marks a row as deleted.
    #[serde(default = "is_deleted")]
    #[schemars(length(min = 1, max = 63))]
    pub soft_delete_column: String,
    /// Whose writes are held: `All`, or `ApiOnly` for those that come through the API, cascades and SECURITY DEFINER functions among
    /// them. Others name no version then, and the rows that they write get a new one. Default: `ApiOnly` in a database with
    /// `create: false`, which takes nothing else; `All` in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers: Option<Writers>,
}

#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Writers {
    All,
    ApiOnly,
}

fn yes() -> bool {
    true
}

fn public() -> String {
    "public".to_owned()
}

fn is_deleted() -> String {
    "is_deleted".to_owned()
}

fn mappings_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 1600,
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": 63 },
    })
}

fn graphql_name_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^_?([A-Za-z][_0-9A-Za-z]*)?$",
    })
}
