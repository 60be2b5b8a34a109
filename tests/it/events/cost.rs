//! What events cost beyond what is new: as counts of what PostgreSQL did.

use rowgate_tests::servers::postgres::{Server, execute, rows};
use serde_json::Value;

use super::fixture::Bank;

const N_STREAMS: usize = 40;

async fn number(server: &Server, query: &str) -> i64 {
    let found = rows(&mut server.connect("bank").await, query).await;
    found[0]["n"].as_i64().expect("a number")
}

#[tokio::test]
async fn streams_of_one_key_read_and_are_judged_once() {
    let server = Server::with(&["track_functions=pl"]).await;
    let mut bank = Bank::on(&server).await;
    let mut streams = Vec::new();
    for _ in 0..N_STREAMS {
        let mut stream = bank.stream("all", "?tables=accounts", &[]).await;
        stream.block().await.expect("it begins");
        streams.push(stream);
    }
    let mut other = bank.stream("north", "?tables=accounts", &[]).await;
    other.block().await.expect("it begins");
    let mut writer = server.connect("bank").await;
    execute(&mut writer, "insert into bank.accounts values (1, 'north', 5, 'of those with a right')").await;
    let data = |block: &str| serde_json::from_str::<Value>(block).expect("JSON")["data"].clone();
    for stream in &mut streams {
        let told = data(&stream.next().await.expect("an event").data);
        assert_eq!(told["note"], "of those with a right");
    }
    let told = data(&other.next().await.expect("an event").data);
    assert!(told["note"].is_null(), "what another key is given: {told}");

    // sessions that end have counted all that they did
    assert!(bank.world.stop().await.success());
    let reads = "select sum(calls)::int8 as n from pg_stat_user_functions where schemaname = 'dl' and funcname = 'events'";
    let judged = "select sum(calls)::int8 as n from pg_stat_user_functions where schemaname = 'dl' and funcname = 'permitted'";
    for (what, query) in [("reads", reads), ("judgements", judged)] {
        let n = number(&server, query).await;
        assert!((1..20).contains(&n), "{n} {what} for {N_STREAMS} streams of one key");
    }
}

#[tokio::test]
async fn a_look_reads_what_is_new_and_not_the_whole_log() {
    let server = Server::own().await;
    let bank = Bank::on(&server).await;
    let mut conn = server.connect("bank").await;
    execute(&mut conn, "insert into bank.accounts select i, 'north', i from generate_series(1, 5000) i")
        .await;
    bank.now("all").await;
    // what PostgreSQL knows of the log is that it is empty, as in the first minute of a day
    execute(&mut conn, "begin; select dl.tick(); select count(*) from dl.events(2, 0, null, '{i}', 10)")
        .await;
    let scans = "select sum(seq_scan)::int8 as n from pg_stat_xact_all_tables where schemaname = 'dl' and relname ~ '^outbox_'";
    let found = rows(&mut conn, scans).await;
    assert_eq!(found[0]["n"], 0, "leaves that were read as a whole");
}
