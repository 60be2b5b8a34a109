//! Conditions and their reasons: the same words in every kind's status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permission::Action;

/// The conditions that every kind has (kstatus reads them), and one of a single kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionType {
    /// Applied to the database and served by every live replica.
    Ready,
    /// Work is under way, or will be tried again.
    Reconciling,
    /// It cannot go on until a person changes something.
    Stalled,
    /// Of a Tenant whose row changes are captured: all of them are, and kept for their time.
    EventsHealthy,
    /// Of a Tenant: PUBLIC may execute no function of PostgreSQL in its database that runs a text as SQL.
    CatalogHardened,
    /// Of a WebhookSubscription only: events reach the receiver.
    Delivering,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Why a condition has its status. Part of the contract: reasons are added, never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Reason { $($(#[$doc])* $name,)+ }

        impl Reason {
            /// All of them.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// The word in status.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)+ }
            }
        }
    };
}

reasons! {
    /// Done and served.
    Served,
    /// Nothing is under way.
    Done,
    /// A pass is under way.
    Progressing,
    /// Applied, but not every live replica serves this generation yet.
    AwaitingReplicas,
    /// No data-plane replica is alive.
    NoReplica,
    /// Something failed and is retried.
    Retrying,
    /// The annotation `rowgate.dev/paused` is set.
    Paused,
    /// The annotation `rowgate.dev/mode` says `Observe`: the plan is shown, and nothing is changed.
    Observing,
    /// A field is set whose behaviour this version does not have.
    NotServedYet,
    /// The spec contradicts itself or the database.
    InvalidSpec,
    /// Another Tenant has this slug.
    SlugTaken,
    /// Another Tenant has this database, or entity, or policy.
    Taken,
    /// The retained database that a Tenant names does not exist, or that Tenant may not adopt it.
    NotRetained,
    /// The Tenant that an ApiKey names does not exist.
    TenantNotFound,
    /// The Tenant that an ApiKey names is not ready for keys.
    TenantNotReady,
    /// The database does not answer.
    DatabaseUnavailable,
    /// PostgreSQL or its pooler does not let the data plane log in as it has to: pg_hba.conf, the pooler or TLS must
    /// change.
    LoginRefused,
    /// The server that `database.serverSecretRef` leads to cannot be used, or is not the one that the database is on.
    ServerRefused,
    /// A ConfigMap or its key does not exist.
    ConfigMapNotFound,
    /// A bootstrap script failed.
    BootstrapFailed,
    /// A bootstrap script that ran was changed, moved or removed from the list.
    ScriptChanged,
    /// An entity's source does not exist.
    SourceNotFound,
    /// An entity's source is not what `kind` says, or cannot be exposed.
    SourceUnsupported,
    /// The source does not belong to the tenant's owner role.
    NotOwned,
    /// The operator's login lacks a right that a DBA can give it; the message has the line to run.
    RightsMissing,
    /// A permission, policy or key names an entity that does not exist.
    EntityNotFound,
    /// A permission, policy, mapping or key names a field that does not exist.
    FieldNotFound,
    /// A permission excludes key fields.
    KeyFieldExcluded,
    /// A table under a view is not an entity, or has a policy that a view would skip.
    ViewUnsafe,
    /// PostgreSQL refused a policy.
    PolicyRefused,
    /// A policy reads a table that a key, whose rows it judges, may not read.
    PolicyUnreadable,
    /// PostgreSQL refused a statement.
    StatementRefused,
    /// An extension shows other tenants' statements.
    ExtensionRefused,
    /// Too many distinct permission sets.
    TooManyPermissionSets,
    /// The Tenant has as many webhook subscriptions as its limits allow.
    TooManySubscriptions,
    /// The tenant's database holds more than Rowgate reads of it.
    TooLarge,
    /// A relationship leaves out its fields, and the tables have no foreign key between them, or several.
    ForeignKeyNotFound,
    /// No unique index proves that a relationship to one row leads to one row at most.
    NotUnique,
    /// The database was changed by hand and is being repaired.
    Drifted,
    /// The Secret could not be read or written.
    SecretUnavailable,
    /// The Secret holds no usable key string.
    SecretInvalid,
    /// The key is revoked.
    Revoked,
    /// The key has expired.
    Expired,
    /// Row changes are captured, and kept for 7 days.
    EventsKept,
    /// Row changes of a table are not captured.
    CaptureMissing,
    /// The log of row changes could not be emptied of days that are over.
    RetentionLate,
    /// Row changes are kept for fewer than 7 days, as the log has reached its limit of bytes.
    HistoryShortened,
    /// The log of row changes takes more than its limit of bytes.
    OutboxFull,
    /// Rights of PUBLIC that nothing needs are revoked.
    RightsRevoked,
    /// PUBLIC has rights that nothing needs, and that only a superuser can revoke.
    SuperuserNeeded,
    /// The object is being deleted, and what it stands for in the database is not gone yet.
    Deleting,
    /// The ApiKey that a WebhookSubscription names does not exist.
    OwnerNotFound,
    /// Events are delivered.
    Delivering,
    /// Nothing is delivered, as `spec.suspend` asks for.
    Suspended,
    /// Deliveries failed for good, so that nothing is delivered before a replay or a re-enabling.
    Disabled,
    /// The owner's key is revoked, expired or gone.
    OwnerInactive,
    /// The last delivery failed and is tried again.
    Failing,
}

