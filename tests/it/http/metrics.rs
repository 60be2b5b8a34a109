//! `/metrics`, scraped over HTTP and parsed by Prometheus' own client: what it counts is what was asked.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde::Deserialize;

use crate::keys::tokens::clients::{packages, tests};

/// A tenant that comes and goes.
const GUEST: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: guest}
spec: {database: {}, limits: {requestsPerSecond: 1}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: guest-key}
spec: {tenantRef: {name: guest}}
";

const COLLECTION: &str = "/auth/{tenant}/api/{entity}";
const ROW: &str = "/auth/{tenant}/api/{entity}/{*key}";
const LISTING: &str = "/auth/{tenant}/api";

/// Family, type, samples.
#[derive(Deserialize)]
struct Family(String, String, Vec<Sample>);

#[derive(Deserialize)]
struct Sample(String, BTreeMap<String, String>, f64);

struct Page {
    text: String,
    families: Vec<Family>,
}

impl Page {
    /// Blocks the test's thread while Python runs.
    async fn scrape(world: &World, client: &Client) -> Page {
        let reply = client.get(&format!("{}/metrics", world.probes_url()), &[]).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        let start = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2])";
        let mut child = Command::new("python3")
            .args(["-I", "-B", "-c", start])
            .arg(packages().join("python"))
            .arg(tests().join("clients/prometheus.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests/setup/clients.sh found it");
        let mut stdin = child.stdin.take().expect("it was asked for");
        stdin.write_all(reply.body.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "what it said stands above; {}", reply.body);
        let families = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        Page { text: reply.body, families }
    }

    /// The value of the one sample with this name and exactly these labels.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: BTreeMap<_, _> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut samples = self.families.iter().flat_map(|Family(_, _, samples)| samples);
        samples.find(|sample| sample.0 == name && sample.1 == labels).map(|sample| sample.2)
    }

    /// Tenant, route, method, status and number of every request.
    fn requests(&self) -> BTreeMap<[String; 4], u64> {
        let samples = self.families.iter().flat_map(|Family(_, _, samples)| samples);
        let requests = samples.filter(|sample| sample.0 == "rowgate_http_requests_total");
        requests
            .map(|Sample(_, labels, n)| {
                assert_eq!(labels.len(), 4);
                let labels = ["tenant", "route", "method", "status"].map(|name| labels[name].clone());
                (labels, n.to_string().parse().expect("a whole number"))
            })
            .collect()
    }
}

/// Asks, and notes where it must be counted.
struct Asker {
    world: World,
    client: Client,
    asked: BTreeMap<[String; 4], u64>,
    refused: BTreeMap<(String, String), f64>,
}

impl Asker {
    async fn ask(
        &mut self,
        tenant: &str,
        route: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Reply {
        let reply = self.client.ask(method, &format!("{}{path}", self.world.url()), headers).await;
        let label = if method.starts_with("CANARY") { "other" } else { method };
        let status = reply.status.as_str();
        *self.asked.entry([tenant, route, label, status].map(str::to_owned)).or_default() += 1;
        if !reply.status.is_success() && method != "HEAD" {
            let code = reply.json()["error"]["code"].as_str().expect("a code").to_owned();
            *self.refused.entry((tenant.to_owned(), code)).or_default() += 1.0;
        }
        reply
    }
}

/// Seen to fail with the path as the route where none matched, and with the method as it was sent.
#[tokio::test]
async fn what_is_counted_is_what_was_asked_and_no_word_of_a_caller_is_shown() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.write("guest.yaml", GUEST);
    world.start().await;
    let (client, asked, refused) = (Client::new(), BTreeMap::new(), BTreeMap::new());
    let mut asker = Asker { world, client, asked, refused };
    let (admin, guest) = (asker.world.key("shop-admin"), asker.world.key("guest-key"));
    let invented = admin.replacen("shop:", "canary-tenant:", 1);
    let (key, other) = ([("X-API-Key", admin.as_str())], [("X-API-Key", guest.as_str())]);

