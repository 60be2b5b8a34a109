//! Long answers come in pieces, and whoever takes only some of them leaves nothing to the next caller.

use rowgate_pg::wire::{Failure, Piece, ReadPage};
use rowgate_sql::shape::Encoding::{Int4, Quoted, Text};
use rowgate_tests::servers::postgres::shared;
use rowgate_tests::wait::until;
use sqlx::Row as _;

use super::encoders::Random;
use super::fixture::{Tenant, utf8};

const CHUNK: usize = 64 << 10;
const ACTIVE: &str = "select 1 from pg_stat_activity
    where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";

/// Everything of an answer, and the lengths of its pieces.
async fn whole(page: ReadPage) -> Result<(String, Vec<usize>), Failure> {
    let (mut json, mut lengths, mut rest) = (page.json, Vec::new(), page.rest);
    lengths.push(json.len());
    while let Some(more) = &mut rest {
        match more.next().await? {
            Piece::Json(piece) => {
                lengths.push(piece.len());
                json.extend_from_slice(&piece);
            }
            Piece::End(_) => break,
        }
    }
    Ok((String::from_utf8(json).expect("JSON is UTF-8"), lengths))
}

/// The same rows by PostgreSQL's own encoder. Widths go from nothing to twice a chunk, so that rows end everywhere.
/// Seen to fail with a comma that was forgotten at the beginning of a chunk.
#[tokio::test]
async fn the_pieces_of_an_answer_are_the_answer() {
    let mut tenant = Tenant::found(shared().await, "wire_long").await;
    let pool = tenant.pool();
    let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
    let mut random = Random(23);
    for round in 0..60 {
        let (n_rows, width) = (1 + random.next() % 400, 1 + random.next() % (1 << (4 + random.next() % 14)));
        let rows = format!(
            "select i, repeat('x', ((i * 7919) % {width})::int) as t from generate_series(1, {n_rows}) i"
        );
        let ask = tenant.ask("a", &format!("{rows} order by i"), &[Int4, Text]);
        let (json, lengths) =
            whole(pool.read(ask, usize::MAX).await.expect("an answer")).await.expect("all of it");
        #[expect(clippy::disallowed_methods, reason = "the text is the test's own")]
        let sql = sqlx::AssertSqlSafe(format!(
            "select string_agg('{{\"0\":' || i || ',\"1\":\"' || t || '\"}}', ',' order by i) from ({rows}) r"
        ));
        let expected = sqlx::query(sql).fetch_one(&mut tenant.superuser).await.expect("one row");
        assert!(json == expected.get::<String, _>(0), "round {round}: {n_rows} rows of up to {width}");
        let (_, before) = lengths.split_last().expect("one piece at least");
        assert!(before.iter().all(|length| CHUNK <= *length), "{lengths:?}");
    }
    assert_eq!(tenant.text(&pool, "a", "select pg_backend_pid()").await, pid, "all of it on one connection");
}

/// Seen to fail with a connection that was put back half-way.
#[tokio::test]
async fn whoever_leaves_in_the_middle_leaves_no_rows_to_the_next() {
    let mut tenant = Tenant::found(shared().await, "wire_leave").await;
    let pool = tenant.pool();
    let mut random = Random(29);
    let (mut n_kept, mut n_closed) = (0, 0);
    for round in 0..40 {
        let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
        // From a little more than a chunk, of which the rest is read, to 100 MB.
        let n_rows = if round % 2 == 0 { 70 } else { 100_000 };
        let text = format!("select i, repeat('x', 1000) from generate_series(1, {n_rows}) i");
        let mut page = pool.read(tenant.ask("a", &text, &[Int4, Text]), usize::MAX).await.expect("an answer");
        let rest = page.rest.as_mut().expect("more than a chunk");
        for _ in 0..random.next() % 3 {
            rest.next().await.expect("a piece");
        }
        drop(page);
        // Not so when it is put back as it is: the statement waits for somebody to read on.
        let over = async || {
            let active = sqlx::query(ACTIVE).fetch_optional(&mut tenant.superuser).await.expect("rows");
            active.is_none().then_some(())
        };
        until("an end of the statement", over).await;
        let next = pool.read(tenant.ask("b", "select 7, current_user", &[Int4, Quoted]), usize::MAX).await;
        let next = next.expect("an answer");
        assert_eq!(utf8(&next), format!("{{\"0\":7,\"1\":\"{}\"}}", tenant.role("b")));
        match tenant.text(&pool, "a", "select pg_backend_pid()").await == pid {
            true => n_kept += 1,
            false => n_closed += 1,
        }
    }
    // a pooler has several sessions, and gives whichever is free
    if !tenant.is_pooled() {
        assert_eq!((n_kept, n_closed), (20, 20), "little is read to its end, much is not");
    }
}
