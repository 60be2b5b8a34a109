//! Rows of schema `dl`, as reconciling writes them and a data plane reads them.

use std::collections::BTreeMap;

use rowgate_core::name::EntityName;
use serde::{Deserialize, Serialize};

use super::{EntityKind, GraphQlNames, Protection};
use crate::text::Ident;

/// One row of `dl.entities`, as reconciling writes it and a data plane reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntityRecord {
    pub name: EntityName,
    pub kind: EntityKind,
    pub schema: Ident,
    pub object: Ident,
    /// Column names, in key order. Empty for a routine, and for nothing else.
    pub key_columns: Vec<Ident>,
    /// Column name to exposed name, only where they differ; of a routine, names of parameters and of what it gives.
    #[serde(default)]
    pub mappings: BTreeMap<String, String>,
    pub rest: bool,
    #[serde(default, skip_serializing_if = "GraphQlNames::is_default")]
    pub graphql: GraphQlNames,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// Column name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hide_soft_deleted: Option<String>,
    /// A view over a protected table, with a column [`EXPECTED_TS`](super::EXPECTED_TS).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_version: bool,
    /// Changes of its rows are captured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub events: bool,
    /// Its routine may be SECURITY DEFINER.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_definer: bool,
}

/// One row of `dl.relationships`: a way from rows of one entity to rows of another. The way back is a row of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelationshipRecord {
    /// `metadata.uid` of the Relationship.
    pub uid: String,
    /// Beside the fields of `entity`.
    pub name: String,
    pub entity: EntityName,
    pub to: EntityName,
    /// Columns of `entity`, and as many of `to` or of the table between: equal, one by one.
    pub columns: Vec<Ident>,
    pub to_columns: Vec<Ident>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<ThroughRecord>,
    /// A row leads to one row or none, and not to a list.
    pub to_one: bool,
    /// With `to_one`, that no unique index proves it: the first row by key is taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_first: bool,
}

/// A table that links two entities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThroughRecord {
    pub schema: Ident,
    pub object: Ident,
    /// Columns of this table that equal the columns of the entity where the way starts.
    pub columns: Vec<Ident>,
    /// Columns of this table that equal the columns of the entity where it leads.
    pub to_columns: Vec<Ident>,
}

/// One permission of a set, as `dl.permission_sets.permissions` holds it: an array of these, sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRecord {
    pub entity: EntityName,
    pub action: Action,
    /// Database column names for read, create and update, sorted; empty for delete and execute.
    pub columns: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Read,
    Create,
    Update,
    Delete,
    Execute,
}

impl Action {
    /// The word of manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Create => "create",
            Action::Update => "update",
            Action::Delete => "delete",
            Action::Execute => "execute",
        }
    }
}
