//! Public clients, which lose nothing and get nothing twice while replicas come and go.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::wait::until;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::fixture::Bank;
use crate::console::fixture::{files, path_from};
use crate::keys::tokens::clients::{packages, tests};
use crate::openapi::fixture::{node, run};

const LAST: i64 = 300;

fn python(work: &Path, url: &str, key: &str, input: &str) -> Value {
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", packages().join("python"))
        .arg("-B")
        .arg(tests().join("clients/events/resume.py"));
    command.arg(work).args([url, key]);
    serde_json::from_slice(&run(&mut command, input).stdout).expect("it prints JSON")
}

#[tokio::test]
async fn public_clients_go_on_behind_a_killed_replica_without_gap_or_repeat() {
    let bank = Bank::open().await;
    let replica = bank.world.replica().await;
    let (url, key) = (replica.url().to_owned(), bank.world.key("all"));
    let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let work = tempfile::tempdir().expect("a temporary folder");
    let after = bank.now("all").await;
    let input = json!({"after": after, "half": 100, "last": LAST}).to_string();
    let given = |folder: &Path| (folder.to_owned(), url.clone(), key.clone(), input.clone());
    let (folder, url_of_it, key_of_it, text) = given(work.path());
    let in_node =
        spawn_blocking(move || node("events/resume.mjs", &folder, &[&url_of_it, &key_of_it], &text));
    let (folder, url_of_it, key_of_it, text) = given(work.path());
    let in_python = spawn_blocking(move || python(&folder, &url_of_it, &key_of_it, &text));

    let insert = async |from: i64, to: i64| {
        for id in from..=to {
            bank.sql(&format!("insert into bank.accounts values ({id}, 'north', 1)")).await;
        }
    };
    insert(1, 100).await;
    for name in ["eventsource", "graphql-ws", "graphql-sse", "httpx-sse"] {
        until(name, async || work.path().join(name).exists().then_some(())).await;
    }
    let _killed = replica.end(Signal::SIGKILL).await;
    insert(101, 200).await;
    let root = bank.world.state().join("dataplane.root");
    let replica = DataPlane::start_at(port, &bank.world.socket(), &root, |_| ()).await;
    insert(201, LAST).await;
    let (in_node, in_python) = (in_node.await.expect("it ends"), in_python.await.expect("it ends"));

    let expected: Vec<i64> = (1..=LAST).collect();
    let names = ["eventsource", "graphql-ws", "graphql-sse", "httpx-sse"];
    for (name, found) in names.into_iter().zip([&in_node, &in_node, &in_node, &in_python]) {
        let rows = found[name].as_array().expect("what it was sent").iter();
        let rows: Vec<i64> = rows.filter_map(|event| event["row"].as_i64()).collect();
        assert_eq!(rows, expected, "{name}");
        assert_eq!(found[name], in_node["eventsource"], "{name}");
    }
    drop(replica);
}

/// Standalone is the only replica; what it has captured outlives it.
#[tokio::test]
async fn a_browser_goes_on_behind_a_killed_replica_without_gap_or_repeat() {
    let console = |command: &mut Command| _ = command.arg("--console").arg(files());
    let mut bank = Bank::open_with(console).await;
    let work = tempfile::tempdir().expect("a temporary folder");
    let input = json!({"after": bank.now("all").await, "half": 100, "last": LAST}).to_string();
    let (folder, url) = (work.path().to_owned(), bank.world.url());
    let in_browser = spawn_blocking(move || {
        node(
            "events/browser.mjs",
            &folder,
            &[&url, "bank/all", &path_from("chromium.sh").display().to_string()],
            &input,
        )
    });
    let insert = async |bank: &Bank, from: i64, to: i64| {
        let rows =
            format!("insert into bank.accounts select id, 'north', 1 from generate_series({from}, {to}) id");
        bank.sql(&rows).await;
    };
    insert(&bank, 1, 100).await;
    until("the browser", async || work.path().join("browser").exists().then_some(())).await;
    let _killed = bank.world.kill().await;
    bank.world.start_with(console).await;
    insert(&bank, 101, LAST).await;
    let found = in_browser.await.expect("it ends");
    let rows: Vec<i64> = found["browser"]
        .as_array()
        .unwrap_or_else(|| panic!("{found}"))
        .iter()
        .filter_map(|event| event["row"].as_i64())
        .collect();
    assert_eq!(rows, (1..=LAST).collect::<Vec<_>>());
}

