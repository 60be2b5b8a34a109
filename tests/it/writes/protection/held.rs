//! Every interleaving of two writers, forced: one holds the row while the other waits for it.

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use sqlx::{Connection as _, PgConnection};

use super::fixture::{Farm, code};

/// What the holder did with the row by the time that it ends, and whether the row has another version then.
const HOLDERS: &[(&str, bool)] = &[
    ("update f.trees set n = n + 1, dl_expected_ts = 'OLD' where id = 1", true),
    ("update f.trees set is_deleted = true, dl_expected_ts = 'OLD' where id = 1", true),
    ("update f.trees set dl_expected_ts = dl_expected_ts where id = 1", true),
    ("select from f.trees where id = 1 for update", false),
    ("select from f.trees where id = 1 for no key update", false),
];

/// What waits for the row, by the version that both began with; and how it ends when the row stayed as it was.
const WAITERS: &[(&str, &str)] = &[
    ("update f.trees set n = 9, dl_expected_ts = 'OLD' where id = 1", ""),
    ("update f.trees set n = 9, dl_expected_ts = 'OLD' from (values (1)) v (i) where id = i", ""),
    ("update f.trees set n = 9 where id = 1", "DL428"),
    (
        "insert into f.trees (id, kind) values (1, 'x') on conflict (id) do update set n = 9, dl_expected_ts = 'OLD'",
        "",
    ),
    (
        "merge into f.trees t using (values (1)) s (id) on s.id = t.id when matched then update set n = 9, dl_expected_ts = 'OLD'",
        "",
    ),
    ("delete from f.trees where id = 1", "DL405"),
];

/// The statement's end, once it waits for somebody's lock until `holder` has ended.
async fn after(
    farm: &Farm,
    waiter: &mut PgConnection,
    statement: &str,
    holder: &mut PgConnection,
    end: &str,
) -> String {
    let pid: i32 =
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *waiter).await.expect("a session");
    let mut looking = farm.stage.server.connect("farm").await;
    let waits = async {
        until("the writer that waits", async || {
            let waits =
                sqlx::query_scalar::<_, bool>("select cardinality(pg_blocking_pids($1)) > 0").bind(pid);
            waits.fetch_one(&mut looking).await.expect("a look").then_some(())
        })
        .await;
        execute(holder, end).await;
    };
    tokio::join!(code(waiter, statement), waits).0
}

#[tokio::test]
async fn who_waited_for_the_row_is_held_against_what_it_is_then() {
    let farm = Farm::open().await;
    let mut holder = farm.connect("owner").await;
    for (held, moves) in HOLDERS {
        for (waiting, unmoved) in WAITERS {
            for end in ["commit", "rollback"] {
                let mut waiter = farm.connect("every").await;
                let old = farm.version(1).await;
                execute(&mut holder, &format!("begin; {}", held.replace("OLD", &old))).await;
                let ended = after(&farm, &mut waiter, &waiting.replace("OLD", &old), &mut holder, end).await;
                let is_moved = *moves && end == "commit";
                let expected = if is_moved && unmoved.is_empty() { "DL409" } else { unmoved };
                assert_eq!(ended, expected, "{held}; {end}; {waiting}");
                waiter.close().await.expect("an orderly end");
            }
        }
    }
    // a transaction that keeps its snapshot is told so by PostgreSQL itself
    let old = farm.version(1).await;
    let mut waiter = farm.connect("every").await;
    execute(&mut waiter, "begin isolation level repeatable read; select from f.trees").await;
    execute(&mut holder, &format!("begin; {}", HOLDERS[0].0.replace("OLD", &old))).await;
    let ended = after(&farm, &mut waiter, &WAITERS[0].0.replace("OLD", &old), &mut holder, "commit").await;
    assert_eq!(ended, "40001");
}
