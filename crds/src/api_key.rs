//! ApiKey: one key of a tenant. Its string is written into a Secret, never into the resource.

pub(crate) mod claims;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permission::Permission;
use crate::span::{Span, period_schema};
use crate::status::{ResolvedPermission, default_observed_generation};
use claims::Claims;

/// An ApiKey of a Tenant. The key string is written into a Secret with the entries `apiKey`, `tenant` and `role`.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "rowgate.dev",
    version = "v1alpha1",
    kind = "ApiKey",
    plural = "apikeys",
    shortname = "rgk",
    category = "rowgate",
    namespaced,
    status = "ApiKeyStatus",
    derive = "PartialEq",
    crates(kube_core = "::kube_core"),
    doc = "A key to one Tenant's API. Its string is written into a Secret with the entries apiKey, tenant and role; deleting the object revokes it.",
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name"),
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
    printcolumn(name = "Role", type_ = "string", json_path = ".status.role", priority = 1),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName"),
    printcolumn(name = "Expires", type_ = "date", json_path = ".status.expiresAt"),
    printcolumn(name = "Revoked", type_ = "date", json_path = ".status.revokedAt"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.claims) || has(self.scope)")
        .message("claims need a scope: all unscoped keys share one role; give scope: {sameAs: shared} to keep the shared rights"),
    validation = Rule::new("!oldSelf.revoked || self.revoked")
        .message("revoked cannot be taken back; create a new ApiKey"),
)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeySpec {
    /// The Tenant of the key, in this namespace. Cannot be changed.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("tenantRef cannot be changed: the key belongs to that tenant's database; create a new ApiKey"))]
    pub tenant_ref: TenantRef,
    /// What the key may do. With it, the key has its own database role. Default: an unscoped key, which may do what the
    /// Tenant's `shared` says and shares one database role, `datalake_user`, with every other unscoped key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Values that policies read with `dl.claim('name')` when this key asks. Only with `scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::permission::claims_schema")]
    pub claims: Option<Claims>,
    /// When the key stops working, RFC 3339 such as `2030-01-01T00:00:00Z`. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// `true` revokes the key immediately and permanently.
    #[serde(default)]
    pub revoked: bool,
    /// The Secret, in this namespace, that the key string is written into. Default: the object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("secretName consists of lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"))]
    pub secret_name: Option<String>,
    /// Issues a new secret for the same key at regular intervals. The Secret holds the newest; read it again within
    /// `overlap`.
    /// The annotation `rowgate.dev/rotate` does it once, at each new value, with an overlap of an hour if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// A Tenant in this namespace.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantRef {
    /// The Tenant's object name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What a key with a role of its own may do: exactly one of `permissions` and `sameAs`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("has(self.permissions) != has(self.sameAs)")
        .message("scope takes exactly one of permissions and sameAs"),
)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// Entries for one entity add up, action by action. What is not listed is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000))]
    #[x_kube(validation = Rule::new("self.all(p, !p.actions.exists(a, a in ['read', 'create', 'update']) || (has(p.fields) && has(p.fields.include)))")
        .message("in a scope, read, create and update need fields.include: names, or ['*'] for every column present now"))]
    pub permissions: Vec<Permission>,
    /// `shared`: the Tenant's shared permissions, under a role and claims of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<SameAs>,
}

#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SameAs {
    Shared,
}

/// Issues a new secret for the same key again and again. Both are a number with `s`, `m`, `h` or `d`, such as `30d`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("int(self.overlap.substring(0, size(self.overlap) - 1)) * (self.overlap.endsWith('d') ? 86400 : self.overlap.endsWith('h') ? 3600 : self.overlap.endsWith('m') ? 60 : 1) <= int(self.every.substring(0, size(self.every) - 1)) * (self.every.endsWith('d') ? 86400 : self.every.endsWith('h') ? 3600 : self.every.endsWith('m') ? 60 : 1)")
        .message("overlap is longer than every, so more than two secrets would work at once; make overlap shorter or every longer"),
)]
pub struct Rotation {
    /// The age at which a secret is replaced.
    #[schemars(schema_with = "period_schema")]
    pub every: Span,
    /// How long the old secret keeps working after a new one is issued.
    #[schemars(schema_with = "period_schema")]
    pub overlap: Span,
}

/// The state of an ApiKey. Every field may be absent until the first pass has ended.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyStatus {
    /// The `metadata.generation` that this status describes; -1: none yet.
    #[serde(default = "default_observed_generation")]
    pub observed_generation: i64,
    /// `Ready`: the key works on every live replica. `Reconciling`: work is in progress. `Stalled`: work cannot continue until
    /// a person changes what the message names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The key's identifier, for logs and `rowgate-dataplane revoke`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_id: Option<String>,
    /// The database role of the key: `datalake_user`, or `key_<apiKeyId>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The Secret that holds the key string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// When the key stops working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// When the key was revoked, in whatever way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Time>,
    /// When the key or one of its tokens was last used; may be up to three minutes too early, and is never too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Time>,
    /// Which secret is current: the 12 characters after `dlk_` of the key string in the Secret. They are not secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_secret: Option<String>,
    /// When the secret before the current one stops working; absent: only the current one works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret_expires_at: Option<Time>,
    /// When the current secret will be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_rotation: Option<Time>,
    /// What the scope grants: the columns present when this generation was applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4000))]
    pub permissions: Vec<ResolvedPermission>,
    /// Warnings: what works but may be unexpected, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub warnings: Vec<String>,
    /// With the annotation `rowgate.dev/mode: Observe`: the statements that would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub plan: Vec<String>,
}

impl ApiKey {
    /// The Secret's name: `spec.secretName`, else the object's name.
    #[must_use]
    pub fn secret_name(&self) -> &str {
        self.spec.secret_name.as_deref().or(self.metadata.name.as_deref()).unwrap_or_default()
    }
}
