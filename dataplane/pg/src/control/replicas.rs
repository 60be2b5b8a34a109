//! Data-plane replicas: who lives, what each serves, and the wake that tells them to look again.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::Ulid;
use sqlx::PgConnection;
use sqlx::postgres::{PgListener, PgPoolOptions, PgQueryResult};

use crate::connect::login::Login;
use crate::connect::login_failure::LoginFailure;
use crate::connect::session;
use crate::failure::PgError;

/// NOTIFY channel of the control database. Its messages carry nothing.
const CHANNEL: &str = "rowgate";
const SERVED: &str = "rowgate_served";

/// What PostgreSQL answers to a NOTIFY that finds no room.
const QUEUE_FULL: &str = "54000";

/// What PostgreSQL answers to the name of a column that is not there.
const NO_COLUMN: &str = "42703";

/// A replica starts, or starts again: it serves nothing yet.
pub async fn register(
    conn: &mut PgConnection,
    id: &Ulid,
    version: &str,
    address: &str,
) -> Result<(), PgError> {
    sqlx::query(
        "with fresh as (delete from control.served where replica = $1) \
         insert into control.replicas (id, version, address) values ($1, $2, $3) \
         on conflict (id) do update set version = excluded.version, address = excluded.address, \
             started_at = now(), beat_at = now()",
    )
    .bind(id.as_str())
    .bind(version)
    .bind(address)
    .execute(conn)
    .await?;
    Ok(())
}

/// Says that the replica lives, and sweeps those that have been silent for an hour. False: somebody swept this one
/// away, register again.
pub async fn beat(conn: &mut PgConnection, id: &Ulid) -> Result<bool, PgError> {
    let update = sqlx::query(
        "with swept as (delete from control.replicas where beat_at < clock_timestamp() - interval '1 hour' and id <> $1) \
         update control.replicas set beat_at = clock_timestamp() where id = $1",
    );
    Ok(update.bind(id.as_str()).execute(conn).await?.rows_affected() == 1)
}

/// How many replicas live: at least one, the one that asks.
pub async fn n_live(conn: &mut PgConnection) -> Result<usize, PgError> {
    let query = sqlx::query_scalar(
        "select count(*) from control.replicas where beat_at > clock_timestamp() - interval '6 s'",
    );
    let n: i64 = query.fetch_one(conn).await?;
    Ok(usize::try_from(n).unwrap_or_default().max(1))
}

/// Whether a replica of a version before 0.`minor` lives. One of 0.1 takes the owner of schema `dl` for that of the tenant's views; one of 0.2 closes
/// tables that are not FORCEd, and views that do not belong to the owner of the tables.
pub async fn any_before(conn: &mut PgConnection, minor: i32) -> Result<bool, PgError> {
    let query = sqlx::query_scalar(
        "select exists (select from control.replicas \
                        where beat_at > clock_timestamp() - interval '6 s' \
                          and case when version ~ '^[0-9]{1,6}[.][0-9]{1,6}[.]' \
                                   then string_to_array(substring(version from '^[0-9]+[.][0-9]+'), '.')::int4[] < array[0, $1] \
                                   else false end)",
    );
    Ok(query.bind(minor).fetch_one(conn).await?)
}

/// What a replica answers from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Of the catalog.
    pub generation: i64,
    /// Of the tables that the catalog was read from.
    pub fingerprint: i64,
}

/// What a replica says of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `None`: it has no catalog.
    pub served: Option<Served>,
    /// Why it cannot open a connection for requests.
    pub login_failure: Option<LoginFailure>,
}

impl From<Served> for Report {
    fn from(served: Served) -> Report {
        Report { served: Some(served), login_failure: None }
    }
}

/// Writes down what the replica says of a tenant. A control database that no operator of this version has seen yet takes all but
/// the failure.
pub async fn report(
    conn: &mut PgConnection,
    id: &Ulid,
    tenant: &Ulid,
    report: &Report,
) -> Result<(), PgError> {
    let generation = report.served.map_or(0, |served| served.generation);
    let fingerprint = report.served.map(|served| served.fingerprint);
    let upsert = sqlx::query(
        "insert into control.served (replica, tenant, generation, fingerprint, login_failure) values ($1, $2, $3, $4, $5) \
         on conflict (replica, tenant) do update set generation = excluded.generation, fingerprint = excluded.fingerprint, \
             login_failure = excluded.login_failure",
    );
    let failure = report.login_failure.as_ref().map(LoginFailure::to_string);
    let upsert =
        upsert.bind(id.as_str()).bind(tenant.as_str()).bind(generation).bind(fingerprint).bind(failure);
    let done = upsert.execute(&mut *conn).await.map_err(PgError::from);
    if !done.as_ref().is_err_and(|error| error.code() == Some(NO_COLUMN)) {
        return done.map(drop);
    }
    let upsert = sqlx::query(
        "insert into control.served (replica, tenant, generation, fingerprint) values ($1, $2, $3, $4) \
         on conflict (replica, tenant) do update set generation = excluded.generation, fingerprint = excluded.fingerprint",
    );
    upsert.bind(id.as_str()).bind(tenant.as_str()).bind(generation).bind(fingerprint).execute(conn).await?;
    Ok(())
}

/// The replica no longer serves this tenant.
pub async fn unserved(conn: &mut PgConnection, id: &Ulid, tenant: &Ulid) -> Result<(), PgError> {
    let delete = sqlx::query("delete from control.served where replica = $1 and tenant = $2");
    delete.bind(id.as_str()).bind(tenant.as_str()).execute(conn).await?;
    Ok(())
}

/// The replica ends; nobody waits for it any more.
pub async fn deregister(conn: &mut PgConnection, id: &Ulid) -> Result<(), PgError> {
    sqlx::query("delete from control.replicas where id = $1").bind(id.as_str()).execute(conn).await?;
    Ok(())
}