    for n in 1..=7 {
        let reply = asker.ask("shop", COLLECTION, "GET", "/auth/shop/api/orders?$first=2", &key).await;
        assert_eq!(reply.status, 200, "{n}");
    }
    for (tenant, route, method, path, headers, times) in [
        ("shop", LISTING, "GET", "/auth/shop/api", &key[..], 3),
        ("shop", ROW, "GET", "/auth/shop/api/orders/id/1", &key, 2),
        ("shop", ROW, "HEAD", "/auth/shop/api/orders/id/1", &key, 2),
        ("shop", COLLECTION, "GET", "/auth/shop/api/canary-entity?$filter=canary", &key, 4),
        (
            "shop",
            COLLECTION,
            "GET",
            "/auth/shop/api/orders?$canary=canary",
            &[key[0], ("X-Canary", "canary")],
            1,
        ),
        ("shop", COLLECTION, "GET", "/auth/shop/api/orders", &[key[0], ("X-MS-API-ROLE", "canary")], 2),
        ("shop", "/api/auth/apikeys/exchange", "POST", "/api/auth/apikeys/exchange", &key, 1),
        ("-", "/.well-known/jwks.json", "GET", "/.well-known/jwks.json", &[], 1),
        ("-", COLLECTION, "OPTIONS", "/auth/canary/api/canary", &[("X-Request-Id", "canary")], 2),
        ("shop", COLLECTION, "DELETE", "/auth/shop/api/orders", &key, 2),
        ("shop", COLLECTION, "CANARY", "/auth/shop/api/orders", &key, 2),
        ("-", COLLECTION, "GET", "/auth/canary-tenant/api/orders", &[("X-API-Key", &invented)], 3),
        ("-", COLLECTION, "GET", "/auth/shop/api/orders", &[("X-API-Key", "canary")], 1),
        ("-", "-", "GET", "/canary/path", &key, 3),
        ("-", "-", "CANARY2", "/canary/path", &[], 1),
    ] {
        for _ in 0..times {
            asker.ask(tenant, route, method, path, headers).await;
        }
    }
    // The guest asks until it is told that it asks too often.
    while asker.ask("guest", LISTING, "GET", "/auth/guest/api", &other).await.status != 429 {}

    let page = Page::scrape(&asker.world, &asker.client).await;
    assert_eq!(page.requests(), asker.asked);
    let refusals = page.families.iter().find(|family| family.0 == "rowgate_refusals").expect("it is told");
    let counted: BTreeMap<_, _> =
        refusals.2.iter().map(|it| ((it.1["tenant"].clone(), it.1["code"].clone()), it.2)).collect();
    assert_eq!(counted, asker.refused);
    assert_eq!(counted[&("guest".to_owned(), "RateLimited".to_owned())], 1.0);
    let n_rows: u64 = asker.asked.iter().filter(|(it, _)| it[..2] == ["shop", ROW]).map(|(_, n)| n).sum();
    let duration = "rowgate_http_request_duration_seconds_count";
    assert_eq!(page.value(duration, &[("tenant", "shop"), ("route", ROW)]), Some(n_rows as f64));
    // 7 collections and 4 rows reached the database; what was refused before did not.
    let exchanges = page.value("rowgate_database_exchange_duration_seconds_count", &[("tenant", "shop")]);
    assert_eq!(exchanges, Some(11.0));

    for word in ["canary", "CANARY", "orders", "north", "dlk_", &admin["shop:".len()..]] {
        assert!(!page.text.contains(word), "{word} in {}", page.text);
    }
    for name in ["shop-admin", "guest-key"] {
        let id = asker.world.status("ApiKey", name)["apiKeyId"].as_str().expect("an id").to_owned();
        assert!(!page.text.contains(&id), "{name}");
    }
}

