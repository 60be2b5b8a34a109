//! `GET /api/ddl/events/stream`: what a reader is sent while it stays, and where it goes on after that.

use nix::sys::signal::Signal;
use rowgate_tests::client::sse::{Block, EventStream};
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::fixture::{Bank, told};

const N_STREAMS: usize = 40;
/// Events of a page.
const PAGE: usize = 100;
const INSERT: &str = "insert into bank.accounts values";

/// A `change`, whose id is that of its event.
fn change(block: &Block) -> Value {
    let event: Value = serde_json::from_str(&block.data).expect("an event is JSON");
    assert_eq!(
        (block.event.as_str(), Some(block.id.as_str())),
        ("change", event["EventId"].as_str()),
        "{block:?}"
    );
    event
}

async fn changes(stream: &mut EventStream, n: usize) -> Vec<Value> {
    let mut events = Vec::new();
    while events.len() < n {
        events.push(change(&stream.next().await.expect("the stream goes on")));
    }
    events
}

/// The same events as a page has, at once, with pages and on another replica, each once.
#[tokio::test]
async fn a_stream_gives_each_event_once_on_whatever_replica_it_goes_on() {
    let bank = Bank::open().await;
    let replica = bank.world.replica().await;
    let start = bank.now("all").await;
    let mut stream = bank.stream("all", "?tables=accounts,moves", &[]).await;
    let first = stream.block().await.expect("the stream begins");
    assert_eq!((first.retry, first.comments), (Some(1000), vec!["open".to_owned()]));
    let mut seen = Vec::new();
    for id in 1..=3 {
        bank.sql(&format!("{INSERT} ({id}, 'north', 1, E'a\\nb', 'r', 3)")).await;
        seen.extend(changes(&mut stream, 1).await);
    }
    bank.sql(&format!("{INSERT} (4, 'south', 1), (5, 'north', 1); update bank.accounts set balance = 2 where id = 1; delete from bank.accounts where id = 2")).await;
    // the other replica goes on in the middle of a transaction
    seen.extend(changes(&mut stream, 1).await);
    drop(stream);
    let last = seen[3]["EventId"].as_str().expect("an id").to_owned();
    let mut stream = bank.stream_of(replica.url(), "all", "?after=start", &[("Last-Event-ID", &last)]).await;
    seen.extend(changes(&mut stream, 3).await);
    bank.sql("insert into bank.moves values (9, '2024-05-05', 1, 1)").await;
    seen.extend(changes(&mut stream, 1).await);
    let names =
        ["insert 1", "insert 2", "insert 3", "insert 4", "insert 5", "update 1", "delete 2", "insert 9"];
    assert_eq!(told(&seen), names);
    let (events, _) = bank.all("all", "accounts,moves", &start).await;
    // a reader that comes later is given no row that is gone
    let later: Vec<&Value> =
        seen.iter().filter(|event| !(event["op"] == "insert" && event["key"]["id"] == 2)).collect();
    assert_eq!(events.iter().collect::<Vec<_>>(), later);
}

/// A key is sent what it may see, and beyond the events of others it goes on without reading them again.
#[tokio::test]
async fn a_stream_has_what_its_key_may_see_and_moves_on_behind_the_rest() {
    let bank = Bank::open().await;
    let mut stream = bank.stream("north", "?ops=insert,delete", &[]).await;
    bank.sql(&format!("{INSERT} (1, 'south', 1, 'secret'), (2, 'north', 5, 'secret')")).await;
    let event = changes(&mut stream, 1).await.remove(0);
    assert_eq!(event["data"], json!({"id": 2, "region": "north", "balance": 5}));
    let metrics = bank.client.get(&format!("{}/metrics", bank.world.probes_url()), &[]).await.body;
    for sample in [
        "rowgate_event_streams{tenant=\"bank\"} 1\n",
        "rowgate_events_given_total{tenant=\"bank\"} 1\n",
        "rowgate_events_withheld_total{tenant=\"bank\",reason=\"hidden\"} 1\n",
    ] {
        assert!(metrics.contains(sample), "{sample}{metrics}");
    }
    bank.sql("update bank.accounts set balance = 6").await;
    bank.sql(&format!("{INSERT} (3, 'south', 1)")).await;
    // by the next heartbeat at the latest
    let position = stream.next().await.expect("the stream goes on");
    assert_eq!((position.event.as_str(), position.data.as_str()), ("position", "{}"));
    let (events, _) = bank.all("all", "accounts", event["EventId"].as_str().expect("an id")).await;
    assert_eq!(told(&events), ["update 1", "update 2", "insert 3"]);
    assert_eq!(bank.all("all", "accounts", &position.id).await.0, [] as [Value; 0]);
}