/// What a live replica serves of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// 0: it has no catalog.
    pub generation: i64,
    /// Why it cannot open a connection for requests. A replica of an older version does not say.
    pub login_failure: Option<LoginFailure>,
}

/// A live replica, and what it serves of each tenant.
pub type Live = (Ulid, BTreeMap<Ulid, Serving>);

/// The replicas whose last beat is younger than 6 s by the database's clock, with what each serves of each tenant. One that
/// serves nothing stands there with an empty map.
pub async fn live(conn: &mut PgConnection) -> Result<Vec<Live>, PgError> {
    type Row = (String, Option<String>, Option<i64>, Option<String>);
    let rows: Vec<Row> = sqlx::query_as(
        "select r.id, s.tenant, s.generation, s.login_failure from control.replicas r \
         left join control.served s on s.replica = r.id \
         where r.beat_at > clock_timestamp() - interval '6 seconds'",
    )
    .fetch_all(conn)
    .await?;
    let mut live: BTreeMap<Ulid, BTreeMap<Ulid, Serving>> = BTreeMap::new();
    for (replica, tenant, generation, login_failure) in rows {
        let serves = live.entry(ulid(&replica)?).or_default();
        if let (Some(tenant), Some(generation)) = (tenant, generation) {
            let login_failure = login_failure.map(|text| LoginFailure::parse(&text));
            serves.insert(ulid(&tenant)?, Serving { generation, login_failure });
        }
    }
    Ok(live.into_iter().collect())
}

/// Fingerprints of tables, by tenant and the generation that it is served at.
pub type Seen = BTreeMap<(Ulid, i64), BTreeSet<i64>>;

/// What the live replicas saw the tables of each tenant to be. Somebody changed them by hand when another fingerprint
/// comes up for a tenant that is served at the same generation.
pub async fn seen(conn: &mut PgConnection) -> Result<Seen, PgError> {
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "select s.tenant, s.generation, s.fingerprint from control.served s join control.replicas r on r.id = s.replica \
         where r.beat_at > clock_timestamp() - interval '6 seconds' and s.fingerprint is not null",
    )
    .fetch_all(conn)
    .await?;
    let mut seen = Seen::new();
    for (tenant, generation, fingerprint) in rows {
        seen.entry((ulid(&tenant)?, generation)).or_default().insert(fingerprint);
    }
    Ok(seen)
}

/// The replica has sessions for calls in these tenants' databases, and in no others.
pub async fn calling(conn: &mut PgConnection, id: &Ulid, tenants: &BTreeSet<Ulid>) -> Result<(), PgError> {
    let tenants: Vec<&str> = tenants.iter().map(Ulid::as_str).collect();
    sqlx::query(
        "with over as (delete from control.calling where replica = $1 and tenant <> all ($2)) \
         insert into control.calling (replica, tenant) select $1, t from unnest($2::text[]) t on conflict do nothing",
    )
    .bind(id.as_str())
    .bind(tenants)
    .execute(conn)
    .await?;
    Ok(())
}

/// The tenants in whose databases a replica other than this one has sessions for calls, or had when it was last heard of.
pub async fn called_elsewhere(conn: &mut PgConnection, id: &Ulid) -> Result<BTreeSet<Ulid>, PgError> {
    let query = sqlx::query_scalar("select distinct tenant from control.calling where replica <> $1");
    let tenants: Vec<String> = query.bind(id.as_str()).fetch_all(conn).await?;
    tenants.iter().map(|tenant| ulid(tenant)).collect()
}

/// Tells every replica to look again. After what they are to see is committed: a NOTIFY that fails undoes its transaction, and
/// the queue that it needs is the whole server's. Where that is full they find it by themselves, within a second.
pub async fn wake(conn: &mut PgConnection) -> Result<(), PgError> {
    sent(sqlx::query("notify rowgate").execute(conn).await)
}

/// Tells whoever reconciles that a replica serves something else. After that was committed; see [`wake`].
pub async fn wake_reconciler(conn: &mut PgConnection) -> Result<(), PgError> {
    sent(sqlx::query("notify rowgate_served").execute(conn).await)
}

fn sent(done: Result<PgQueryResult, sqlx::Error>) -> Result<(), PgError> {
    match done.map_err(PgError::from) {
        Err(error) if error.code() == Some(QUEUE_FULL) => {
            tracing::debug!("the server's queue of notifications is full; no listener is woken");
            Ok(())
        }
        done => done.map(drop),
    }
}

/// A connection that waits for wakes. It opens again by itself; wakes in between are lost, so poll as well.
pub struct Wakes(PgListener);

impl Wakes {
    /// Of replicas. `login` on the control database.
    pub async fn listen(login: &Login) -> Result<Wakes, PgError> {
        Wakes::on(CHANNEL, login).await
    }

    /// Of whoever reconciles. `login` on the control database.
    pub async fn of_reconciler(login: &Login) -> Result<Wakes, PgError> {
        Wakes::on(SERVED, login).await
    }

    async fn on(channel: &str, login: &Login) -> Result<Wakes, PgError> {
        let pool = PgPoolOptions::new().max_connections(1).connect_with(session::options(login)).await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(channel).await?;
        Ok(Wakes(listener))
    }

    /// Waits for the next wake. A lost and reopened connection counts as one, because it may have missed one.
    pub async fn wait(&mut self) -> Result<(), PgError> {
        self.0.try_recv().await?;
        Ok(())
    }
}

fn ulid(text: &str) -> Result<Ulid, PgError> {
    text.parse().map_err(|_| PgError::unexpected("the control database holds an id that is not a ULID"))
}
