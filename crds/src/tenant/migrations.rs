//! The login of migration tools.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::KubeSchema;
use serde::{Deserialize, Serialize};

/// The login of migration tools: it may do in the tenant's database what the owner of the tables may, and nothing elsewhere.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct Migrations {
    /// The Secret, in this namespace, that address and password are written into: `url`, `jdbcUrl`, `host`, `port`, `database`, `user`, `password`.
    /// The annotation `rowgate.dev/rotate` on the Tenant gives the login another password at each new value.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("secretName consists of lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"))]
    pub secret_name: String,
    /// When the login is closed, RFC 3339 such as `2030-01-01T00:00:00Z`. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}
