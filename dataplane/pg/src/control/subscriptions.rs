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

/// Writes down what is true of some subscriptions of a tenant, and forgets those that were made through the API and are none of
/// `present`. True where something has changed.
pub async fn write(
    conn: &mut PgConnection,
    tenant: &Ulid,
    facts: &[Fact],
    present: &[String],
) -> Result<bool, PgError> {
    let column = |of: fn(&Fact) -> &String| facts.iter().map(of).cloned().collect::<Vec<_>>();
    let upsert = sqlx::query(
        "with gone as (
             delete from control.subscriptions where tenant = $1 and origin = 'api' and not (id = any($7)) returning 1
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
