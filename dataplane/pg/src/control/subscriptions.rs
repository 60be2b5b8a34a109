//! Subscriptions of all tenants in the control database: in whose databases there are some, and what is said of each.

use std::collections::BTreeSet;

use rowgate_core::name::Ulid;
use sqlx::PgConnection;

use crate::failure::PgError;
use crate::tenant::delivery::facts::Fact;

/// The tenants that have subscriptions. A control database that no operator of this version has seen yet has none.
pub async fn tenants(conn: &mut PgConnection) -> Result<BTreeSet<Ulid>, PgError> {
    let query = sqlx::query_scalar("select distinct tenant from control.subscriptions");
    let tenants: Vec<String> = match query.fetch_all(conn).await.map_err(PgError::from) {
        Err(error) if error.code() == Some("42P01") => Vec::new(),
        tenants => tenants?,
    };
    Ok(tenants.into_iter().filter_map(|id| id.parse().ok()).collect())
}

/// Lets all replicas know that these tenants have these subscriptions, made through the API.
pub async fn announce(conn: &mut PgConnection, new: &[(Ulid, Ulid)]) -> Result<(), PgError> {
    let (tenants, ids): (Vec<&str>, Vec<&str>) =
        new.iter().map(|(tenant, id)| (tenant.as_str(), id.as_str())).unzip();
    let insert = sqlx::query(
        "insert into control.subscriptions (tenant, id, origin)
         select tenant, id, 'api' from unnest($1::text[], $2::text[]) n (tenant, id) on conflict do nothing",
    );
    insert.bind(tenants).bind(ids).execute(conn).await?;
    Ok(())
}

/// Writes down what is true of some subscriptions of a tenant, and forgets those that were made through the API and are none of
/// `present`: of those that were only announced after a while, as what is true may be older. True where something has changed.
pub async fn write(
    conn: &mut PgConnection,
    tenant: &Ulid,
    facts: &[Fact],
    present: &[String],
) -> Result<bool, PgError> {
    let column = |of: fn(&Fact) -> &String| facts.iter().map(of).cloned().collect::<Vec<_>>();
    let upsert = sqlx::query(
        "with gone as (
             delete from control.subscriptions where tenant = $1 and origin = 'api' and not (id = any($7))
                 and (spec::text <> '{}' or changed_at < clock_timestamp() - interval '1 minute') returning 1
         ),
         written as (
             insert into control.subscriptions as s (tenant, id, origin, uid, spec, status)
             select $1, id, origin, uid, spec::json, status::json
             from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) f (id, origin, uid, spec, status)
             on conflict (tenant, id) do update set origin = excluded.origin, uid = excluded.uid, spec = excluded.spec,
                 status = excluded.status, changed_at = clock_timestamp()
             where (s.origin, s.uid, s.spec::text, s.status::text)
                 is distinct from (excluded.origin, excluded.uid, excluded.spec::text, excluded.status::text)
             returning 1
         )
         select from gone union all select from written",
    );
    let upsert = upsert.bind(tenant.as_str()).bind(column(|fact| &fact.id)).bind(column(|fact| &fact.origin));
    let uids: Vec<Option<String>> = facts.iter().map(|fact| fact.uid.clone()).collect();
    let upsert = upsert.bind(uids).bind(column(|fact| &fact.spec)).bind(column(|fact| &fact.status));
    Ok(!upsert.bind(present).fetch_all(conn).await?.is_empty())
}

/// The subscriptions that Kubernetes declares for a tenant, by id and uid.
pub async fn declared(conn: &mut PgConnection, tenant: &Ulid) -> Result<BTreeSet<(String, String)>, PgError> {
    let query =
        "select id, coalesce(uid, '') from control.subscriptions where tenant = $1 and origin = 'kubernetes'";
    let rows: Vec<(String, String)> = sqlx::query_as(query).bind(tenant.as_str()).fetch_all(conn).await?;
    Ok(rows.into_iter().collect())
}

/// Says which subscriptions Kubernetes declares for a tenant, by id and uid, so that data planes learn of them.
pub async fn declare(
    conn: &mut PgConnection,
    tenant: &Ulid,
    declared: &BTreeSet<(String, String)>,
) -> Result<(), PgError> {
    let (ids, uids): (Vec<String>, Vec<String>) = declared.iter().cloned().unzip();
    let statement = sqlx::query(
        "with gone as (
             delete from control.subscriptions where tenant = $1 and origin = 'kubernetes' and not (id = any($2))
         )
         insert into control.subscriptions (tenant, id, origin, uid)
         select $1, id, 'kubernetes', uid from unnest($2::text[], $3::text[]) d (id, uid)
         on conflict (tenant, id) do update set origin = excluded.origin, uid = excluded.uid",
    );
    statement.bind(tenant.as_str()).bind(ids).bind(uids).execute(conn).await?;
    Ok(())
}

/// A tenant whose database is gone has none.
pub(super) async fn forget(conn: &mut PgConnection, tenant: &Ulid) -> Result<(), PgError> {
    sqlx::query("delete from control.subscriptions where tenant = $1")
        .bind(tenant.as_str())
        .execute(conn)
        .await?;
    Ok(())
}

/// What is said of one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub tenant: Ulid,
    pub id: Ulid,
    /// Made through the API, and not declared in Kubernetes.
    pub is_of_api: bool,
    /// JSON.
    pub spec: String,
    /// JSON.
    pub status: String,
}

/// A digest of what is said: the same as before means that nothing has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version(Option<String>);

/// The subscriptions of tenants that are served.
macro_rules! served {
    ($columns:literal, $end:literal) => {
        concat!(
            "select ",
            $columns,
            " from control.subscriptions s join control.tenants t on t.id = s.tenant and t.phase <> 'retained' ",
            $end
        )
    };
}

/// All that is said of tenants that are served, unless that is what it was at `version`.
pub async fn said(
    conn: &mut PgConnection,
    version: &Version,
) -> Result<Option<(Version, Vec<Said>)>, PgError> {
    let digest = served!(
        "md5(string_agg(concat_ws(' ', s.tenant, s.id, s.changed_at), ',' order by s.tenant, s.id))",
        ""
    );
    let now = Version(sqlx::query_scalar(digest).fetch_one(&mut *conn).await?);
    if now == *version {
        return Ok(None);
    }
    let query =
        served!("s.tenant, s.id, s.origin = 'api', s.spec::text, s.status::text", "order by s.tenant, s.id");
    let rows: Vec<(String, String, bool, String, String)> = sqlx::query_as(query).fetch_all(conn).await?;
    let read = |(tenant, id, is_of_api, spec, status): (String, String, bool, String, String)| {
        Some(Said { tenant: tenant.parse().ok()?, id: id.parse().ok()?, is_of_api, spec, status })
    };
    Ok(Some((now, rows.into_iter().filter_map(read).collect())))
}