impl Reason {
    /// Whether an object with this reason is `Stalled`: its message says what somebody has to change. What is tried
    /// again by
    /// itself, and what has ended, is not.
    #[must_use]
    pub fn stalls(self) -> bool {
        match self {
            Reason::NotServedYet
            | Reason::InvalidSpec
            | Reason::SlugTaken
            | Reason::Taken
            | Reason::NotRetained
            | Reason::TenantNotFound
            | Reason::ConfigMapNotFound
            | Reason::BootstrapFailed
            | Reason::ScriptChanged
            | Reason::SourceNotFound
            | Reason::SourceUnsupported
            | Reason::NotOwned
            | Reason::RightsMissing
            | Reason::EntityNotFound
            | Reason::FieldNotFound
            | Reason::KeyFieldExcluded
            | Reason::ViewUnsafe
            | Reason::PolicyRefused
            | Reason::PolicyUnreadable
            | Reason::StatementRefused
            | Reason::ExtensionRefused
            | Reason::TooManyPermissionSets
            | Reason::TooManySubscriptions
            | Reason::TooLarge
            | Reason::ForeignKeyNotFound
            | Reason::NotUnique
            | Reason::LoginRefused
            | Reason::ServerRefused
            | Reason::OwnerNotFound
            | Reason::SecretInvalid => true,
            Reason::Served
            | Reason::Done
            | Reason::Progressing
            | Reason::AwaitingReplicas
            | Reason::NoReplica
            | Reason::Retrying
            | Reason::Paused
            | Reason::Observing
            | Reason::TenantNotReady
            | Reason::DatabaseUnavailable
            | Reason::Drifted
            | Reason::EventsKept
            | Reason::RightsRevoked
            | Reason::SuperuserNeeded
            | Reason::CaptureMissing
            | Reason::RetentionLate
            | Reason::HistoryShortened
            | Reason::OutboxFull
            | Reason::SecretUnavailable
            | Reason::Revoked
            | Reason::Expired
            | Reason::Delivering
            | Reason::Suspended
            | Reason::Disabled
            | Reason::OwnerInactive
            | Reason::Failing
            | Reason::Deleting => false,
        }
    }
}

/// One condition; `since` is when `status` last changed.
#[must_use]
pub fn condition(
    kind: ConditionType,
    status: bool,
    reason: Reason,
    message: impl Into<String>,
    observed_generation: i64,
    since: Time,
) -> Condition {
    Condition {
        type_: format!("{kind:?}"),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.as_str().to_owned(),
        message: message.into(),
        observed_generation: Some(observed_generation),
        last_transition_time: since,
    }
}

/// What a permission grants on one entity.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResolvedPermission {
    /// The entity's name.
    pub entity: String,
    pub action: Action,
    /// Exposed names, sorted; none for delete and execute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1600))]
    pub fields: Vec<String>,
}

pub(crate) fn default_observed_generation() -> i64 {
    -1
}
