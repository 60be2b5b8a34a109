//! Every committed change once at every reader and in the order of its row, and none of what was rolled back, while replicas
//! are stopped and killed and PostgreSQL is, too.

mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use nix::sys::signal::Signal;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use serde_json::Value;

use super::fixture::{Bank, cursor};
use writers::{Progress, database, write};

/// What row triggers of our own write down in the transaction of each change, apart from what is captured: by row, the
/// changes in their order.
const ORACLE: &str = "
    create table bank.truth (seq bigserial primary key, tab text not null, op text not null, key text not null, n int not null);
    create function bank.key_of(r jsonb) returns text language sql immutable return (r ->> 'id') || coalesce('/' || (r ->> 'at'), '');
    create function bank.n_of(r jsonb) returns int language sql immutable return coalesce(r ->> 'n', r ->> 'amount')::int;
    create function bank.note() returns trigger language plpgsql as $$
    declare o jsonb := to_jsonb(old); w jsonb := to_jsonb(new); tab text := tg_argv[0];
    begin
        if tg_op = 'UPDATE' and bank.key_of(o) = bank.key_of(w) then
            insert into bank.truth (tab, op, key, n) values (tab, 'update', bank.key_of(w), bank.n_of(w));
            return null;
        end if;
        if o is not null then
            insert into bank.truth (tab, op, key, n) values (tab, 'delete', bank.key_of(o), bank.n_of(o));
        end if;
        if w is not null then
            insert into bank.truth (tab, op, key, n) values (tab, 'insert', bank.key_of(w), bank.n_of(w));
        end if;
        return null;
    end $$;
    create trigger note after insert or update or delete on bank.accounts for each row execute function bank.note('accounts');
    create trigger note after insert or update or delete on bank.moves for each row execute function bank.note('moves');
    create function bank.book() returns trigger language plpgsql as $$
    begin update bank.accounts set n = n + 1 where id = new.account; return null; end $$;
    create trigger book after insert on bank.moves for each row when (new.account is not null) execute function bank.book();";

/// Entity and key, and the changes of that row with its counter.
type Changes = BTreeMap<(String, String), Vec<(String, i64)>>;

/// Of one reader.
#[derive(Default)]
struct Received {
    changes: Changes,
    last: (i64, i64),
    is_over: bool,
}

impl Received {
    /// Positions only grow: nothing comes twice.
    fn add(&mut self, event: &Value) {
        let id = event["EventId"].as_str().expect("an id");
        let parts: Vec<i64> = id.split('.').map(|part| part.parse().expect("a number")).collect();
        let at = (parts[1], parts[2]);
        assert!(self.last < at, "{id} comes behind {:?}", self.last);
        self.last = at;
        let (key, data) = (&event["key"], &event["data"]);
        self.is_over |= key["id"] == writers::END;
        let entity = event["entity"].as_str().expect("a name").to_owned();
        let at = key["at"].as_str().map(|at| format!("/{at}")).unwrap_or_default();
        let n = data["n"].as_i64().or(data["amount"].as_i64()).expect("a counter");
        let op = event["op"].as_str().expect("an op").to_owned();
        self.changes.entry((entity, format!("{}{at}", key["id"]))).or_default().push((op, n));
    }

    /// A row that is gone is given by its delete, and before it as far as the reader was in time.
    fn compare(&self, truth: &Changes, reader: &str) {
        for (row, changes) in truth {
            let nothing = Vec::new();
            let received = self.changes.get(row).unwrap_or(&nothing);
            let mut rest = changes.iter();
            let is_in_order = received.iter().all(|change| rest.any(|it| it == change));
            assert!(is_in_order, "{reader}, {row:?}: {received:?} of {changes:?}");
            let deletes = |changes: &[(String, i64)]| changes.iter().filter(|(op, _)| op == "delete").count();
            match deletes(changes) {
                0 => assert_eq!(received, changes, "{reader}, {row:?}"),
                n => assert_eq!(deletes(received), n, "{reader}, {row:?}: {received:?} of {changes:?}"),
            }
        }
        let unknown = self.changes.keys().find(|row| !truth.contains_key(*row));
        assert_eq!(unknown, None, "{reader} was given what was never committed");
    }
}

