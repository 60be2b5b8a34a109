//! The migrations, embedded and numbered: one series for the control database, one for every tenant's.

use sqlx::{Connection as _, PgConnection};

use crate::connect::session;
use crate::failure::PgError;
use crate::tenant::read_limits::{of, within};

mod make;
mod take_over;

pub use make::{close_database, make};
pub use take_over::{TakeOverError, strangers, take_over};

/// One file: its number within the series, its name, its statements.
struct Migration {
    number: i32,
    name: &'static str,
    text: &'static str,
}

macro_rules! series {
    ($folder:literal: $($number:literal $name:literal),+ $(,)?) => {
        &[$(Migration {
            number: $number,
            name: $name,
            text: include_str!(concat!("../../migrations/", $folder, "/", $name, ".sql")),
        }),+]
    };
}

const CONTROL: &[Migration] = series!(
    "control": 1 "0001_start", 2 "0002_fingerprint", 3 "0003_signing_keys", 4 "0004_key_uses", 5 "0005_leader",
    6 "0006_calling", 7 "0007_login_failure", 8 "0008_retained", 9 "0009_subscriptions", 10 "0010_exports",
    11 "0011_servers", 12 "0012_rebinds",
);
const TENANT: &[Migration] = series!(
    "tenant": 1 "0001_start", 2 "0002_rotation", 3 "0003_key_uses", 4 "0004_stand", 5 "0005_own_claims",
    6 "0006_live", 7 "0007_routines", 8 "0008_stand_patience", 9 "0009_relationships",
    10 "0010_events", 11 "0011_webhooks", 12 "0012_event_ids",
    13 "0013_event_log", 14 "0014_records", 15 "0015_functions", 16 "0016_event_functions", 17 "0017_enabled",
    18 "0018_scripts", 19 "0019_event_indexes", 20 "0020_event_pages",
    21 "0021_event_counts", 22 "0022_subscription_checks",
);
/// Version 0.1 ran those up to this one as the owner of the tables. The rest is `t<id>_dl`'s.
const LAST_OF_OWNER: i32 = 13;

/// "migrate" in ASCII.
const MIGRATE_LOCK: i64 = 0x006d_6967_7261_7465;

/// Brings the control database up to date, as the operator. Returns how many migrations ran.
pub async fn control(conn: &mut PgConnection) -> Result<usize, PgError> {
    if control_version(conn).await? == last(CONTROL) {
        return Ok(0);
    }
    let mut open = conn.begin().await?;
    lock(&mut open).await?;
    let present = control_version(&mut open).await?;
    let n_applied = run(&mut open, CONTROL, present, CONTROL_RECORD).await?;
    open.commit().await?;
    Ok(n_applied)
}

/// Brings schema `dl` of a tenant's database up to date, as `t<id>_dl`, which owns it. Returns how many migrations ran.
pub async fn tenant(conn: &mut PgConnection) -> Result<usize, PgError> {
    migrate_tenant(conn, TENANT).await
}

/// Brings schema `dl` that the owner of the tenant's tables owns to where [`take_over()`] begins, as that owner. Returns how many
/// migrations ran.
pub async fn start_tenant(conn: &mut PgConnection) -> Result<usize, PgError> {
    let n = TENANT.partition_point(|migration| migration.number <= LAST_OF_OWNER);
    migrate_tenant(conn, &TENANT[..n]).await
}

async fn migrate_tenant(conn: &mut PgConnection, series: &[Migration]) -> Result<usize, PgError> {
    if last(series) <= tenant_version(conn).await? {
        return Ok(0);
    }
    let mut open = conn.begin().await?;
    // those who read wait behind this transaction while it waits for a lock, and anybody in the database may hold that of migrations
    sqlx::query("set local lock_timeout = '500ms'").execute(&mut *open).await?;
    lock(&mut open).await?;
    let present = tenant_version(&mut open).await?;
    let n_applied = run(&mut open, series, present, TENANT_RECORD).await?;
    open.commit().await?;
    Ok(n_applied)
}

/// Who owns schema `dl` of a tenant's database; `None`: there is none.
pub async fn schema_owner(conn: &mut PgConnection) -> Result<Option<String>, PgError> {
    let owner =
        "select pg_catalog.pg_get_userbyid(nspowner)::text from pg_catalog.pg_namespace where nspname = 'dl'";
    Ok(sqlx::query_scalar(owner).fetch_optional(conn).await?)
}

/// Who owns the database of the session.
pub async fn database_owner(conn: &mut PgConnection) -> Result<String, PgError> {
    let owner = "select pg_catalog.pg_get_userbyid(datdba)::text from pg_catalog.pg_database where datname = pg_catalog.current_database()";
    Ok(sqlx::query_scalar(owner).fetch_one(conn).await?)
}

const CONTROL_RECORD: &str = "insert into control.migrations (number, name) values ($1, $2)";
const TENANT_RECORD: &str = "insert into dl.migrations (number, name) values ($1, $2)";

async fn run(
    conn: &mut PgConnection,
    series: &[Migration],
    present: i32,
    record: &'static str,
) -> Result<usize, PgError> {
    let missing = series.iter().filter(|migration| present < migration.number);
    let mut n_applied = 0;
    for migration in missing {
        session::script(conn, migration.text).await?;
        sqlx::query(record).bind(migration.number).bind(migration.name).execute(&mut *conn).await?;
        n_applied += 1;
    }
    Ok(n_applied)
}

/// The number of the last migration that ran, 0 before the first.
async fn control_version(conn: &mut PgConnection) -> Result<i32, PgError> {
    let there = sqlx::query_scalar("select pg_catalog.to_regclass('control.migrations') is not null");
    if !there.fetch_one(&mut *conn).await? {
        return Ok(0);
    }
    Ok(sqlx::query_scalar("select coalesce(max(number), 0) from control.migrations").fetch_one(conn).await?)
}

async fn tenant_version(conn: &mut PgConnection) -> Result<i32, PgError> {
    let there = sqlx::query_scalar("select pg_catalog.to_regclass('dl.migrations') is not null");
    if !there.fetch_one(&mut *conn).await? {
        return Ok(0);
    }
    let number = sqlx::query_scalar("select coalesce(max(number), 0) from dl.migrations");
    within("dl.migrations", async { Ok(number.fetch_one(conn).await?) }).await.map_err(of("dl.migrations"))
}

async fn lock(conn: &mut PgConnection) -> Result<(), PgError> {
    sqlx::query("select pg_catalog.pg_advisory_xact_lock($1)").bind(MIGRATE_LOCK).execute(conn).await?;
    Ok(())
}

fn last(series: &[Migration]) -> i32 {
    series.last().map_or(0, |migration| migration.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_and_stand_in_the_names() {
        for series in [CONTROL, TENANT] {
            assert!(series.is_sorted_by(|one, next| one.number < next.number));
            for migration in series {
                assert!(
                    migration.name.starts_with(&format!("{:04}_", migration.number)),
                    "{}",
                    migration.name
                );
            }
        }
    }
}
