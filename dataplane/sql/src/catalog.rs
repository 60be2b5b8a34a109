//! What a tenant exposes, as one immutable snapshot: entities, their fields, and what each role may do with them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rowgate_core::name::EntityName;
use serde::{Deserialize, Serialize};

use crate::shape::Nested;
use crate::text::{BuiltIn, Ident};

mod build;
mod nesting;
mod record;
mod relationship;
mod routine;
mod scope;
mod views;

pub use build::{ColumnInfo, TableColumns, ViewInfo, WITHOUT_EQUALITY, build};
pub use nesting::{MAX_NESTING, Structures, TypeRow};
pub use record::{Action, EntityRecord, PermissionRecord, RelationshipRecord, ThroughRecord};
pub use relationship::{Link, Relationship, Through};
pub use routine::{Mode, Output, Param, Returns, Routine, RoutineInfo, RoutineKind, Volatility};
pub use scope::{ClosedEntity, Protocol, Rights, Scope};
pub use views::{Definitions, RelationName};

/// A tenant's entities and permission sets at one generation of `dl.state`.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Grows with every change that reconciling applies to the tenant.
    pub generation: i64,
    pub limits: Limits,
    pub entities: BTreeMap<EntityName, Arc<Entity>>,
    /// By the role that holds the grants: `datalake_user` or `set_<id>`.
    pub scopes: HashMap<String, Arc<Scope>>,
    /// By the entity where they start; who may follow one: [`Catalog::relationships`].
    pub(crate) relationships: BTreeMap<EntityName, Vec<Relationship>>,
    /// Those left out because the entity where they lead is not there now.
    pub(crate) away: relationship::Away,
    /// Entities left out, because the relation, a key column or one that protection or hiding stands on is not there, or
    /// two columns have one exposed name.
    pub missing: Vec<String>,
    /// Entities that must not be used now: row-level security of a table that they show does not filter them, or
    /// their routine became SECURITY DEFINER, or one of several of its name.
    pub unguarded: HashSet<EntityName>,
}

/// A tenant's own limits, from `Tenant.spec.limits`, and whose pages may call it, from `Tenant.spec.cors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// The largest `$first`.
    pub max_page_size: u32,
    /// Milliseconds after which PostgreSQL ends a statement.
    pub statement_timeout_ms: u32,
    /// What one key may ask in a second, of each replica; `None`: as much as it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
    /// Rows that the GraphQL operations of one key may ask for in a second, of each replica; `None`: as many as it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphql_cost_per_second: Option<u32>,
    /// Streams of events that a replica serves at a time.
    #[serde(skip_serializing_if = "is_default_streams")]
    pub streams: u32,
    /// What the log of row changes may take on disk.
    #[serde(skip_serializing_if = "is_default_outbox")]
    pub max_outbox_bytes: u64,
    /// Webhook subscriptions that the tenant has at a time.
    #[serde(skip_serializing_if = "is_default_subscriptions")]
    pub subscriptions: u32,
    /// Exports that run at a time, of all replicas together.
    #[serde(skip_serializing_if = "is_default_exports")]
    pub exports: u32,
    /// Those of one key.
    #[serde(skip_serializing_if = "is_default_exports_per_key")]
    pub exports_per_key: u32,
    /// Rows of one export; `None`: as many as the data plane allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_export_rows: Option<u32>,
    /// `scheme://host[:port]` as browsers write it, or `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cors_origins: Vec<String>,
    /// How many rows a GraphQL query may return by its arguments `first`.
    #[serde(skip_serializing_if = "is_default_cost")]
    pub graphql_cost: u64,
    /// Whether a key may ask GraphQL for its schema.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub graphql_introspection: bool,
    /// Whether callers may write SQL.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub callers_sql: bool,
    /// Whether webhooks may be sent without TLS.
    #[serde(skip_serializing_if = "is_false")]
    pub webhooks_allow_http: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

const DEFAULT_GRAPHQL_COST: u64 = 2_000_000;
const DEFAULT_STREAMS: u32 = 1_000;
const DEFAULT_OUTBOX_BYTES: u64 = 10 << 30;
const DEFAULT_SUBSCRIPTIONS: u32 = 100;
const DEFAULT_EXPORTS: u32 = 2;
const DEFAULT_EXPORTS_PER_KEY: u32 = 1;

impl Limits {
    /// Whether anything that a key does is counted by time.
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        self.requests_per_second.is_some() || self.graphql_cost_per_second.is_some()
    }
}

fn is_default_cost(cost: &u64) -> bool {
    *cost == DEFAULT_GRAPHQL_COST
}

