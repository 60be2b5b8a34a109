//! Writers that use every way to change rows, and go on when PostgreSQL is there again.

use std::sync::atomic::{AtomicUsize, Ordering};

use rowgate_pg::connect::login::Login;
use rowgate_tests::servers::postgres::{Server, attempt, connect, connect_to, execute, rows};
use rowgate_tests::wait::until;
use sqlx::PgConnection;

pub(super) const N: usize = 4;
/// The row that is written last.
pub(super) const END: i64 = -2;
/// Rows of one statement.
const ROWS: usize = 60;
/// About how many events a round makes.
const EVENTS_PER_ROUND: usize = 90;

/// How far all writers are.
pub(super) struct Progress {
    pub(super) n_events: AtomicUsize,
    pub(super) wanted: usize,
}

/// How a superuser reaches the tenant's database.
pub(super) async fn login(server: &Server) -> Login {
    let found = rows(&mut database(server).await, "select current_database() as name").await;
    server.superuser(found[0]["name"].as_str().expect("a name"))
}

pub(super) async fn database(server: &Server) -> PgConnection {
    connect_to(&server.superuser("bank")).await
}

/// The scripts of a round, each sent by itself; counters of rows grow with each change.
fn scripts(writer: usize, round: usize) -> Vec<String> {
    let from = writer * 10_000_000 + round * 100;
    let (to, before) = (from + ROWS - 1, from.saturating_sub(100));
    let insert = |from: usize| {
        format!(
            "insert into bank.accounts (id, region, balance, n) select g, 'north', 0, 0 from generate_series({from}, {}) g",
            from + ROWS - 1
        )
    };
    let grow = |from: usize, to: usize| {
        format!("update bank.accounts set n = n + 1 where id between {from} and {to}")
    };
    match round % 9 {
        0 => vec![format!(
            "begin; {}; savepoint a; insert into bank.accounts values ({to} + 1, 'north', 0, null, null, 0); rollback to a; {}; commit",
            insert(from),
            grow(from, from + 9),
        )],
        1 => vec![
            format!("begin; {}; rollback", insert(from)),
            format!("{} on conflict (id) do update set n = accounts.n + 1", insert(before)),
        ],
        2 => vec![format!(
            "merge into bank.accounts a using (select g as id from generate_series({}, {from}) g) s on a.id = s.id
             when matched and a.id % 7 = 0 then delete when matched then update set n = a.n + 1
             when not matched then insert (id, region, balance, n) values (s.id, 'north', 0, 0)",
            from.saturating_sub(200)
        )],
        3 => vec![
            insert(from),
            format!("update bank.accounts set id = id + 5000000, n = n + 1 where id between {from} and {to} and id % 3 = 0"),
        ],
        4 => vec![
            format!("begin; {}; {}; prepare transaction '{writer}-{round}'", insert(from), grow(from, from + 4)),
            grow(before, before + 20),
            format!("{} prepared '{writer}-{round}'", if round.is_multiple_of(2) { "commit" } else { "rollback" }),
        ],
        5 => vec![format!(
            "copy bank.accounts (id, region, balance, n) from program
             'awk \"BEGIN {{ for (i = {from}; i <= {to}; i++) print i, \\\"north\\\", 0, 0 }}\"' with (delimiter ' ')"
        )],
        6 => vec![
            format!(
                "insert into bank.moves select g, '2024-05-01', case when g % 10 = 0 then {} end, 0 from generate_series({from}, {to}) g",
                from - 100 + 1
            ),
            format!("update bank.moves set at = at + 365, amount = amount + 1 where id between {from} and {} and at < '2025-01-01'", from + 20),
        ],
        7 => vec![format!("delete from bank.moves where id between {} and {}", from - 100, from - 80), insert(from)],
        _ => vec![format!(
            "begin; {}; savepoint a; delete from bank.accounts where id = {from}; rollback to a; {}; release a; commit",
            insert(from),
            grow(from.saturating_sub(300), from)
        )],
    }
}

/// Rounds until all writers together have made as many events as wanted.
pub(super) async fn write(login: &Login, writer: usize, progress: &Progress) {
    let mut conn = None;
    let rounds = progress.wanted.div_ceil(N * EVENTS_PER_ROUND);
    for round in 0..rounds {
        for script in scripts(writer, round) {
            let mut connected = match conn.take() {
                Some(conn) => conn,
                None => begin_again(login, writer).await,
            };
            let Err(error) = attempt(&mut connected, &script).await else {
                conn = Some(connected);
                continue;
            };
            let code = error.as_database_error().and_then(|error| error.code()).unwrap_or_default();
            match &*code {
                // the connection is gone: what it had not committed is lost, and the rows know
                "" | "57P01" | "57P02" | "57P03" => {}
                // what was prepared was ended when this writer connected again
                "42704" if script.contains(" prepared '") => conn = Some(connected),
                _ => panic!("{error}: {script}"),
            }
        }
        progress.n_events.fetch_add(EVENTS_PER_ROUND, Ordering::Relaxed);
    }
}

/// A connection, with what this writer had prepared before ended.
async fn begin_again(login: &Login, writer: usize) -> PgConnection {
    let mut conn = until("PostgreSQL", async || connect(login).await.ok()).await;
    let left = format!(
        "select gid from pg_prepared_xacts where gid like '{writer}-%' and database = current_database()"
    );
    for row in rows(&mut conn, &left).await {
        execute(&mut conn, &format!("commit prepared '{}'", row["gid"].as_str().expect("a name"))).await;
    }
    conn
}

/// Ends what is prepared, and writes the last row.
pub(super) async fn end(login: &Login) {
    for writer in 0..N {
        drop(begin_again(login, writer).await);
    }
    let mut conn = connect(login).await.expect("PostgreSQL runs");
    execute(&mut conn, &format!("insert into bank.accounts values ({END}, 'north', 0, null, null, 0)")).await;
}
