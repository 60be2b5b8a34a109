//! Row-level security of a table: which rows a key sees and writes.

use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Exactly one of `policies`, `existing` and `none`, and `replace` beside `policies` or `none`. The table is ENABLEd in every case.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("[has(self.policies), has(self.existing), has(self.none)].filter(x, x).size() == 1")
        .message("rowLevelSecurity takes exactly one of policies, existing: true and none: true; leave it out to show no row"),
    validation = Rule::new("(!has(self.existing) || self.existing) && (!has(self.none) || self.none)")
        .message("existing and none can only be true; leave them out otherwise"),
    validation = Rule::new("!has(self.replace) || (self.replace && !has(self.existing))")
        .message("replace can only be true, and not beside existing, which keeps the policies; leave it out otherwise"),
)]
pub struct RowLevelSecurity {
    /// The table's policies; any other policy is removed. A row is shown when one policy allows it and every restrictive
    /// one does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub policies: Vec<Policy>,
    /// `true`: the policies that the table already has are kept unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<bool>,
    /// `true`: every row is shown to every key that may read the entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<bool>,
    /// `true`: in a database that was there before (`database.create: false`), policies that the application has on the table hold for its
    /// own roles alone, and for PUBLIC again when the table is given back. In a database that Rowgate made other policies are
    /// removed either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
}

/// What a [`RowLevelSecurity`] that was admitted says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rls<'a> {
    Policies(&'a [Policy]),
    Existing,
    None,
}

impl RowLevelSecurity {
    /// The one choice that was made. The rules leave no other case; no policy at all shows no row.
    #[must_use]
    pub fn choice(&self) -> Rls<'_> {
        match (self.existing, self.none) {
            (Some(true), _) => Rls::Existing,
            (_, Some(true)) => Rls::None,
            _ => Rls::Policies(&self.policies),
        }
    }
}

/// One policy: either `column` and `equals`, or `expression`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("has(self.column) == has(self.equals) && has(self.column) != has(self.expression)")
        .message("a policy takes either column together with equals, or expression"),
)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The policy's name on the table.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[_A-Za-z][-_0-9A-Za-z]*$')")
        .message("a policy's name consists of letters, digits, underscores and hyphens, and starts with a letter or underscore"))]
    pub name: String,
    /// The actions to which it applies: `create`, `read`, `update`, `delete`. Default: all four.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub actions: Vec<PolicyAction>,
    /// The keys to which it applies: names of ApiKey resources, or `datalake_user` for every unscoped key. Default: every key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub roles: Vec<String>,
    /// The field, by exposed name, that must equal `equals`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub column: Option<String>,
    /// What `column` is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Equals>,
    /// A boolean SQL expression over the table's columns. It may use `current_user` and `dl.claim('name')`; a claim that
    /// is missing is NULL, so no row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10000))]
    pub expression: Option<String>,
    /// A boolean SQL expression that rows must satisfy after a write. Default: the policy's own condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10000))]
    pub check: Option<String>,
    /// `true`: a row must satisfy this policy in addition to another one.
    #[serde(default)]
    pub restrictive: bool,
}

/// What a column is compared with: exactly one of `claim` and `literal`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("has(self.claim) != has(self.literal)")
        .message("equals takes exactly one of claim and literal"),
)]
pub struct Equals {
    /// The name of a claim of the calling key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub claim: Option<String>,
    /// A value as text, read by PostgreSQL as the column's type: `"42"`, `"true"`, `north`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub literal: Option<String>,
}

#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyAction {
    Create,
    Read,
    Update,
    Delete,
}