/// Seen to fail with a page that keeps every tenant it ever told of.
#[tokio::test]
async fn a_replica_tells_of_its_tenants_as_long_as_it_has_them() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.write("guest.yaml", GUEST);
    world.start().await;
    let client = Client::new();
    let key = world.key("shop-admin");
    let rows = format!("{}/auth/shop/api/orders?$first=1", world.url());
    let get = async || {
        assert_eq!(client.get(&rows, &[("X-API-Key", &key)]).await.status, 200);
    };
    get().await;
    let page = Page::scrape(&world, &client).await;
    let shop = [("tenant", "shop")];
    let value = |page: &Page, name: &str| page.value(name, &shop).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(page.value("rowgate_tenants", &[]), Some(2.0));
    assert_eq!(value(&page, "rowgate_database_up"), 1.0);
    assert!(1.0 <= value(&page, "rowgate_pool_connections_max"));
    assert_eq!(value(&page, "rowgate_pool_waiting_requests"), 0.0);
    for (state, n) in [("idle", 1.0), ("in_use", 0.0)] {
        let labels = [("tenant", "shop"), ("state", state)];
        assert_eq!(page.value("rowgate_pool_connections", &labels), Some(n), "{state}");
    }
    let look_ups = |page: &Page, of| {
        page.value("rowgate_key_lookups_total", &[("tenant", "shop"), ("of", of)]).expect("it is told")
    };
    assert_eq!((look_ups(&page, "known"), look_ups(&page, "stranger")), (0.0, 1.0));

    // A key that was seen before a new catalog is no stranger after it.
    let mut superuser = server.connect("shop").await;
    execute(&mut superuser, "update dl.state set generation = generation + 1").await;
    get().await;
    let after = Page::scrape(&world, &client).await;
    assert!(1.0 <= look_ups(&after, "known"));
    assert_eq!(look_ups(&after, "stranger"), 1.0);
    for name in ["rowgate_catalog_generation", "rowgate_catalog_loads_total"] {
        assert_eq!(value(&after, name), value(&page, name) + 1.0, "{name}");
    }
    assert_eq!(value(&after, "rowgate_catalog_load_failures_total"), 0.0);

    // What the kernel says of the process, at least as far as it can be told from outside.
    let of_process = |name: &str| after.value(name, &[]).unwrap_or_else(|| panic!("{name}"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.pid())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
    let peak: f64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!((1e6..=peak * 1024.0).contains(&of_process("process_resident_memory_bytes")));
    let now = jiff::Timestamp::now().as_second() as f64;
    assert!((now - 3_600.0..=now + 1.0).contains(&of_process("process_start_time_seconds")));
    assert!(0.0 < of_process("process_cpu_seconds_total") && 3.0 < of_process("process_open_fds"));
    assert_eq!(after.value("rowgate_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), Some(1.0));

    // Tenants that go take their labels with them.
    assert!(after.text.contains("tenant=\"guest\""));
    std::fs::remove_file(world.manifests().join("guest.yaml")).expect("it was written");
    until("a page without the guest", async || {
        let reply = client.get(&format!("{}/metrics", world.probes_url()), &[]).await;
        (!reply.body.contains("guest")).then_some(())
    })
    .await;
    let last = Page::scrape(&world, &client).await;
    assert_eq!(last.value("rowgate_tenants", &[]), Some(1.0));
}

/// What docs/operations.md promises is what there is.
#[tokio::test]
async fn the_readme_lists_every_metric() {
    let mut world = World::shop().await;
    world.start().await;
    let page = Page::scrape(&world, &Client::new()).await;
    let readme = std::fs::read_to_string(tests().join("../docs/operations.md")).expect("it is committed");
    for line in page.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("name and type");
        assert!(readme.contains(&format!("`{name}`")), "{name} is not in docs/operations.md");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
    }
    assert!(page.families.iter().all(|Family(_, kind, _)| kind != "unknown"));
}