fn is_default_streams(streams: &u32) -> bool {
    *streams == DEFAULT_STREAMS
}

fn is_default_outbox(bytes: &u64) -> bool {
    *bytes == DEFAULT_OUTBOX_BYTES
}

fn is_default_subscriptions(subscriptions: &u32) -> bool {
    *subscriptions == DEFAULT_SUBSCRIPTIONS
}

fn is_default_exports(exports: &u32) -> bool {
    *exports == DEFAULT_EXPORTS
}

fn is_default_exports_per_key(exports: &u32) -> bool {
    *exports == DEFAULT_EXPORTS_PER_KEY
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_page_size: 100_000,
            statement_timeout_ms: 30_000,
            requests_per_second: None,
            graphql_cost_per_second: None,
            streams: DEFAULT_STREAMS,
            max_outbox_bytes: DEFAULT_OUTBOX_BYTES,
            subscriptions: DEFAULT_SUBSCRIPTIONS,
            exports: DEFAULT_EXPORTS,
            exports_per_key: DEFAULT_EXPORTS_PER_KEY,
            max_export_rows: None,
            cors_origins: Vec::new(),
            graphql_cost: DEFAULT_GRAPHQL_COST,
            graphql_introspection: true,
            callers_sql: true,
            webhooks_allow_http: false,
        }
    }
}

/// One exposed table, view or routine.
#[derive(Debug, Clone)]
pub struct Entity {
    pub name: EntityName,
    pub kind: EntityKind,
    pub schema: Ident,
    pub object: Ident,
    /// Every column that the database has now and the mappings name; what a key may see of them is its [`Scope`]. A
    /// routine has none.
    pub fields: Vec<Field>,
    /// Positions in `fields`, in the order of `keyFields` (or of the primary key). Empty for a routine.
    pub key: Vec<usize>,
    /// An index sees to it that no two rows have one key.
    pub key_is_unique: bool,
    /// False: the entity exists for grants and policies and is not served over REST.
    pub rest: bool,
    /// Whether it is served over GraphQL, and what it is called there.
    pub graphql: GraphQlNames,
    /// Under Concurrency Protection. Triggers refuse what does not keep to it (`ddl::protection`).
    pub protection: Option<Protection>,
    /// The boolean column whose `true` takes a row out of reads; NULL does not. One of `fields`, by its column's name.
    pub hide_soft_deleted: Option<String>,
    /// Of a [`EntityKind::Procedure`], and of nothing else.
    pub routine: Option<Routine>,
    /// Constraints of the table and unique indexes, of which all columns are known.
    pub constraints: Vec<Constraint>,
    pub write_support: WriteSupport,
    /// Tables below a view, by schema and name.
    pub under: Vec<(Ident, Ident)>,
    /// The oids of the relation, first, and of all that is read with it: what it shows, and what policies look at.
    pub relations: Vec<u32>,
    /// Rows may be there that somebody does not see, or see and may not change. False: a table that shows them to everybody.
    pub hides: bool,
    /// A view with the `dl_expected_ts` of the protected table below it, to which PostgreSQL passes on what is written.
    pub shows_version: bool,
    /// Changes of its rows are captured, as events of its first relation.
    pub events: bool,
    /// The fields that flag a row as deleted, of the table or of one below the view: a PUT that does not name them leaves
    /// them as they are, or it would bring the row back.
    pub flags: Vec<usize>,
    /// PostgreSQL passes a DELETE on to the one table below the view, whose rows are never deleted.
    pub keeps_rows: bool,
}

/// Whether and how each kind of write of its rows is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteSupport {
    pub insert: WriteMethod,
    pub update: WriteMethod,
    pub delete: WriteMethod,
}

/// What performs a write of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteMethod {
    /// PostgreSQL, in a table, or in the one below a view.
    #[default]
    Direct,
    /// It may pass rows over: an INSTEAD OF trigger of the view, or of one below it, for which no row is locked before it
    /// runs; or a table, by itself, has BEFORE triggers for each row.
    Trigger,
    /// PostgreSQL refuses it.
    Unsupported,
}

/// What an error of PostgreSQL may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    pub name: String,
    /// Positions in the entity's `fields` of all columns that it is about. Never empty.
    pub fields: Vec<usize>,
}

impl Entity {
    /// The field that holds the version of a row, where every change must name it.
    #[must_use]
    pub fn version(&self) -> Option<usize> {
        (self.protection.is_some() || self.shows_version).then(|| self.position(EXPECTED_TS)).flatten()
    }

