//! `revoke KEYID`: ends an API key wherever it is, with nothing but the databases running.

use std::fmt;
use std::time::Duration;

use clap::Args;
use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_pg::control::installation::{DataplaneInstallation, InstallationError, open_existing};
use rowgate_pg::control::servers::ServerList;
use rowgate_pg::control::tenants::{self, TenantRow};
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::keys;
use tokio::time::timeout;

use crate::config::{ControlFlags, ControlSettings};

/// How long one tenant's database may take.
const TENANT_TIMEOUT: Duration = Duration::from_secs(10);

/// The flags of `revoke`.
#[derive(Debug, Clone, Args)]
pub struct RevokeFlags {
    /// The key's id: status.apiKeyId of its ApiKey, and `key` in log lines [example: 01k9zv5n2m8q4r6t0w3y7b1d5f]
    #[arg(value_name = "KEYID")]
    pub key_id: String,
    #[command(flatten)]
    pub control: ControlFlags,
}

/// A key that is revoked now. It may have been before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    pub key: Ulid,
    pub tenant: TenantSlug,
    /// When it was revoked first (RFC 3339).
    pub since: String,
}

/// Why no key was revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    // The argument may be the key itself, so it is not repeated.
    #[error(
        "the argument is not a key id: an id has 26 lower-case letters and digits; status.apiKeyId of the ApiKey holds it"
    )]
    NotAKeyId,
    #[error(
        "none of the {n_tenants} tenants has a key {key}; status.apiKeyId of the ApiKey holds its id, and --control \
         says which installation is searched"
    )]
    Unknown { key: Ulid, n_tenants: usize },
    #[error(
        "key {key} was not revoked: no tenant that answered has it, and these did not answer: {}; retry when they do",
        silent.join("; ")
    )]
    Silent { key: Ulid, silent: Vec<String> },
    #[error(transparent)]
    Installation(#[from] InstallationError),
    #[error("cannot list the tenants of the control database: {0}")]
    Tenants(#[source] PgError),
}

/// Looks into one tenant after the other. One that does not answer does not hide the key of another.
pub async fn run(key_id: &str, control: &ControlSettings) -> Result<Revoked, RevokeError> {
    let text = key_id.strip_prefix("key_").unwrap_or(key_id);
    let key: Ulid = text.parse().map_err(|_| RevokeError::NotAKeyId)?;
    let (installation, mut conn) = open_existing(control.endpoint.clone(), &control.root).await?;
    let rows = tenants::list(&mut conn).await.map_err(RevokeError::Tenants)?;
    let places = ServerList::read(&mut conn).await.map_err(RevokeError::Tenants)?;
    let (n_tenants, mut silent) = (rows.len(), Vec::new());
    for row in rows {
        match timeout(TENANT_TIMEOUT, revoke_in(&installation, &places, &row, &key)).await {
            Ok(Ok(Some(since))) => return Ok(Revoked { key, tenant: row.slug, since }),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => silent.push(format!("{} ({error})", row.slug)),
            Err(_) => silent.push(format!("{} (no answer within {} s)", row.slug, TENANT_TIMEOUT.as_secs())),
        }
    }
    match silent.is_empty() {
        true => Err(RevokeError::Unknown { key, n_tenants }),
        false => Err(RevokeError::Silent { key, silent }),
    }
}

async fn revoke_in(
    installation: &DataplaneInstallation,
    places: &ServerList,
    row: &TenantRow,
    key: &Ulid,
) -> Result<Option<String>, PgError> {
    let cluster = places.of(installation, row.cluster.as_deref())?;
    let login = installation.lookups(&row.id, cluster, &row.database);
    keys::revoke(&mut login.connect().await?.connection, key).await
}

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "key {} of tenant {} was revoked at {}: no request that starts from now on succeeds with the key or with one of its tokens",
            self.key, self.tenant, self.since
        )
    }
}
