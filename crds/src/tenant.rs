//! Tenant: one database, exposed as an API under one name.

pub(crate) mod bootstrap;
pub(crate) mod entity;
pub(crate) mod migrations;
pub(crate) mod row_level_security;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_core::Rule;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permission::Permission;
use crate::span::{Span, statement_timeout_schema};
use crate::status::{ResolvedPermission, default_observed_generation};
use bootstrap::Bootstrap;
use entity::Entity;
use migrations::Migrations;

/// A Tenant is one PostgreSQL database, exposed as an API under `/auth/{slug}/api`.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "rowgate.dev",
    version = "v1alpha1",
    kind = "Tenant",
    plural = "tenants",
    shortname = "rgt",
    category = "rowgate",
    namespaced,
    status = "TenantStatus",
    derive = "PartialEq",
    crates(kube_core = "::kube_core"),
    doc = "A PostgreSQL database exposed as an API: its entities, who may do what with them, and which rows they see.",
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
    printcolumn(name = "Slug", type_ = "string", json_path = ".status.slug"),
    printcolumn(name = "Entities", type_ = "integer", json_path = ".status.entities"),
    printcolumn(name = "Keys", type_ = "integer", json_path = ".status.keys"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new(
        "has(self.database.name) == has(oldSelf.database.name) && (!has(self.database.name) || self.database.name == oldSelf.database.name)"
    ).message("database.name cannot be changed, added or removed; create a new Tenant instead"),
    validation = Rule::new(
        "has(self.database.serverSecretRef) == has(oldSelf.database.serverSecretRef) && (!has(self.database.serverSecretRef) || self.database.serverSecretRef == oldSelf.database.serverSecretRef)"
    ).message("database.serverSecretRef cannot be changed, added or removed; create a new Tenant instead"),
    validation = Rule::new("self.database.create == oldSelf.database.create")
        .message("database.create cannot be changed; create a new Tenant instead"),
)]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// The tenant's name in URLs and keys: at most 40 lower-case letters, digits and hyphens, starting and ending with a letter
    /// or digit. Unique in the installation; cannot be changed. Default: the object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$')")
        .message("slug consists of at most 40 lower-case letters, digits and hyphens, and neither starts nor ends with a hyphen"))]
    pub slug: Option<String>,

    /// Where the tenant's data is, and what happens to it.
    #[serde(default)]
    pub database: Database,

    /// What every unscoped key of the tenant may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Shared>,

    /// The tables, views and procedures that are exposed. Nothing else of the database is reachable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub entities: Vec<Entity>,

    /// Bounds on what one request may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,

    /// Browsers of which sites may call this tenant's API. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<Cors>,

    /// How GraphQL is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql: Option<TenantGraphQl>,

    /// What webhook subscriptions of this tenant may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Webhooks>,
}