    /// What callers call the field with the version: a manifest may give the column another name.
    #[must_use]
    pub fn version_name(&self) -> &str {
        self.version().map_or(EXPECTED_TS, |at| self.fields[at].name.as_str())
    }

    /// The version, where what a read shows changes with it alone: a view may work out fields from whatever it likes.
    #[must_use]
    pub fn tag(&self) -> Option<usize> {
        self.version().filter(|_| self.fields.iter().all(|field| !self.shows_version || field.updatable))
    }

    /// Whoever makes a second row with one key is told with an error, which undoes what triggers did. ON CONFLICT looks only
    /// after BEFORE triggers, so that it cannot tell a row that they have passed over.
    #[must_use]
    pub fn raises_for_a_second(&self) -> bool {
        !self.key_is_unique || self.write_support.insert == WriteMethod::Trigger
    }

    /// The field whose `true` takes a row out of reads.
    #[must_use]
    pub fn hidden_by(&self) -> Option<usize> {
        self.hide_soft_deleted.as_ref().and_then(|column| self.position(column))
    }

    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.column.as_str() == column)
    }
}

/// Whether an entity is served over GraphQL, and what it is called there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphQlNames {
    /// `None`: as over REST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Of one row: its type, as it is. `None`: the entity's name with a capital first letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub singular: Option<String>,
    /// Of the list of rows. `None`: the entity's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plural: Option<String>,
}

impl GraphQlNames {
    fn is_default(&self) -> bool {
        *self == GraphQlNames::default()
    }
}

/// Every update says which version of the row it knows ([`EXPECTED_TS`]), and no row is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protection {
    /// The boolean column that marks a row as deleted, by its name in the database.
    pub soft_delete: String,
}

/// The column of a protected table that holds the version of a row.
pub const EXPECTED_TS: &str = "dl_expected_ts";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntityKind {
    Table,
    View,
    /// A function or a procedure.
    Procedure,
}

/// One column under its exposed name.
#[derive(Debug, Clone)]
pub struct Field {
    /// The name in requests and answers.
    pub name: String,
    pub column: Ident,
    pub ty: FieldType,
    /// False for NOT NULL columns; always true for columns of a view.
    pub nullable: bool,
    /// False: who writes a NULL is refused, by the column or by a domain, of views too. (A domain keeps a NULL that comes out
    /// of a table from no result: `nullable` is about those.)
    pub takes_null: bool,
    /// Somebody holds a right on it; else it is in nobody's [`Scope`].
    pub granted: bool,
    pub filling: Filling,
    /// The type below domains with the modifier to which it rounds, cuts or fills up what is stored; `None`: it keeps all.
    pub rounds_to: Option<BuiltIn>,
    /// Of an enum, or a domain over one, what it has, in its order; else empty. Shown to who may read the field.
    pub labels: Vec<String>,
    /// The columns of the table from which it is generated; empty where it is not.
    pub made_of: Vec<Ident>,
    /// The view works it out, or it may: that may raise for a row that the view hides.
    pub is_worked_out: bool,
    /// A new row may be given a value: always but in a view that works the field out.
    pub insertable: bool,
    /// Likewise of a row that is there.
    pub updatable: bool,
}

/// Who gives a column its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filling {
    /// Only who writes the row.
    #[default]
    Caller,
    /// PostgreSQL, where nobody does: a default.
    Default,
    /// Likewise in a new row of a view, if the table below it has a default: the view itself has none.
    Below,
    /// Likewise, by drawing from a sequence: an identity, serial.
    Sequence,
    /// PostgreSQL alone: a generated column, an identity that is always generated.
    Database,
}

/// A column's type as `pg_type` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldType {
    pub oid: u32,
    /// As `format_type` writes it, for messages: `integer`, `numeric(12,2)`, `app.mood`.
    pub name: String,
    pub kind: TypeKind,
    /// Below domains: the oid that decides how values look (equal to `oid` for all but domains).
    pub base_oid: u32,
    pub operators: Operators,
    /// What an array or a composite is made of; `None` for all else, and for what nests deeper than
    /// [`MAX_NESTING`].
    pub nested: Option<Arc<Nested>>,
}

/// Where the operators `= <> < <= > >=` stand that compare two values of a type in the order that `order by` uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operators {
    /// In `pg_catalog`, where every statement of ours looks.
    BuiltIn,
    /// In this schema, as those of citext: they are named with it, or those of text would be found, silently.
    In(Ident),
    /// Nowhere, or where a key may not look. Such a type is neither compared nor sorted by.
    Nowhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeKind {
    Base,
    Enum,
    Array,
    Composite,
    Range,
    /// Pseudo-types and whatever else a later PostgreSQL brings.
    Other,
}
