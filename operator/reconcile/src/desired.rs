//! What the resources of one tenant ask for, in plain values: the left-hand side of every plan.
//!
//! `convert` makes the values from resources; `annotations` reads the switches beside a spec.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use rowgate_core::name::{EntityName, TenantSlug, Ulid};
use rowgate_core::role::DbRole;
use rowgate_crds::{ApiKey, Relationship, Tenant};
use rowgate_pg::control::installation::Installation;
use rowgate_sql::catalog::{Action, EntityKind, GraphQlNames, Limits, Protection};
use rowgate_sql::ddl::protection::Writers;
use rowgate_sql::ddl::subscriptions::Settings;
use rowgate_sql::text::Ident;

pub(crate) mod annotations;
pub(crate) mod convert;

/// One Tenant with its ApiKeys.
#[derive(Debug, Clone)]
pub struct Desired {
    pub tenant: Ulid,
    pub slug: TenantSlug,
    pub database: Ident,
    /// The owner of the tables, and of the database: `t<id>_owner`, or in one that is adopted the application's role.
    pub owner: String,
    /// The database and its tables were there before, and others go on using them (`database.create: false`).
    pub is_adopted: bool,
    /// `metadata.generation` of the Tenant.
    pub generation: i64,
    pub limits: Limits,
    /// What `datalake_user`, and every `sameAs: shared` key, may do.
    pub shared: Vec<Permission>,
    pub shared_claims: BTreeMap<String, String>,
    pub entities: Vec<EntitySpec>,
    pub keys: Vec<KeySpec>,
    pub relationships: Vec<RelationshipSpec>,
    /// Uids of Relationships that are there and cannot be read: what is served of them stays.
    pub unread_relationships: BTreeSet<String>,
    /// SCRAM verifiers of the tenant's logins, by role name.
    pub verifiers: BTreeMap<String, String>,
    /// The login of migration tools; `None`: there is none, or it is closed.
    pub migrations: Option<MigrationsSpec>,
}

/// The login of migration tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationsSpec {
    pub secret_name: String,
    /// Of its password.
    pub generation: u32,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct EntitySpec {
    pub name: EntityName,
    pub kind: EntityKind,
    pub schema: Ident,
    pub object: Ident,
    /// Exposed names; empty: the primary key.
    pub key_fields: Vec<String>,
    /// Column name to exposed name; of a routine, names of parameters and of what it gives.
    pub mappings: BTreeMap<String, String>,
    pub rest: bool,
    pub graphql: GraphQlNames,
    pub protection: Option<Protection>,
    /// Whom `protection` holds.
    pub writers: Writers,
    pub hide_soft_deleted: bool,
    /// Changes of its rows are captured as events.
    pub events: bool,
    /// Its routine may be SECURITY DEFINER, and a view may call such functions.
    pub allow_definer: bool,
    pub security: Security,
    /// Policies of an application hold for its own roles alone.
    pub replaces_policies: bool,
}

/// `rowLevelSecurity` of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// Left out: enabled, forced, no policy, so no row.
    LeftOut,
    /// Enabled, forced, one policy `true`.
    Open,
    /// Enabled, forced, the policies that are there.
    Existing,
    Policies(Vec<PolicySpec>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySpec {
    pub name: Ident,
    /// Never empty.
    pub actions: Vec<Action>,
    /// Names of ApiKey resources, or `datalake_user`; `None`: every key.
    pub roles: Option<Vec<String>>,
    pub rows: RowsSpec,
    pub check: Option<String>,
    pub restrictive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowsSpec {
    /// An exposed field equals a claim of the caller.
    Claim {
        field: String,
        claim: String,
    },
    Literal {
        field: String,
        value: String,
    },
    Expression(String),
}

/// One entry of `permissions[]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Permission {
    pub entity: EntityName,
    pub actions: Vec<Action>,
    /// Exposed names, or `*`; `None` (shared permissions only): `*`.
    pub include: Option<Vec<String>>,
    pub exclude: Vec<String>,
}

/// One ApiKey.
#[derive(Debug, Clone)]
pub struct KeySpec {
    pub id: Ulid,
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    pub scope: Scope,
    pub claims: BTreeMap<String, String>,
    /// RFC 3339.
    pub expires_at: Option<String>,
    pub revoked: bool,
    /// The secret that the key's Secret holds now; `None`: none is to be made (revoked).
    pub secret: Option<SecretSpec>,
    pub rotation: Option<RotationSpec>,
    /// A digest of the annotation `rowgate.dev/rotate`.
    pub rotate: Option<String>,
    /// SCRAM verifier of `key_<id>`.
    pub verifier: String,
}

/// One Relationship.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationshipSpec {
    pub uid: String,
    /// Of the object, for messages.
    pub object: String,
    pub generation: i64,
    /// Beside the fields of `from`.
    pub name: String,
    pub from: EndSpec,
    pub to: EndSpec,
    pub through: Option<ThroughSpec>,
    /// A row leads to one row or none, and not to a list.
    pub to_one: bool,
    pub assume_unique: bool,
    /// Beside the fields of `to`.
    pub inverse: Option<String>,
}

/// One WebhookSubscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionSpec {
    pub uid: String,
    /// Of the object, for messages.
    pub object: String,
    /// The name of the ApiKey in whose name it delivers.
    pub owner: String,
    /// All but the owner's id, which the database knows.
    pub settings: Settings,
    /// The annotation `rowgate.dev/replay`.
    pub replay: Option<String>,
}

/// One end of a relationship.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndSpec {
    pub entity: String,
    /// Exposed names; empty: those of the foreign key, or with a linking table the key.
    pub fields: Vec<String>,
}

/// The table that links both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThroughSpec {
    pub schema: Ident,
    pub object: Ident,
    /// Columns; empty: those of its foreign key to the table of `from`.
    pub from: Vec<String>,
    /// The same for `to`.
    pub to: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpec {
    /// For the row, if it is not there yet.
    pub id: Ulid,
    pub finder: String,
    pub digest: [u8; 32],
    /// By rotation: the key's secret that goes on working beside this one. `None`: every other dies at once.
    pub replaces: Option<Ulid>,
}

/// `rotation` of an ApiKey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotationSpec {
    pub every: Duration,
    /// For how long the secret before works on.
    pub overlap: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// No scope: the key is `datalake_user`.
    Unscoped,
    SameAsShared,
    Permissions(Vec<Permission>),
}

/// What a Tenant, its ApiKeys and its Relationships say: each key under the identifier that it has, or is to have, and with the secret
/// that its Secret holds. The error says what to change in the Tenant.
pub fn from_resources<'a>(
    tenant: &Tenant,
    (id, database): (&Ulid, &str),
    keys: impl IntoIterator<Item = (&'a ApiKey, Ulid, Option<SecretSpec>)>,
    relationships: impl IntoIterator<Item = &'a Relationship>,
    installation: &Installation,
) -> Result<Desired, String> {
    let mut desired = convert::tenant(tenant, id, database, installation)?;
    let keys = keys.into_iter().map(|(key, id, secret)| convert::key(key, id, secret, installation));
    desired.keys.extend(keys);
    desired.relationships.extend(relationships.into_iter().filter_map(convert::relationship));
    Ok(desired)
}

impl KeySpec {
    /// What the key is in the database.
    #[must_use]
    pub fn role(&self) -> DbRole {
        match self.scope {
            Scope::Unscoped => DbRole::shared(),
            Scope::SameAsShared | Scope::Permissions(_) => DbRole::for_key(&self.id),
        }
    }
}