#[tokio::test]
async fn a_stream_that_cannot_begin_is_refused() {
    let bank = Bank::open().await;
    for (query, last, code, part) in [
        ("?limit=3", "", "BadRequest", "use tables, ops, after"),
        ("?wait=3", "", "BadRequest", "use tables, ops, after"),
        ("?tables=nothing", "", "BadRequest", "\"nothing\""),
        ("", "x", "InvalidCursor", "EventId"),
        ("", "1.2.3.4", "InvalidCursor", "EventId"),
    ] {
        let key = bank.world.key("all");
        let headers = [("X-API-Key", key.as_str()), ("Last-Event-ID", last)];
        let reply =
            bank.client.get(&format!("{}/api/ddl/events/stream{query}", bank.world.url()), &headers).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status.as_u16(), error["code"].as_str()), (400, Some(code)), "{query}: {reply:?}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "{query}: {error}");
    }
}

#[tokio::test]
async fn a_tenant_has_as_many_streams_as_its_limit() {
    let bank = Bank::open().await;
    bank.world.edit("bank.yaml", "  shared:\n", "  limits: {streams: 1}\n  shared:\n");
    let (url, key) = (format!("{}/api/ddl/events/stream", bank.world.url()), bank.world.key("all"));
    let stream = bank.stream("all", "", &[]).await;
    let open = async || bank.client.open("GET", &url, &[("X-API-Key", &key)], "").await;
    let refused = until("the limit", async || Some(open().await).filter(|it| it.status() == 429)).await;
    assert!(refused.headers().contains_key("retry-after"), "{refused:?}");
    let text = refused.text().await.expect("an answer");
    assert!(text.contains("limits.streams of the Tenant allows, 1;"), "{text}");
    // EventSource would give up for good
    let mut again = bank.stream("all", "", &[("Last-Event-ID", "1.1.1")]).await;
    let empty = again.block().await.expect("a comment");
    assert!(empty.retry >= Some(1000) && empty.comments.concat().contains("limits.streams"), "{empty:?}");
    assert!(again.block().await.is_none(), "it ends");
    drop(stream);
    until("a free place", async || (open().await.status() == 200).then_some(())).await;
}

/// Events that are gone are never passed over in silence: neither when a reader comes back, nor while it stays.
#[tokio::test]
async fn a_reader_that_lost_events_is_sent_a_reset() {
    let bank = Bank::open().await;
    bank.sql(&format!("{INSERT} (1, 'north', 1)")).await;
    let mut stream = bank.stream("all", "", &[("Last-Event-ID", "7.1.1")]).await;
    let reset = stream.next().await.expect("the stream goes on");
    assert_eq!((reset.event.as_str(), reset.data), ("reset", format!("{{\"floor\":\"{}\"}}", reset.id)));
    assert_eq!(told(&changes(&mut stream, 1).await), ["insert 1"]);
    // the database was made from another's dump
    bank.sql("update dl.event_log set history = 'another'").await;
    let reset = stream.next().await.expect("the stream goes on");
    assert_eq!((reset.event.as_str(), reset.id.starts_with("1.")), ("reset", false), "{reset:?}");
    bank.sql(&format!("{INSERT} (2, 'north', 1)")).await;
    assert_eq!(told(&changes(&mut stream, 1).await), ["insert 2"]);
}

#[tokio::test]
async fn a_stream_ends_with_the_rights_of_its_key() {
    let bank = Bank::open().await;
    let mut revoked = bank.stream("north", "", &[]).await;
    let mut narrowed = bank.stream("all", "?tables=accounts,moves", &[]).await;
    let mut stays = bank.stream("all", "?tables=accounts", &[]).await;
    bank.world.edit(
        "bank.yaml",
        "  tenantRef: {name: bank}\n",
        "  tenantRef: {name: bank}\n  revoked: true\n",
    );
    bank.world.edit("bank.yaml", "      - {entity: moves, actions: [read], fields: {include: ['*']}}\n", "");
    assert_eq!((revoked.next().await, narrowed.next().await), (None, None));
    assert_eq!(bank.ask("north", "").await.status, 401);
    bank.sql(&format!("{INSERT} (2, 'north', 1)")).await;
    assert_eq!(told(&changes(&mut stays, 1).await), ["insert 2"]);
}

/// A replica that goes away says when to connect again, and another one goes on without a gap.
#[tokio::test]
async fn a_replica_hands_its_streams_to_another() {
    let bank = Bank::open().await;
    let going = bank.world.replica().await;
    let mut stream = bank.stream_of(going.url(), "all", "", &[]).await;
    bank.sql(&format!("{INSERT} (1, 'north', 1)")).await;
    let mut seen = changes(&mut stream, 1).await;
    let (status, last) = tokio::join!(going.end(Signal::SIGTERM), stream.block());
    assert!(status.success(), "{status}");
    let draining = Block { retry: Some(100), comments: vec!["draining".to_owned()], ..Block::default() };
    assert_eq!((last, stream.block().await), (Some(draining), None));
    bank.sql(&format!("{INSERT} (2, 'north', 1)")).await;
    let last = seen[0]["EventId"].as_str().expect("an id").to_owned();
    let mut stream = bank.stream("all", "", &[("Last-Event-ID", &last)]).await;
    seen.extend(changes(&mut stream, 1).await);
    assert_eq!(told(&seen), ["insert 1", "insert 2"]);
}

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

