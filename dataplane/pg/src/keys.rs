//! API keys in a tenant's database, as the data plane finds them and anybody in need revokes them.

use rowgate_core::name::Ulid;
use rowgate_core::secret::KeyDigest;
use sqlx::PgConnection;

use crate::failure::PgError;

/// A live key. Remembering it is fine; only the key statement of each batch is an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub id: Ulid,
    /// What the key is in the database: `datalake_user` or `key_<id>`.
    pub role: String,
    /// Who holds its grants; `None`: nothing granted (yet).
    pub set_role: Option<String>,
    /// The tenant's generation when this was read.
    pub generation: i64,
}

/// The key whose secret has this digest, neither revoked nor expired. As `t<id>_auth`.
pub async fn find(conn: &mut PgConnection, digest: &KeyDigest) -> Result<Option<Found>, PgError> {
    let row: Option<(String, String, Option<String>, i64)> = sqlx::query_as(
        "select k.id, k.role::text, k.set_role::text, (select generation from dl.state) \
         from dl.key_secrets s join dl.keys k on k.id = s.key_id \
         where s.digest = $1 and s.revoked_at is null and (s.expires_at is null or s.expires_at > clock_timestamp()) \
           and k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp())",
    )
    .bind(&digest.0[..])
    .fetch_optional(conn)
    .await?;
    let Some((id, role, set_role, generation)) = row else { return Ok(None) };
    let id = id.parse().map_err(|_| PgError::unexpected("dl.keys holds an id that is no ULID"))?;
    Ok(Some(Found { id, role, set_role, generation }))
}

/// Revokes for good, and says when it was revoked first (RFC 3339); `None`: there is no such key. From the COMMIT on
/// no batch of the key succeeds. As `t<id>_auth` or the owner; the writes of reconciling are `rowgate_sql::ddl::records`.
pub async fn revoke(conn: &mut PgConnection, id: &Ulid) -> Result<Option<String>, PgError> {
    let revoked = sqlx::query_scalar(
        "select to_char(dl.revoke($1) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
    );
    Ok(revoked.bind(id.as_str()).fetch_one(conn).await?)
}