async fn poll(bank: &Bank, start: &str) -> Received {
    let (mut received, mut after) = (Received::default(), start.to_owned());
    while !received.is_over {
        let page = until("a page", async || {
            let reply = bank.ask("all", &format!("?after={after}&limit=700&wait=5")).await;
            // the others: PostgreSQL is away
            assert!(matches!(reply.status.as_u16(), 200 | 503 | 504), "{reply:?}");
            (reply.status == 200).then(|| reply.json())
        })
        .await;
        page["events"].as_array().expect("events").iter().for_each(|event| received.add(event));
        cursor(&page).clone_into(&mut after);
    }
    received
}

/// Goes to `another` replica when a stream ends.
async fn stream(bank: &Bank, first: String, another: &str, start: &str) -> Received {
    let (mut received, mut last, mut url) = (Received::default(), start.to_owned(), first);
    loop {
        let headers = [("Last-Event-ID", last.as_str())];
        let mut stream =
            until("a stream", async || bank.try_stream_of(&url, "all", "", &headers).await).await;
        while let Some(block) = stream.next().await {
            assert_ne!(block.event, "reset", "{block:?}");
            block.id.clone_into(&mut last);
            if block.event == "change" {
                received.add(&serde_json::from_str(&block.data).expect("an event is JSON"));
            }
            if received.is_over {
                return received;
            }
        }
        another.clone_into(&mut url);
    }
}

/// By row, in the order of `seq`.
async fn changes(server: &Server, query: &str) -> Changes {
    let mut changes = Changes::new();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    for row in rows(&mut database(server).await, query).await {
        let change = (text(&row["op"]), row["n"].as_i64().expect("a counter"));
        changes.entry((text(&row["tab"]), text(&row["key"]))).or_default().push(change);
    }
    changes
}

const CAPTURED: &str =
    "select rel::regclass::text as full_name, split_part(rel::regclass::text, '.', 2) as tab,
    case op when 'i' then 'insert' when 'u' then 'update' else 'delete' end as op,
    bank.key_of(image::jsonb) as key, bank.n_of(image::jsonb) as n from dl.outbox order by seq";

/// `ROWGATE_CASES`: so many events, which `make soak` asks for.
#[tokio::test]
async fn each_committed_change_is_given_once_and_in_the_order_of_its_row() {
    let wanted: usize = std::env::var("ROWGATE_CASES").map_or(50_000, |text| text.parse().expect("a number"));
    let mut server = Server::with(&["max_prepared_transactions=20"]).await;
    let bank = Bank::on(&server).await;
    execute(&mut database(&server).await, ORACLE).await;
    let going = bank.world.replica().await;
    let start = bank.now("all").await;
    let progress = Progress { n_events: AtomicUsize::new(0), wanted };
    let reached = async |percent: usize| {
        let is_reached = || wanted * percent <= progress.n_events.load(Ordering::Relaxed) * 100;
        until("more events", async || is_reached().then_some(())).await;
    };

    let (first, another) = (going.url().to_owned(), bank.world.url());
    let login = writers::login(&server).await;
    let disturb = async {
        reached(10).await;
        going.pause().await;
        reached(25).await;
        going.signal(Signal::SIGCONT);
        reached(40).await;
        let _killed = going.end(Signal::SIGKILL).await;
        reached(60).await;
        server.kill().await;
        server.start_again().await;
    };
    let writing = async {
        let writers =
            async { join_all((0..writers::N).map(|writer| write(&login, writer, &progress))).await };
        tokio::join!(writers, disturb);
        writers::end(&login).await;
    };
    let (polled, streamed, ()) =
        tokio::join!(poll(&bank, &start), stream(&bank, first, &another, &start), writing);

    let truth = changes(&server, "select tab, op, key, n from bank.truth order by seq").await;
    let n: usize = truth.values().map(Vec::len).sum();
    assert!(wanted <= n, "{n} events");
    let captured = changes(&server, CAPTURED).await;
    for (row, changes) in &truth {
        assert_eq!(captured.get(row), Some(changes), "{row:?}");
    }
    assert_eq!(captured.len(), truth.len());
    polled.compare(&truth, "the reader of pages");
    streamed.compare(&truth, "the reader of streams");
    let kinds: BTreeSet<&str> = truth.values().flatten().map(|(op, _)| op.as_str()).collect();
    assert_eq!(kinds.len(), 3, "{kinds:?}");
}