/// The rows of a tick, page by page, and how many rows of the log were read for them by its indexes.
async fn pages(conn: &mut PgConnection, tick: i64) -> (Vec<String>, i64) {
    let (mut seq, mut seen) = (0, Vec::new());
    let n_read = async |conn: &mut PgConnection| {
        let read = "select sum(idx_tup_fetch)::int8 as n from pg_stat_xact_all_tables where schemaname = 'dl' and relname ~ '^outbox_'";
        rows(conn, read).await[0]["n"].as_i64().expect("a number")
    };
    execute(conn, "begin").await;
    // the session may not have told yet what it read before
    let before = n_read(conn).await;
    loop {
        let page = format!(
            "select seq, image::json ->> 'id' as id from dl.events({tick}, {seq}, null, '{{i}}', {PAGE}) where op is not null and tick = {tick}"
        );
        let page = rows(conn, &page).await;
        let Some(last) = page.last() else { break };
        seq = last["seq"].as_i64().expect("a number");
        seen.extend(page.iter().map(|row| row["id"].as_str().expect("a text").to_owned()));
    }
    let n = n_read(conn).await - before;
    execute(conn, "rollback").await;
    (seen, n)
}

/// Seen to fail with a bound of `xid` beside that of `seq`, with plans for each call, and with a join of the transactions of the tick.
#[tokio::test]
async fn a_page_of_a_big_tick_reads_the_page_and_not_the_tick() {
    let server = Server::own().await;
    let mut bank = Bank::on(&server).await;
    bank.now("all").await;
    // which makes ticks
    assert!(bank.world.stop().await.success());
    let mut conn = server.connect("bank").await;
    let mut earlier = server.connect("bank").await;
    // of a transaction that the tick before sees running, of one, and of five hundred
    execute(
        &mut earlier,
        "begin; insert into bank.accounts select i, 'north', i from generate_series(1, 1000) i",
    )
    .await;
    execute(&mut conn, "insert into bank.accounts values (0, 'north', 0)").await;
    let tick = "select number as n from dl.tick()";
    let before = rows(&mut conn, tick).await[0]["n"].as_i64().expect("a number");
    execute(&mut conn, "insert into bank.accounts select i, 'north', i from generate_series(1001, 3000) i")
        .await;
    let one_by_one = "do $$ begin for i in 3001..3500 loop insert into bank.accounts values (i, 'north', i); commit; end loop; end $$";
    execute(&mut conn, one_by_one).await;
    execute(
        &mut earlier,
        "insert into bank.accounts select i, 'north', i from generate_series(3501, 5000) i; commit",
    )
    .await;
    let ticked = rows(&mut conn, tick).await[0]["n"].as_i64().expect("a number");
    assert_eq!(ticked, before + 1);

    let of_order =
        "select image::json ->> 'id' as id from dl.outbox where image::json ->> 'id' <> '0' order by seq";
    let truth: Vec<String> = rows(&mut conn, of_order)
        .await
        .iter()
        .map(|row| row["id"].as_str().expect("a text").to_owned())
        .collect();
    let (seen, n) = pages(&mut conn, ticked).await;
    assert!(seen == truth, "{} of {}", seen.len(), truth.len());
    assert!(n < 2 * 5000, "{n} rows were read for 5000 events");
    let mut knowing = server.connect("bank").await;
    execute(&mut knowing, "analyze").await;
    let (_, n) = pages(&mut knowing, ticked).await;
    assert!(n < 2 * 5000, "{n} rows were read for 5000 events of which PostgreSQL has statistics");

    // of a transaction that took its time, with what others did meanwhile in the ticks before
    execute(
        &mut earlier,
        "begin; insert into bank.accounts select i, 'north', i from generate_series(10001, 10150) i",
    )
    .await;
    execute(&mut conn, "insert into bank.accounts select i, 'north', i from generate_series(20001, 25000) i")
        .await;
    rows(&mut conn, tick).await;
    execute(
        &mut earlier,
        "insert into bank.accounts select i, 'north', i from generate_series(10151, 10300) i; commit",
    )
    .await;
    let sparse = rows(&mut conn, tick).await[0]["n"].as_i64().expect("a number");
    let (seen, n) = pages(&mut conn, sparse).await;
    assert_eq!(seen, (10001..=10300).map(|i| i.to_string()).collect::<Vec<_>>());
    assert!(n < 2000, "{n} rows were read for 300 events among 5,000 of others");

    // the same as the version before left it
    execute(
        &mut conn,
        "do $$ begin for slot in 0..9 loop execute format('drop index dl.outbox_%s_seq_idx', slot); end loop; end $$;
         update dl.ticks set seq_first = null, seq_last = null; update dl.event_log set is_indexed = false",
    )
    .await;
    let (seen, n) = pages(&mut conn, ticked).await;
    assert!(seen == truth, "{} of {}", seen.len(), truth.len());
    assert!(20 * 5000 < n, "each page read the tick: {n} rows");
}
