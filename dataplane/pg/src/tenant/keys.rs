//! API keys in a tenant's database, as the data plane finds them and anybody in need revokes them.

use std::sync::Arc;

use rowgate_core::name::Ulid;
use rowgate_core::secret::Credential;
use sqlx::{Connection as _, PgConnection};

use crate::control::tenants;
use crate::failure::PgError;
use crate::tenant::read_limits::{of, within};

/// The live keys for which a condition holds. (`infinity` less a time is `infinity` among numerics, of which the least is
/// taken before the cast; no time at all is NULL, which `least` passes over.)
macro_rules! look_up {
    ($condition:literal) => {
        concat!(
            "select id, role::text, set_role::text, secret, \
               floor(least(extract(epoch from expires_at) - extract(epoch from now()), 1000000000))::bigint as seconds_left, \
               (select generation from dl.state) \
             from dl.live where ",
            $condition
        )
    };
}

/// A live key. Remembering it is fine; only the key statement of each batch is an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub id: Ulid,
    /// What the key is in the database: `datalake_user` or `key_<id>`.
    pub role: String,
    /// Who holds its grants; `None`: nothing granted (yet).
    pub set_role: Option<String>,
    /// Which of the key's secrets the credential names.
    pub secret: Ulid,
    /// For how many whole seconds key and secret will live, by the database's clock when this was read; 10^9 at most.
    pub seconds_left: i64,
    /// The tenant's generation when this was read.
    pub generation: i64,
}

/// A row of the look-up, not yet checked.
#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    role: String,
    set_role: Option<String>,
    secret: String,
    seconds_left: i64,
    generation: i64,
}

/// The key that `credential` names, neither it nor its secret revoked or expired. As `t<id>_lookups`.
pub async fn find(conn: &mut PgConnection, credential: &Credential) -> Result<Option<Found>, PgError> {
    let query = match credential {
        Credential::Secret(digest) => sqlx::query_as(look_up!("digest = $1")).bind(&digest.0[..]),
        Credential::Token { key, secret } => {
            sqlx::query_as(look_up!("id = $1 and secret = $2")).bind(key.as_str()).bind(secret.as_str())
        }
        Credential::Owner(key) => {
            sqlx::query_as(look_up!("id = $1 order by expires_at desc nulls first limit 1"))
                .bind(key.as_str())
        }
    };
    let found = within("dl.live", async { Ok(query.fetch_optional(conn).await?) }).await;
    let Some(row): Option<Row> = found.map_err(of("dl.live"))? else { return Ok(None) };
    Row::into_found(row).map(Some)
}

#[cfg(test)]
impl Found {
    /// Some key, for tests.
    pub(crate) fn stub(number: u8) -> Arc<Found> {
        let id = Ulid::from_parts(number.into(), [0; 10]);
        let role = "datalake_user".to_owned();
        Arc::new(Found { secret: id.clone(), id, role, set_role: None, seconds_left: 1, generation: 1 })
    }
}

impl Row {
    fn into_found(self) -> Result<Found, PgError> {
        let ulid =
            |id: String| id.parse().map_err(|_| PgError::unexpected("dl holds an id that is not a ULID"));
        Ok(Found {
            id: ulid(self.id)?,
            role: self.role,
            set_role: self.set_role,
            secret: ulid(self.secret)?,
            seconds_left: self.seconds_left,
            generation: self.generation,
        })
    }
}

/// Which of these keys are revoked, expired or gone, or the secret of theirs that was shown. As `t<id>_lookups`.
pub async fn dead(conn: &mut PgConnection, keys: &[Arc<Found>]) -> Result<Vec<(String, String)>, PgError> {
    let ids: Vec<_> = keys.iter().map(|key| key.id.as_str()).collect();
    let secrets: Vec<_> = keys.iter().map(|key| key.secret.as_str()).collect();
    let query = sqlx::query_as(
        "select asked.id, asked.secret from unnest($1::text[], $2::text[]) as asked (id, secret) \
         where not exists (select from dl.live l where l.id = asked.id and l.secret = asked.secret)",
    );
    Ok(query.bind(ids).bind(secrets).fetch_all(conn).await?)
}

/// Which of these keys live no longer: revoked, expired or gone. As `t<id>_lookups`.
pub async fn dead_ids(conn: &mut PgConnection, ids: &[String]) -> Result<Vec<String>, PgError> {
    let query = sqlx::query_scalar(
        "select asked.id from unnest($1::text[]) as asked (id) where not exists (select from dl.live l where l.id = asked.id)",
    );
    Ok(query.bind(ids).fetch_all(conn).await?)
}

/// Revokes for good, and says when it was revoked first (RFC 3339); `None`: there is no such key. From the COMMIT on
/// no batch of the key succeeds. As `t<id>_lookups` or the owner; the writes of reconciling are `rowgate_sql::ddl::records`.
pub async fn revoke(conn: &mut PgConnection, id: &Ulid) -> Result<Option<String>, PgError> {
    let revoked = sqlx::query_scalar(
        "select to_char(dl.revoke($1) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
    );
    Ok(revoked.bind(id.as_str()).fetch_one(conn).await?)
}

/// Revokes every key whose resource is none of `uids`, and says how many that were. As the owner; where there is nothing
/// to revoke nothing is written. `epoch`: of the tenant's fence; `None`: whoever calls holds the control database's meanwhile.
pub async fn revoke_others(
    conn: &mut PgConnection,
    uids: &[String],
    epoch: Option<i64>,
) -> Result<u64, PgError> {
    let others = "select id from dl.keys where revoked_at is null and not (uid = any($1))";
    let others = sqlx::query_scalar(others).bind(uids);
    let others = within("dl.keys", async { Ok(others.fetch_all(&mut *conn).await?) }).await;
    let others: Vec<String> = others.map_err(of("dl.keys"))?;
    if others.is_empty() {
        return Ok(0);
    }
    let mut open = conn.begin().await?;
    if let Some(epoch) = epoch {
        tenants::fence(&mut open, epoch).await?;
    }
    let revoked =
        sqlx::query("update dl.keys set revoked_at = now() where revoked_at is null and id = any($1)");
    let n_revoked = revoked.bind(&others).execute(&mut *open).await?.rows_affected();
    open.commit().await?;
    Ok(n_revoked)
}
