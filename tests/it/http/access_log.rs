//! The one log line of each request: what it says, in which form, and what it never says.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use std::sync::Arc;

use nix::pty::openpty;
use parking_lot::Mutex;
use rowgate_tests::client::Client;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Map, Value};

const COLLECTION: &str = "/auth/{tenant}/api/{entity}";

/// What every line has.
const ALWAYS: [&str; 11] = [
    "timestamp",
    "level",
    "message",
    "target",
    "method",
    "route",
    "status",
    "duration_ms",
    "bytes",
    "tenant",
    "key",
];

/// The lines of the requests with this id.
fn lines(world: &World, id: &str) -> Vec<Map<String, Value>> {
    let log = world.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok());
    lines.filter(|line| line["target"] == "rowgate::request" && line["request_id"] == id).collect()
}

/// Seen to fail with the query string in the line, with the path as the route where none matched, and with the method as
/// it was sent.
#[tokio::test]
async fn a_request_is_one_line_with_its_route_and_never_its_values() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let client = Client::new();
    let admin = world.key("shop-admin");
    let key_id = world.status("ApiKey", "shop-admin")["apiKeyId"].clone();
    let key = [("X-API-Key", admin.as_str())];
    let stranger = admin.replacen("shop:", "canary-tenant:", 1);
    for (id, method, path, header, route, tenant, status, code, rows) in [
        (
            "line-1",
            "GET",
            "/auth/shop/api/orders?$first=3&$filter=comment%20ne%20'canary'",
            &key[..],
            COLLECTION,
            "shop",
            200,
            None,
            Some(3),
        ),
        (
            "line-2",
            "GET",
            "/auth/shop/api/canary-entity",
            &key,
            COLLECTION,
            "shop",
            404,
            Some("EntityNotFound"),
            None,
        ),
        ("line-3", "GET", "/auth/shop/api", &key, "/auth/{tenant}/api", "shop", 200, None, None),
        (
            "line-4",
            "GET",
            "/auth/canary-tenant/api/orders",
            &[("X-API-Key", stranger.as_str())],
            COLLECTION,
            "-",
            401,
            Some("Unauthorized"),
            None,
        ),
        ("line-5", "CANARY", "/canary?canary", &[], "-", "-", 404, Some("NotFound"), None),
    ] {
        let url = format!("{}{path}", world.url());
        let headers = [header, &[("X-Request-Id", id), ("X-Canary", "canary")]].concat();
        let reply = client.ask(method, &url, &headers).await;
        assert_eq!(reply.status.as_u16(), status, "{id}");
        let line = until(id, async || lines(&world, id).pop()).await;
        assert_eq!(lines(&world, id).len(), 1, "{id}");
        let named = if method == "CANARY" { "other" } else { method };
        assert_eq!((&line["method"], &line["route"]), (&named.into(), &route.into()), "{id}");
        assert_eq!((&line["status"], &line["tenant"]), (&status.into(), &tenant.into()), "{id}");
        assert_eq!(line["key"], if tenant == "shop" { key_id.clone() } else { "-".into() }, "{id}");
        assert_eq!(line["bytes"], reply.body.len(), "{id}");
        assert_eq!(line.get("rows"), rows.map(Value::from).as_ref(), "{id}");
        assert_eq!(line.get("code"), code.map(Value::from).as_ref(), "{id}");
        let database = line.get("database_ms").map(|value| value.as_f64().expect("a number"));
        assert_eq!(database.is_some(), rows.is_some(), "{id}: only the first asked the tables");
        let whole = line["duration_ms"].as_f64().expect("a number");
        assert!(database.unwrap_or_default() <= whole, "{id}");
        let more = ["request_id", "rows", "code", "database_ms"];
        let known: BTreeSet<&str> = ALWAYS.into_iter().chain(more).collect();
        assert!(line.keys().all(|name| known.contains(name.as_str())), "{id}: {line:?}");
        assert!(ALWAYS.iter().all(|name| line.contains_key(*name)), "{id}: {line:?}");
    }
    let log = world.log();
    assert!(!log.to_lowercase().contains("canary"), "{log}");
}

#[tokio::test]
async fn a_terminal_gets_text() {
    let mut world = World::founded_shop().await;
    let terminal = openpty(None, None).expect("the machine has terminals");
    let shown = Arc::new(Mutex::new(String::new()));
    let mut master = File::from(terminal.master);
    let reader = {
        let shown = shown.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Linux ends a terminal that nobody has open any more with an error.
            while let Ok(n @ 1..) = master.read(&mut buffer) {
                shown.lock().push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        })
    };
    world
        .start_with(|command| {
            command.stderr(Stdio::from(terminal.slave));
        })
        .await;
    let key = world.key("shop-admin");
    let url = format!("{}/auth/shop/api/orders?$first=1", world.url());
    let headers = [("X-API-Key", key.as_str()), ("X-Request-Id", "on-a-terminal")];
    assert_eq!(Client::new().get(&url, &headers).await.status, 200);
    let line = until("the line on the terminal", async || {
        let shown = shown.lock().clone();
        shown.lines().find(|line| line.contains("on-a-terminal")).map(str::to_owned)
    })
    .await;
    assert!(!line.starts_with('{'), "{line}");
    assert!(line.contains(COLLECTION) && line.contains("200"), "{line}");
    world.stop().await;
    reader.join().expect("reading does not panic");
}