/// Where the tenant's data is, and what happens to it.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.create || has(self.name)")
        .message("database.create: false serves a database that exists; set database.name to its name"),
    validation = Rule::new("self.create || !(has(self.bootstrap) || has(self.migrations) || has(self.adoptRetained))")
        .message("database.create: false serves a database that others change; leave out bootstrap, migrations and adoptRetained"),
    validation = Rule::new("self.create || self.deletionPolicy == 'Retain'")
        .message("a database with create: false is not dropped; leave deletionPolicy out"),
)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// A Secret in this namespace whose key `url` holds the address of a PostgreSQL server with an administrator's login
    /// (`postgresql://user:password@host:5432/`), and `ca.crt`, where it is there, the certificate authorities that vouch for it. What the
    /// Secret holds may change; it has to lead to the same PostgreSQL cluster. Cannot be changed. Default: the installation's own server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_secret_ref: Option<SecretKeyRef>,

    /// The database's name on that server, which every SQL session of every tenant there can read. Cannot be changed.
    /// Default: `t_` and `status.tenantId`, which reveals nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z_][a-z0-9_]*$') && !self.startsWith('pg_') && !(self in ['postgres', 'template0', 'template1', 'rowgate'])")
        .message("database.name consists of lower-case letters, digits and underscores, does not start with a digit or pg_, and is not one of postgres, template0, template1, rowgate"))]
    pub name: Option<String>,

    /// The id of the retained database that this Tenant adopts: one that was retained in this namespace, or that the platform
    /// team has handed to this Tenant (`rowgate-dataplane retained hand-over`). `slug` must be that of the deleted Tenant. A
    /// Tenant of the same namespace and name does not need this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 26, max = 26))]
    #[x_kube(validation = Rule::new("self.matches('^[0-7][0-9a-hjkmnp-tv-z]{25}$')")
        .message("database.adoptRetained is the id of a tenant: 26 lower-case letters and digits, as in status.tenantId"))]
    pub adopt_retained: Option<String>,

    /// `false`: the database exists, with an application in it whose role owns database and tables. What `entities` names is served, the
    /// application goes on as before, and deleting the Tenant gives everything back as it was found. Cannot be changed.
    #[serde(default = "yes")]
    pub create: bool,

    /// What deleting this object does to the database: `Retain` leaves it, `Delete` drops it with all its data.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Scripts that run once, as the database's owner, before anything is exposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,

    /// A login for migration tools. Its Secret is written in this namespace; without this field it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<Migrations>,
}

impl Default for Database {
    fn default() -> Database {
        Database {
            server_secret_ref: None,
            name: None,
            adopt_retained: None,
            create: true,
            deletion_policy: DeletionPolicy::Retain,
            bootstrap: None,
            migrations: None,
        }
    }
}

#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    #[default]
    Retain,
    Delete,
}

/// A Secret in this namespace.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKeyRef {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What every unscoped key of the tenant may do, and what policies can ask about them.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// Entries for one entity add up, action by action. What is not listed is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub permissions: Vec<Permission>,
    /// Values that policies read with `dl.claim('name')` when an unscoped key asks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::permission::claims_schema")]
    pub claims: BTreeMap<String, String>,
}

/// Bounds on what one request may ask for.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The largest page, in rows: what `$first` may ask for. Default: 100000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<1_000_000>")]
    pub max_page_size: Option<u32>,
    /// Requests per second that one key may make of each replica, with one second's worth at once. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<1_000_000>")]
    pub requests_per_second: Option<u32>,
    /// How long one statement may run: a number with `ms`, `s` or `m`, such as `500ms`, `30s`, `2m`. Default: `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "statement_timeout_schema")]
    pub statement_timeout: Option<Span>,
    /// Exports of the tenant that run at a time, of all replicas together; others wait. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<100>")]
    pub exports: Option<u32>,
    /// Exports of one key that run at a time; others wait. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<100>")]
    pub exports_per_key: Option<u32>,
    /// Rows at which an export stops. Default, and the most: what `--exports-max-rows` of the data plane says, 50000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<50_000_000>")]
    pub max_export_rows: Option<u32>,
    /// Rows that one GraphQL query may return at most, by its arguments `first`. Default: 2000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<1_000_000_000>")]
    pub graphql_cost: Option<u32>,
    /// Rows per second that the GraphQL operations of one key may ask each replica for, by their arguments `first`. One operation may ask
    /// for more, and delays those after it. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<1_000_000_000>")]
    pub graphql_cost_per_second: Option<u32>,
    /// Streams of events, GraphQL subscriptions among them, that each replica serves at a time. Default: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<100_000>")]
    pub streams: Option<u32>,
    /// Bytes on disk that the log of row changes may take, at least 1 MiB. Beyond it whole days are given up before their 7 days are over,
    /// from the oldest on; writers never fail, today stays, and what webhook subscriptions have not delivered is kept. Default:
    /// 10737418240 (10 GiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::outbox_bytes")]
    pub max_outbox_bytes: Option<u64>,
    /// Webhook subscriptions that the tenant has at a time, those that Kubernetes declares among them. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::definition::positive_int::<10_000>")]
    pub subscriptions: Option<u32>,
}

