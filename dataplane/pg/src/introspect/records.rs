//! The rows of schema `dl`.

use std::collections::BTreeMap;

use rowgate_core::name::Ulid;
use rowgate_sql::catalog::{EntityRecord, Limits, PermissionRecord, RelationshipRecord};
use serde::Deserialize;
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::failure::PgError;
use crate::introspect::actual::{Applied, Key, KeySecret, PermissionSet, State};
use crate::tenant::read_limits::{limited, records};

/// Whether the migrations of a tenant's database have run.
pub(super) async fn are_there(conn: &mut PgConnection) -> Result<bool, PgError> {
    Ok(sqlx::query_scalar("select to_regclass('dl.state') is not null").fetch_one(conn).await?)
}

pub(super) async fn state(conn: &mut PgConnection) -> Result<State, PgError> {
    let (generation, epoch, bootstrapped, Json(limits)): (i64, i64, bool, Json<Limits>) =
        sqlx::query_as("select generation, epoch, bootstrapped_at is not null, limits from dl.state")
            .fetch_one(conn)
            .await?;
    Ok(State { generation, epoch, bootstrapped, limits })
}

/// Times are microseconds since 1970.
#[derive(sqlx::FromRow)]
struct KeyRow {
    id: String,
    uid: String,
    namespace: String,
    name: String,
    role: String,
    set_role: Option<String>,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
    resolved: Json<serde_json::Value>,
    rotated_for: Option<String>,
    secrets: Json<Vec<SecretRow>>,
}

#[derive(Deserialize)]
struct SecretRow {
    id: Ulid,
    finder: String,
    /// Hexadecimal digits.
    digest: String,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
    replaces: Option<Ulid>,
}

pub(super) async fn keys(conn: &mut PgConnection) -> Result<BTreeMap<Ulid, Key>, PgError> {
    let rows: Vec<KeyRow> = sqlx::query_as(limited!(
        "select k.id, k.uid, k.namespace, k.name, k.role::text, k.set_role::text, k.resolved, k.rotated_for, \
                (extract(epoch from k.expires_at) * 1000000)::int8 as expires_at, \
                (extract(epoch from k.revoked_at) * 1000000)::int8 as revoked_at, \
                coalesce(s.secrets, '[]') as secrets \
         from dl.keys k left join ( \
             select key_id, json_agg(json_build_object('id', id, 'finder', finder, 'digest', encode(digest, 'hex'), \
                        'created_at', (extract(epoch from created_at) * 1000000)::int8, \
                        'expires_at', (extract(epoch from expires_at) * 1000000)::int8, \
                        'revoked_at', (extract(epoch from revoked_at) * 1000000)::int8, \
                        'replaces', replaces) order by id) as secrets \
             from dl.key_secrets group by key_id) s on s.key_id = k.id"
    ))
    .fetch_all(conn)
    .await?;
    records(rows)?.into_iter().map(key).collect()
}

fn key(row: KeyRow) -> Result<(Ulid, Key), PgError> {
    let id = row.id.parse().map_err(|_| PgError::unexpected("dl.keys holds an id that is not a ULID"))?;
    let secret = |secret: SecretRow| {
        Ok(KeySecret {
            id: secret.id,
            finder: secret.finder,
            digest: unhex(&secret.digest)?,
            created_at: timestamp(secret.created_at)?,
            expires_at: secret.expires_at.map(timestamp).transpose()?,
            revoked_at: secret.revoked_at.map(timestamp).transpose()?,
            replaces: secret.replaces,
        })
    };
    let key = Key {
        uid: row.uid,
        namespace: row.namespace,
        name: row.name,
        role: row.role,
        set_role: row.set_role,
        expires_at: rfc3339(row.expires_at)?,
        revoked_at: rfc3339(row.revoked_at)?,
        resolved: row.resolved.0,
        rotated_for: row.rotated_for,
        secrets: row.secrets.0.into_iter().map(secret).collect::<Result<_, PgError>>()?,
    };
    Ok((id, key))
}

pub(super) async fn claims(conn: &mut PgConnection) -> Result<BTreeMap<(String, String), String>, PgError> {
    let rows: Vec<(String, String, String)> =
        sqlx::query_as("select role::text, name, value from dl.claims").fetch_all(conn).await?;
    Ok(rows.into_iter().map(|(role, name, value)| ((role, name), value)).collect())
}

pub(super) async fn entities(conn: &mut PgConnection) -> Result<BTreeMap<String, EntityRecord>, PgError> {
    let rows: Vec<(String, Json<EntityRecord>)> =
        sqlx::query_as(limited!("select name, definition from dl.entities")).fetch_all(conn).await?;
    Ok(records(rows)?.into_iter().map(|(name, Json(record))| (name, record)).collect())
}

pub(super) async fn relationships(
    conn: &mut PgConnection,
) -> Result<BTreeMap<(String, String), RelationshipRecord>, PgError> {
    let rows: Vec<(String, String, Json<RelationshipRecord>)> =
        sqlx::query_as(limited!("select entity, name, definition from dl.relationships"))
            .fetch_all(conn)
            .await?;
    Ok(records(rows)?.into_iter().map(|(entity, name, Json(record))| ((entity, name), record)).collect())
}

pub(super) async fn permission_sets(
    conn: &mut PgConnection,
) -> Result<BTreeMap<String, PermissionSet>, PgError> {
    let rows: Vec<(String, String, Json<Vec<PermissionRecord>>)> =
        sqlx::query_as(limited!("select role::text, hash, permissions from dl.permission_sets"))
            .fetch_all(conn)
            .await?;
    let set = |(role, hash, Json(permissions))| (role, PermissionSet { hash, permissions });
    Ok(records(rows)?.into_iter().map(set).collect())
}

pub(super) async fn applied(conn: &mut PgConnection) -> Result<BTreeMap<(String, String), Applied>, PgError> {
    let rows: Vec<(String, String, String, String)> =
        sqlx::query_as(limited!("select kind, name, hash, recorded from dl.applied")).fetch_all(conn).await?;
    Ok(records(rows)?
        .into_iter()
        .map(|(kind, name, hash, recorded)| ((kind, name), Applied { hash, recorded }))
        .collect())
}

fn rfc3339(micros: Option<i64>) -> Result<Option<String>, PgError> {
    Ok(micros.map(timestamp).transpose()?.map(|at| at.to_string()))
}

pub(super) fn timestamp(micros: i64) -> Result<jiff::Timestamp, PgError> {
    jiff::Timestamp::from_microsecond(micros).map_err(|_| PgError::unexpected("a time beyond the year 9999"))
}

fn unhex(text: &str) -> Result<Vec<u8>, PgError> {
    let byte = |i| text.get(i..i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<_> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.ok_or_else(|| PgError::unexpected("a digest that is not hexadecimal"))
}
