//! Readers of a promoted standby, and of copies of a database: they go on exactly, or are sent a reset.

use std::fs;
use std::path::Path;
use std::process::Command;

use rowgate_tests::client::sse::EventStream;
use rowgate_tests::servers::postgres::{Server, attempt, execute};
use rowgate_tests::wait::until;
use serde_json::Value;

use super::fixture::{Bank, told};

const INSERT: &str = "insert into bank.accounts values";

async fn sql(server: &Server, script: &str) {
    execute(&mut server.connect("bank").await, script).await;
}

/// The same events, once PostgreSQL answers again.
async fn all(bank: &Bank, after: &str) -> Vec<Value> {
    until("an answer", async || {
        (bank.ask("all", &format!("?tables=accounts&after={after}")).await.status.as_u16() < 500)
            .then_some(())
    })
    .await;
    bank.all("all", "accounts", after).await.0
}

fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| event["EventId"].as_str().expect("an id").to_owned()).collect()
}

fn generation(id: &str) -> &str {
    id.split('.').next().unwrap_or_default()
}

fn copy(from: &Path, to: &Path) {
    let _absent = fs::remove_dir_all(to);
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp is there");
    assert!(status.success(), "{status}");
}

/// What comes first behind a cursor.
async fn first(bank: &Bank, last: &str) -> (String, EventStream) {
    let headers = [("Last-Event-ID", last)];
    let mut stream = until("a stream", async || {
        bank.try_stream_of(&bank.world.url(), "all", "?tables=accounts", &headers).await
    })
    .await;
    let block = stream.next().await.expect("the stream goes on");
    (block.event, stream)
}

/// An event has one id on the old primary and on the promoted standby, also for readers that stay.
#[tokio::test]
async fn a_promoted_standby_goes_on_exactly() {
    let mut server = Server::with(&["synchronous_commit=on"]).await;
    let bank = Bank::on(&server).await;
    let start = bank.now("all").await;
    let mut stays = bank.stream("all", "?tables=accounts", &[]).await;
    sql(&server, &format!("{INSERT} (1, 'north', 1), (2, 'north', 1)")).await;
    let before = all(&bank, &start).await;
    let seen: Vec<String> =
        [stays.next().await, stays.next().await].into_iter().flatten().map(|block| block.id).collect();
    assert_eq!(seen, ids(&before));
    let caught_up = bank.now("all").await;

    server.kill().await;
    fs::write(server.data().join("standby.signal"), "").expect("the folder is ours");
    server.start_again().await;
    execute(&mut server.connect("postgres").await, "select pg_promote()").await;
    until("a primary", async || {
        let insert = format!("{INSERT} (3, 'north', 1)");
        attempt(&mut server.connect("bank").await, &insert).await.ok()
    })
    .await;

    let after = all(&bank, &start).await;
    assert_eq!(told(&after), ["insert 1", "insert 2", "insert 3"]);
    assert_eq!(ids(&after)[..2], ids(&before));
    assert_ne!(generation(&ids(&after)[2]), generation(&ids(&after)[1]), "{after:#?}");
    // in the middle of a tick, and behind all that was there
    for (cursor, rest) in [(ids(&before)[0].as_str(), &after[1..]), (&caught_up, &after[2..])] {
        assert_eq!(all(&bank, cursor).await, rest);
        let (event, _) = first(&bank, cursor).await;
        assert_eq!(event, "change", "{cursor}");
    }
    let block = stays.next().await.expect("the stream goes on");
    assert_eq!((block.event.as_str(), &block.id), ("change", &ids(&after)[2]));
}

/// A copy that has what a cursor stands for goes on behind it. What it lacks is never passed over in silence, although it gives
/// numbers of its own to other events.
#[tokio::test]
async fn a_copy_of_an_earlier_time_gives_a_reset_or_goes_on_exactly() {
    let mut server = Server::with(&["synchronous_commit=on"]).await;
    let bank = Bank::on(&server).await;
    let start = bank.now("all").await;
    sql(&server, &format!("{INSERT} (1, 'north', 1)")).await;
    let kept = ids(&all(&bank, &start).await);
    let (data, saved) = (server.data().to_owned(), bank.world.folder().join("saved"));
    server.kill().await;
    copy(&data, &saved);
    server.start_again().await;
    let mut lost = Vec::new();
    for id in 2..5 {
        sql(&server, &format!("{INSERT} ({id}, 'north', 1)")).await;
        lost = ids(&all(&bank, &start).await).split_off(1);
    }
    let lost_end = bank.now("all").await;

    // the files as they were, on a server with the same identifier and timeline
    server.kill().await;
    copy(&saved, &data);
    server.start_again().await;
    for id in 12..17 {
        sql(&server, &format!("{INSERT} ({id}, 'north', 1)")).await;
        let _made_a_tick = all(&bank, &start).await;
    }
    let events = all(&bank, &kept[0]).await;
    assert_eq!(told(&events), ["insert 12", "insert 13", "insert 14", "insert 15", "insert 16"]);
    assert_eq!(first(&bank, &kept[0]).await.0, "change");
    for cursor in lost.iter().chain([&lost_end]) {
        let reply = bank.ask("all", &format!("?tables=accounts&after={cursor}")).await;
        assert_eq!(reply.json()["error"]["code"], "InvalidCursor", "{cursor}: {reply:?}");
        assert_eq!(first(&bank, cursor).await.0, "reset", "{cursor}");
    }
}

/// In a database that was made from a dump transactions are numbered again, so that nothing of before can be told apart.
#[tokio::test]
async fn a_database_made_from_a_dump_begins_again() {
    let bank = Bank::open().await;
    let start = bank.now("all").await;
    bank.sql(&format!("{INSERT} (1, 'north', 1)")).await;
    let (_, end) = bank.all("all", "accounts", &start).await;
    bank.sql(
        "update dl.outbox set xid = '1000000'; update dl.ticks set snapshot = '2000000:2000000:' where number > 0;
         update dl.event_log set history = split_part(history, '/', 1) || '/1/0/0'",
    )
    .await;
    bank.sql(&format!("{INSERT} (2, 'north', 1)")).await;
    for cursor in [&start, &end] {
        let reply = bank.ask("all", &format!("?tables=accounts&after={cursor}")).await;
        assert_eq!(reply.json()["error"]["code"], "InvalidCursor", "{cursor}: {reply:?}");
    }
    bank.sql(&format!("{INSERT} (3, 'north', 1)")).await;
    assert_eq!(told(&bank.all("all", "accounts", "start").await.0), ["insert 3"]);
}