/// Browsers of which sites may call this tenant's API.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct Cors {
    /// Origins as browsers send them: `https://app.example.com`, `http://localhost:3000`; `*` allows every site.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(validation = Rule::new("self.all(o, o == '*' || (o.matches('^[a-z][a-z0-9+.-]*://([a-z0-9_.-]+|\\\\[[0-9a-f:.]+\\\\])(:[1-9][0-9]{0,4})?$') && !o.matches('^(http:.*:80|https:.*:443)$')))")
        .message("each of cors.origins is '*', or scheme://host or scheme://host:port in lower case, without a path, a slash at the end or the scheme's default port (:80, :443)"))]
    #[schemars(length(max = 50), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub origins: Vec<String>,
}

/// How GraphQL is served.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantGraphQl {
    /// Whether a key may ask for the schema of what it may do. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection: Option<bool>,
}

/// What webhook subscriptions of this tenant may do.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// Whether destinations may be plain `http`. Default: `https` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_http: Option<bool>,
}

/// The state of a Tenant. Every field may be absent until the first pass has ended.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// The `metadata.generation` that this status describes; -1: none yet.
    #[serde(default = "default_observed_generation")]
    pub observed_generation: i64,
    /// `Ready`: applied to the database and served by every live replica. `Reconciling`: work is in progress. `Stalled`: work
    /// cannot continue until a person changes what the message names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The identifier of the tenant in PostgreSQL: its roles are `t<id>_owner`, `t<id>_auth` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The slug in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// The name of the database in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The Secret of the login of migration tools; absent: the login is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations_secret: Option<String>,
    /// Where the tenant is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// How many entities are exposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entities: Option<i32>,
    /// How many live keys the tenant has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<i32>,
    /// How many live data-plane replicas serve this generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What the shared permissions came to, when `fields` was left out or `*`: the columns present at that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4000))]
    pub shared: Vec<ResolvedPermission>,
    /// What works but may surprise, one sentence each, such as a table that shows no row for want of a policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub warnings: Vec<String>,
    /// With the annotation `rowgate.dev/mode: Observe`: the statements that would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub plan: Vec<String>,
}

/// Where the tenant is served. Paths begin at the data plane's address.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// The REST API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    /// The GraphQL API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql: Option<String>,
    /// The OpenAPI document of the key that asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openapi: Option<String>,
    /// Where a key is exchanged for a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<String>,
    /// What events, exports, aggregates and SQL begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ddl: Option<String>,
}

/// Rules that need the object's name, which only the root of an object shows.
pub(crate) fn root_rules() -> [Rule; 2] {
    let name = "self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$')";
    let slug =
        |object: &str| format!("(has({object}.spec.slug) ? {object}.spec.slug : {object}.metadata.name)");
    [
        Rule::new(format!("has(self.spec.slug) || {name}")).message(
            "without spec.slug the object's name is the slug, which consists of at most 40 lower-case letters, digits and hyphens, and neither starts nor ends with a hyphen; rename the object or set spec.slug",
        ),
        Rule::new(format!("{} == {}", slug("self"), slug("oldSelf"))).message(
            "slug cannot be changed: it is part of every key and address; create a new Tenant instead",
        ),
    ]
}

impl Tenant {
    /// The slug: `spec.slug`, else the object's name.
    #[must_use]
    pub fn slug(&self) -> &str {
        self.spec.slug.as_deref().or(self.metadata.name.as_deref()).unwrap_or_default()
    }

    /// The Secret that the login of migration tools is to be written into.
    #[must_use]
    pub fn migrations_secret(&self) -> Option<&str> {
        self.spec.database.migrations.as_ref().map(|migrations| migrations.secret_name.as_str())
    }
}

fn yes() -> bool {
    true
}
