//! What PostgreSQL holds now, as far as Rowgate manages it: the right-hand side of every plan.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rowgate_core::name::Ulid;
use rowgate_sql::catalog::{EntityRecord, Limits, PermissionRecord, RelationshipRecord};

use crate::introspect::declared::Declared;

/// Privileges by grantee (`public` for PUBLIC): `SELECT`, or `SELECT*` where it may be granted on. The owner's own
/// entries are left out; a NULL acl stands here as PostgreSQL's default for the object.
pub type Acl = BTreeMap<String, BTreeSet<String>>;

/// `schema`, `name`.
pub type QName = (String, String);

/// Cluster-wide objects of one tenant, and `datalake_user`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The tenant's login roles, `datalake_user`, and every `key_...` and `set_...` role that the tenant's keys
    /// login administers.
    pub roles: BTreeMap<String, Role>,
    /// Every membership in which one of those roles is the role or the member.
    pub memberships: BTreeSet<Membership>,
    /// The tenant's database; `None`: it does not exist.
    pub database: Option<Database>,
    /// Whether a superuser has made the template of tenants' databases.
    pub has_template: bool,
    /// Whether a data plane lives that looks up as the login of requests.
    pub has_older_replicas: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Role {
    pub login: bool,
    pub superuser: bool,
    pub create_role: bool,
    pub create_db: bool,
    pub inherit: bool,
    pub replication: bool,
    pub bypass_rls: bool,
    pub connection_limit: i32,
    /// Until when its password lets it in, in microseconds of the Unix epoch; `None`: for ever.
    pub valid_until: Option<i64>,
    /// By the clock of PostgreSQL.
    pub is_expired: bool,
    /// `pg_db_role_setting` rows of the role, as `name=value`, database-wide ones with `database/` before.
    pub settings: BTreeSet<String>,
    /// Of a key's role, and of a permission set's without keys: what keeps it from being dropped and no plan takes away, such
    /// as something that belongs to it or a right in another tenant's database. Of a tenant without a database: the same of
    /// its logins.
    pub held: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Membership {
    pub role: String,
    pub member: String,
    pub grantor: String,
    pub admin: bool,
    pub inherit: bool,
    pub set: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    pub oid: u32,
    pub owner: String,
    pub owner_is_superuser: bool,
    /// Whether the login that asked may make others members of the owner.
    pub grants_owner: bool,
    pub acl: Acl,
}

/// What stands inside a tenant's database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantDb {
    /// `None`: schema `dl` is not there yet, and everything below `relations` and `schemas` is empty.
    pub state: Option<State>,
    pub keys: BTreeMap<Ulid, Key>,
    pub claims: BTreeMap<(String, String), String>,
    pub entities: BTreeMap<String, EntityRecord>,
    /// By entity and name.
    pub relationships: BTreeMap<(String, String), RelationshipRecord>,
    /// By role.
    pub permission_sets: BTreeMap<String, PermissionSet>,
    /// By kind and name: the hash of what was asked for, and what PostgreSQL gave back.
    pub applied: BTreeMap<(String, String), Applied>,
    /// All but the system's (`pg_*`, `information_schema`); `dl` and `public` included.
    pub schemas: BTreeMap<String, Schema>,
    /// Tables, partitioned tables, views, materialized views, foreign tables and sequences in those schemas, members
    /// of extensions left out.
    pub relations: BTreeMap<QName, Relation>,
    /// Functions and procedures in those schemas by `regprocedure` text, members of extensions left out.
    pub routines: BTreeMap<String, Routine>,
    /// Names of those that are members of extensions.
    pub extension_routines: BTreeSet<QName>,
    /// Names of tables, views and the like that are members of extensions.
    pub extension_relations: BTreeSet<QName>,
    /// The owner's default privileges (`pg_default_acl` without a schema), by object type (`r S f T n`), owner's
    /// entries left out; no entry: PostgreSQL's own default.
    pub default_acl: BTreeMap<char, Acl>,
    /// The same within one schema; these add to the former and never take away.
    pub default_acl_in: BTreeMap<(String, char), Acl>,
    /// The lines that take from PUBLIC what shows it the statements of all databases of the server.
    pub shown_statements: Vec<String>,
    /// What PUBLIC may execute or read of what roles and policies do not confine; of an extension, one.
    pub unconfined: Vec<Unconfined>,
    /// What `to_json` and its kin call for whoever calls them: PostgreSQL asks for no right to execute a cast to `json`.
    pub json_casts: Vec<Unconfined>,
    /// What PUBLIC may do in `pg_catalog` that nothing needs, as [`hardening`](crate::hardening) gives it.
    pub public_rights: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub generation: i64,
    pub epoch: i64,
    pub bootstrapped: bool,
    pub limits: Limits,
}

