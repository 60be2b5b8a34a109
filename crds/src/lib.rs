//! The custom resources of Rowgate, group `rowgate.dev`, version `v1alpha1`: the contract with the cluster user.

#![expect(
    unreachable_pub,
    reason = "KubeSchema copies each struct, its visibility included, into a function"
)]
#![expect(clippy::duplicated_attributes, reason = "several printer columns have the same type")]

mod admit;
mod api_key;
mod definition;
mod permission;
mod relationship;
mod span;
mod status;
mod tenant;
mod webhook_subscription;

pub use admit::{FieldError, Kind, admit};
pub use api_key::claims::Claims;
pub use api_key::{ApiKey, ApiKeySpec, ApiKeyStatus, Rotation, SameAs, Scope, TenantRef};
pub use definition::{definition, yaml};
pub use permission::{Action, FieldSet, Permission};
pub use relationship::{Cardinality, End, Relationship, RelationshipSpec, RelationshipStatus, Through};
pub use span::{Span, SpanError};
pub use status::{ConditionType, Reason, ResolvedPermission, condition};
pub use tenant::bootstrap::{Bootstrap, ConfigMapKeyRef};
pub use tenant::entity::{ConcurrencyProtection, Entity, EntityKind, GraphQl, Rest, Source, Writers};
pub use tenant::row_level_security::{Equals, Policy, PolicyAction, Rls, RowLevelSecurity};
pub use tenant::{
    Cors, Database, DeletionPolicy, Endpoints, Limits, SecretKeyRef, Shared, Tenant, TenantGraphQl,
    TenantSpec, TenantStatus, Webhooks,
};
pub use webhook_subscription::{
    Batch, EventOp, Filter, OwnerRef, Retry, WebhookSubscription, WebhookSubscriptionSpec,
    WebhookSubscriptionStatus,
};

/// Group and version of every kind.
pub const API_VERSION: &str = "rowgate.dev/v1alpha1";

/// Annotation: while `"true"`, the object is left as it is.
pub const PAUSED: &str = "rowgate.dev/paused";
/// Annotation: each new value makes one pass over the object at once.
pub const RECONCILE_AT: &str = "rowgate.dev/reconcile-at";
/// Annotation of a Tenant: `Observe` writes the plan's statements to status and executes nothing.
pub const MODE: &str = "rowgate.dev/mode";
/// Annotation of an ApiKey: each new value replaces its secret once.
pub const ROTATE: &str = "rowgate.dev/rotate";
/// Annotation: `"true"` frees the finalizer of an object whose database is gone.
pub const FORCE_RELEASE: &str = "rowgate.dev/force-release";
/// Annotation of a WebhookSubscription: each new value sends past events again, once.
pub const REPLAY: &str = "rowgate.dev/replay";
/// Label: `api` on a WebhookSubscription that shows what was made through the API, which stays its owner.
pub const ORIGIN: &str = "rowgate.dev/origin";
