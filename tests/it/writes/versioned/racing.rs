//! Many who change one version of a row at once: one of them does, and each is told the truth.

use std::time::Instant;

use futures_util::future::join_all;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use serde_json::json;

use crate::reads::differential::given;
use crate::writes::fixtures::versioned_rows::{TS, VersionedRows, code, moment, version};

const WRITERS: usize = 8;

/// Half of them name the version in the body, half by the row's tag. Seen to fail with an update that takes the row's version
/// without comparing it, and with a lost update tried again as if it had not been told a version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_writers_with_one_version_exactly_one_is_answered_200() {
    let (n_rounds, began) = (given("ROWGATE_CASES", 2_000), Instant::now());
    let tenant = VersionedRows::open().await;
    tenant.make("/docs", &json!({"id": 1, "title": "start"})).await;
    let (mut tag, mut ts) = tenant.tag("all", "/docs/id/1").await;
    for round in 0..n_rounds {
        let writing = (0..WRITERS).map(|writer| {
            let (tenant, tag, ts) = (&tenant, &tag, &ts);
            async move {
                let title = format!("{round} {writer}");
                let (body, headers) = match writer % 2 {
                    0 => (json!({"title": title, TS: ts}), vec![]),
                    _ => (json!({"title": title}), vec![("If-Match", tag.as_str())]),
                };
                tenant.ask("all", "PATCH", "/docs/id/1", &body.to_string(), &headers).await
            }
        });
        let replies = join_all(writing).await;
        let (mut won, mut told) = (Vec::new(), Vec::new());
        for (writer, reply) in replies.iter().enumerate() {
            match code(reply).0 {
                200 => won.push(reply),
                status => told.push((writer % 2, status)),
            }
        }
        assert_eq!(won.len(), 1, "round {round}: {replies:?}");
        assert!(told.iter().all(|it| matches!(it, (0, 409) | (1, 412))), "round {round}: {told:?}");
        let next = version(won[0]);
        assert!(moment(&ts) < moment(&next), "round {round}");
        (tag, ts) = (crate::writes::fixtures::versioned_rows::tag(won[0]), next);
        if (round + 1) % 10_000 == 0 {
            println!("{} of {n_rounds} rounds of {WRITERS} writers after {:?}", round + 1, began.elapsed());
        }
    }
    let (last_tag, last) = tenant.tag("all", "/docs/id/1").await;
    assert_eq!((last_tag, last), (tag, ts), "what the last winner was told is what stands");
    println!("{n_rounds} rounds of {WRITERS} writers in {:?}", began.elapsed());
}

/// What a change that waits for another one's lock is told, by what becomes of the other one.
///
/// Seen to fail with a statement that makes a row although it was told a version, and with a stale write that is tried again.
#[tokio::test]
async fn whoever_waits_for_the_row_is_told_by_what_it_has_become() {
    let tenant = VersionedRows::open().await;
    let mut other = tenant.server.connect("versioned").await;
    let update = format!("update v.docs set title = 'other', {TS} = {TS} where id = ");
    let lock = "select from v.docs where true for update".to_owned();
    let insert = "insert into v.docs (title, id) select 'other', ".to_owned();
    // what the other one does and how it ends; what the body or the header says; and the answer
    let cases = [
        (&update, "commit", "body", 409),
        (&update, "commit", "header", 412),
        (&update, "commit", "nothing", 428),
        (&update, "rollback", "body", 200),
        (&update, "rollback", "header", 200),
        (&update, "rollback", "nothing", 428),
        (&lock, "commit", "body", 200),
        (&lock, "commit", "header", 200),
        (&insert, "commit", "nothing", 428),
        (&insert, "rollback", "nothing", 201),
    ];
    let every = cases.iter().flat_map(|case| ["PATCH", "PUT"].map(|method| (case, method)));
    for (id, ((statement, end, says, status), method)) in (1..).zip(every) {
        let path = format!("/docs/id/{id}");
        let (mut tag, mut ts) = (String::new(), String::new());
        if *statement != &insert {
            tenant.make("/docs", &json!({"id": id, "title": "one"})).await;
            (tag, ts) = tenant.tag("all", &path).await;
        }
        let mut body = json!({"title": "mine", "Doc Size": 2, "is_deleted": false});
        if *says == "body" {
            body[TS] = json!(ts);
        }
        let headers: Vec<_> = (*says == "header").then_some(("If-Match", tag.as_str())).into_iter().collect();
        let body = body.to_string();
        let tail = if *statement == &lock { String::new() } else { id.to_string() };
        execute(&mut other, &format!("begin; {statement}{tail}")).await;
        let writing = tenant.ask("all", method, &path, &body, &headers);
        let ending = async {
            let waits =
                "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'with %'";
            until("a write that waits", async || (!tenant.rows(waits).await.is_empty()).then_some(())).await;
            execute(&mut other, end).await;
        };
        let (reply, ()) = tokio::join!(writing, ending);
        let what = format!("{method} {says} beside {statement}, {end}: {reply:?}");
        assert_eq!(reply.status.as_u16(), *status, "{what}");
        let stored = tenant.rows(&format!("select title from v.docs where id = {id}")).await;
        assert_eq!(stored[0]["title"] == "mine", *status < 300, "{what}");
    }
}

/// Whoever comes second finds the row made.
#[tokio::test]
async fn of_writers_without_a_version_one_makes_the_row_and_the_others_are_asked_for_it() {
    let tenant = VersionedRows::open().await;
    for id in 0..25 {
        let path = format!("/docs/id/{id}");
        let writing = (0..WRITERS).map(|n| {
            let (tenant, path, body) = (&tenant, &path, json!({"title": n.to_string()}).to_string());
            async move { tenant.ask("all", "PATCH", path, &body, &[]).await.status.as_u16() }
        });
        let mut told = join_all(writing).await;
        told.sort_unstable();
        assert_eq!(told, [&[201][..], &[428; WRITERS - 1]].concat(), "{id}");
    }
}
