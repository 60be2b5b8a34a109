//! The abuse of a tenant by its owner: a process of its own that does, over and over, what the login of migrations and a key may do
//! and PostgreSQL bounds, until its input ends. What PostgreSQL does not bound stands in docs/decisions/neighbours.md and is left out.
#![expect(clippy::print_stdout, reason = "the process that started it reads what it counts")]

use std::env;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rowgate_tests::servers::postgres::attempt;
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};
use tokio::time::sleep;

use super::attack::ask;
use super::{Counts, count};
use crate::stage::{request, sent};

/// The environment variable with the address of the login.
pub(super) const LOGIN: &str = "ROWGATE_BENCH_LOGIN";

/// As the superuser: ends the sessions of the login, and takes its leavings away.
pub(super) const END: &str = "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and usename like 't%\\_mig';
     truncate b.bulk;
     select lo_unlink(oid) from pg_largeobject_metadata";

/// What each session does again and again. `$n` counts.
const ACTS: [(&str, &str); 14] = [
    (
        "tables",
        "create table b.t_$n (id int primary key, t text); create index on b.t_$n (t); drop table b.t_$n",
    ),
    ("columns", "alter table b.bulk add column more_$n int; alter table b.bulk drop column more_$n"),
    (
        "200 tables",
        "do $$ begin for i in 1..200 loop execute 'create table b.many_' || i || ' (i int)'; end loop;
            for i in 1..200 loop execute 'drop table b.many_' || i; end loop; end $$",
    ),
    (
        "drift",
        "grant select on b.items to public; alter table b.items disable row level security; revoke select on b.items from public",
    ),
    ("locks", "begin; lock table b.items in access exclusive mode; select pg_sleep(0.5); commit"),
    (
        "advisory locks",
        "select count(pg_advisory_lock(i)) from generate_series(1, 500) i; select pg_advisory_unlock_all()",
    ),
    (
        "own settings",
        "do $$ begin execute format('alter role %I set work_mem = %L', current_user, 64 + $n % 100 || 'kB'); end $$",
    ),
    (
        "events",
        "insert into b.bulk select $n * 1000000 + i, repeat('x', 100) from generate_series(1, 5000) i on conflict do nothing; delete from b.bulk where id / 1000000 = $n",
    ),
    (
        "notifications",
        "select count(pg_notify('rowgate', repeat('x', 7000) || i)) from generate_series(1, 100) i",
    ),
    (
        "sorts",
        "select count(*) from (select x.id, random() as r from b.items x, generate_series(1, 20) order by r) s",
    ),
    (
        "temporary tables",
        "create temp table filled as select i from generate_series(1, 50000) i; drop table filled",
    ),
    ("large objects", "select count(lo_unlink(lo_create(0))) from generate_series(1, 100)"),
    ("errors", "do $$ begin raise exception '%', repeat('x', 10000); end $$"),
    ("catalogs", "analyze pg_class; reindex table pg_class"),
];
/// How many log in and out one time after the other.
const KNOCKING: usize = 2;
/// Connections on which the key reads what is locked, and writes what a trigger refuses.
const READING: usize = 16;
const WRITING: usize = 8;

/// Prints how often what was answered how, as JSON.
pub(crate) async fn run(address: SocketAddr, key: &str) -> Result<(), Box<dyn std::error::Error>> {
    let login = env::var(LOGIN)?;
    let key = format!("X-API-Key: {key}\r\n");
    let counts = Counts::default();
    for (name, act) in ACTS {
        tokio::spawn(acting(login.clone(), name, act, counts.clone()));
    }
    for _ in 0..KNOCKING {
        tokio::spawn(knocking(login.clone(), counts.clone()));
    }
    for _ in 0..READING {
        let read = request("/auth/abuser/api/items?$first=10", &key);
        tokio::spawn(ask(address, "reads", read, counts.clone()));
    }
    for i in 0..WRITING {
        let write = sent("POST", "/auth/abuser/api/acts", &key, &json!({ "id": i }).to_string());
        tokio::spawn(ask(address, "writes", write, counts.clone()));
    }
    tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
    print!("{}", serde_json::to_string(&*counts.lock().expect("nothing panics"))?);
    Ok(())
}

/// What PostgreSQL said: `done`, or a SQLSTATE.
fn said(result: Result<(), sqlx::Error>) -> String {
    match result {
        Ok(()) => "done".to_owned(),
        Err(sqlx::Error::Database(error)) => error.code().unwrap_or_default().into_owned(),
        Err(_) => "broken off".to_owned(),
    }
}

async fn acting(login: String, name: &str, act: &str, counts: Counts) {
    let mut session = None;
    for n in 0_u64.. {
        let mut conn = match session.take() {
            Some(conn) => conn,
            None => match entered(&login).await {
                Ok(conn) => conn,
                Err(error) => {
                    count(&counts, name, &said(Err(error)));
                    sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let answer = said(attempt(&mut conn, &act.replace("$n", &n.to_string())).await);
        count(&counts, name, &answer);
        if answer == "done" || conn.execute("rollback").await.is_ok() {
            session = Some(conn);
        }
    }
}

async fn entered(login: &str) -> Result<PgConnection, sqlx::Error> {
    let mut conn = PgConnection::connect(login).await?;
    conn.execute("set client_min_messages = error; set statement_timeout = '20s'").await?;
    Ok(conn)
}

async fn knocking(login: String, counts: Counts) {
    loop {
        let came = async { PgConnection::connect(&login).await?.close().await }.await;
        count(&counts, "logins", &said(came));
    }
}