/// A row of `dl.keys` with its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub role: String,
    pub set_role: Option<String>,
    /// RFC 3339, UTC.
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
    pub resolved: serde_json::Value,
    /// A digest of the annotation `rowgate.dev/rotate` for which the key's last secret was made.
    pub rotated_for: Option<String>,
    /// In the order in which they were made.
    pub secrets: Vec<KeySecret>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySecret {
    pub id: Ulid,
    pub finder: String,
    pub digest: Vec<u8>,
    pub created_at: Timestamp,
    /// The end of the overlap, once another one is current.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// The secret after which this one became current by a rotation.
    pub replaces: Option<Ulid>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionSet {
    pub hash: String,
    pub permissions: Vec<PermissionRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub hash: String,
    pub recorded: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub owner: String,
    pub acl: Acl,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub oid: u32,
    pub kind: RelationKind,
    pub owner: String,
    pub rls_enabled: bool,
    pub rls_forced: bool,
    pub acl: Acl,
    /// In `attnum` order, dropped columns left out.
    pub columns: Vec<Column>,
    pub policies: BTreeMap<String, Policy>,
    /// Column names of the primary key, in key order; empty: none.
    pub primary_key: Vec<String>,
    /// The columns of each unique index that holds for all rows, in the order of the index; the primary key is one.
    pub unique: BTreeSet<Vec<String>>,
    /// The columns of each index over columns alone that holds for all rows, in its order.
    pub indexes: BTreeSet<Vec<String>>,
    pub foreign_keys: BTreeSet<ForeignKey>,
    /// Columns that lead an index, with the comparisons that no index of theirs serves under a policy, because they are
    /// not leakproof.
    pub leaky: BTreeMap<String, String>,
    /// The version of its rules, another one after each change of them; a view has one, which is what it reads.
    pub rule: Option<i64>,
    /// Views: the relations that the view's rule reads, directly.
    pub reads: BTreeSet<QName>,
    /// Routines (outside `pg_catalog` and extensions) that column defaults, generated columns, checks, indexes,
    /// policies that hold for keys and view rules of this relation call, by `regprocedure` text.
    pub routines: BTreeSet<String>,
    /// Sequences owned by a column of this relation (`serial`, identity), or named in a column's default.
    pub sequences: BTreeSet<QName>,
    /// Those that Concurrency Protection made, or that run after its own (`ddl::protection`), by name.
    pub triggers: BTreeMap<String, Trigger>,
    /// SECURITY DEFINER functions outside schema `dl` that its triggers run, by `regprocedure` text.
    pub definers: BTreeSet<String>,
    /// What it inherits from: for a partition the partitioned table.
    pub parents: BTreeSet<QName>,
    pub is_partition: bool,
    /// A subscription of logical replication writes it.
    pub is_replicated: bool,
}

/// Its columns equal those of a row of another table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignKey {
    pub columns: Vec<String>,
    pub table: QName,
    pub table_columns: Vec<String>,
}

/// A trigger; its name says the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// `tgtype`.
    pub kind: i16,
    /// Of UPDATE OF, sorted.
    pub columns: Vec<String>,
    /// `regprocedure` text.
    pub function: String,
    /// `tgargs` in hexadecimal digits: each argument and a zero byte.
    pub arguments: String,
    /// Whether it has a WHEN.
    pub conditional: bool,
    /// `tgenabled`: `A` for one that always fires.
    pub enabled: String,
    /// It came with the partitioned table's, and goes with it.
    pub cloned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    Table,
    PartitionedTable,
    View,
    MaterializedView,
    ForeignTable,
    Sequence,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub type_oid: u32,
    /// `format_type`, for casts and messages.
    pub type_name: String,
    /// The type under a domain.
    pub domain_over: Option<String>,
    /// One that is not the default, by its oid: PostgreSQL compares no column with another that has a different one.
    pub collation: Option<u32>,
    pub not_null: bool,
    pub generated: bool,
    /// Generated at each read, and not stored.
    pub is_virtual: bool,
    /// `GENERATED ALWAYS AS IDENTITY`.
    pub identity_always: bool,
    pub acl: Acl,
    /// Of `dl_expected_ts` alone: its default as PostgreSQL prints it.
    pub default: Option<String>,
    /// Of `dl_expected_ts`, and of columns that Rowgate added to tables of an application: what would have to be dropped with it, as
    /// PostgreSQL describes it.
    pub needed_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub permissive: bool,
    /// `SELECT`, `INSERT`, `UPDATE`, `DELETE` or `ALL`.
    pub command: &'static str,
    /// `public` for PUBLIC.
    pub roles: BTreeSet<String>,
    /// `pg_get_expr`.
    pub using: Option<String>,
    pub check: Option<String>,
    /// The other relations that its expressions read, each with the columns they name; none: its rows are only counted.
    pub reads: BTreeMap<QName, BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routine {
    pub owner: String,
    pub declared: Declared,
    /// Of the functions of Concurrency Protection alone: `pg_get_functiondef`.
    pub definition: Option<String>,
    pub acl: Acl,
}

/// What PUBLIC may execute or read although no policy filters it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconfined {
    /// `execute app.total() (SECURITY DEFINER)`, `read app.totals`
    pub right: String,
    /// The statement that takes it from PUBLIC.
    pub line: String,
}