const INIT: &str = r#"{"type":"connection_init"}"#;
const PROTOCOL: &str = "graphql-transport-ws";

fn subscribe(id: &str, query: &str) -> String {
    json!({"id": id, "type": "subscribe", "payload": {"query": query}}).to_string()
}

/// What the protocol says of each mistake, and of the order of messages.
#[tokio::test]
async fn a_websocket_keeps_to_its_protocol() {
    let bank = Bank::open().await;
    bank.sql("insert into bank.accounts values (1, 'north', 1)").await;
    let (key, dead) = (bank.world.key("all"), rowgate_tests::world::invented("bank"));
    let init = |name: &str, key: &str| json!({"type": "connection_init", "payload": {name: key}}).to_string();
    let own = init("X-API-Key", &key);
    let follows = "subscription { accounts(after: \"start\") { op key } }";
    let case = |protocol: &str, headers: &Value, messages: &[&str], count: Option<usize>| json!({"protocol": protocol, "headers": headers, "messages": messages, "count": count});
    let (none, with_key) = (json!({}), json!({"x-api-key": key}));
    let cases = [
        // handshakes
        case("graphql-ws", &with_key, &[], None),
        case(PROTOCOL, &json!({"x-api-key": dead}), &[], None),
        // who it is
        case(PROTOCOL, &none, &[INIT], None),
        case(PROTOCOL, &none, &[&init("x-api-key", &dead)], None),
        case(PROTOCOL, &with_key, &[&own], None),
        case(PROTOCOL, &none, &[&own, &own], None),
        case(PROTOCOL, &with_key, &[], None),
        case(PROTOCOL, &with_key, &[&subscribe("1", follows)], None),
        // messages
        case(PROTOCOL, &none, &["{"], None),
        case(PROTOCOL, &with_key, &[INIT, "{\"type\":\"subscribe\",\"id\":\"\"}"], None),
        case(PROTOCOL, &with_key, &[INIT, &subscribe("1", follows), &subscribe("1", follows)], None),
        // answers
        case(
            PROTOCOL,
            &none,
            &[&own, "{\"type\":\"ping\",\"payload\":{\"a\":1}}", &subscribe("1", follows)],
            Some(3),
        ),
        case(PROTOCOL, &with_key, &[INIT, &subscribe("q", "{ accounts { items { id } } }")], Some(3)),
        case(
            PROTOCOL,
            &with_key,
            &[
                INIT,
                &subscribe(
                    "m",
                    "mutation { createAccounts(item: {id: 5, region: \"a\", balance: 1}) { id } }",
                ),
            ],
            Some(2),
        ),
        case(PROTOCOL, &with_key, &[INIT, &subscribe("e", "subscription { quiet { op } }")], Some(2)),
    ];
    let url = format!("{}/auth/bank/graphql", bank.world.url().replace("http", "ws"));
    let work = tempfile::tempdir().expect("a temporary folder");
    let input = json!(cases).to_string();
    let found = spawn_blocking(move || node("events/sockets.mjs", work.path(), &[&url], &input)).await;
    let found = found.expect("it ends");
    assert_eq!((&found[0]["status"], &found[1]["status"]), (&json!(400), &json!(401)), "{found}");
    let codes: Vec<_> = (2..11).map(|n| found[n]["code"].as_i64().unwrap_or_default()).collect();
    assert_eq!(codes, [4403, 4403, 4403, 4429, 4408, 4401, 4400, 4400, 4409], "{found}");
    let messages = |n: usize| found[n]["messages"].as_array().expect("messages").clone();
    let ack = json!({"type": "connection_ack"});
    let event = json!({"data": {"accounts": {"op": "insert", "key": {"id": 1}}}});
    let next = json!({"id": "1", "type": "next", "payload": event});
    assert_eq!(messages(11), [ack.clone(), json!({"type": "pong", "payload": {"a": 1}}), next]);
    let rows = json!({"data": {"accounts": {"items": [{"id": 1}]}}});
    let (next, complete) =
        (json!({"id": "q", "type": "next", "payload": rows}), json!({"id": "q", "type": "complete"}));
    assert_eq!(messages(12), [ack, next, complete]);
    let error = |n: usize| messages(n)[1]["payload"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(error(13).contains("POST") && error(14).contains("quiet"), "{found}");
}
