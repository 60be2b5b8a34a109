//! What the page may ask through its proxy, and what everything else is refused.

use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{OWN_PAGE_ONLY, Shop};

const ROWS: &str = "GET /console/proxy/shop/shop-admin/auth/shop/api/customers?$first=2";
const WRITE: &str = "POST /console/proxy/shop/shop-admin/auth/shop/api/customers";

/// Seen to fail without the look at `Host`, at its port, at `Origin`, at its absence, at `Sec-Fetch-Site` and at
/// `Upgrade`.
#[tokio::test]
async fn only_the_page_is_answered() {
    let shop = Shop::open().await;
    let origin = shop.world.url();
    let host = origin.trim_start_matches("http://");
    let port = host.rsplit(':').next().expect("a port");
    let own = ("Origin", origin.as_str());
    let same = ("Sec-Fetch-Site", "same-origin");
    let (rebound, nearby) = (format!("evil.example:{port}"), "127.0.0.1:1".to_owned());
    let of_rebound = format!("http://{rebound}");
    for (line, headers) in [
        ("GET /", vec![("Host", rebound.as_str())]),
        ("GET /", vec![("Host", rebound.as_str()), ("Origin", &of_rebound), same]),
        ("GET /", vec![("Host", nearby.as_str())]),
        ("GET /", vec![("Host", "127.0.0.1")]),
        ("GET /", vec![("Sec-Fetch-Site", "cross-site")]),
        ("GET /console/assets/console.js", vec![("Sec-Fetch-Site", "same-site")]),
        ("GET /console/keys.json", vec![]),
        ("GET /console/keys.json", vec![("Origin", "http://evil.example")]),
        ("GET /console/keys.json", vec![("Sec-Fetch-Site", "none")]),
        (ROWS, vec![]),
        (ROWS, vec![("Host", rebound.as_str()), ("Origin", &of_rebound), same]),
        (ROWS, vec![("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")]),
        (ROWS, vec![("Origin", "null")]),
        (ROWS, vec![own, ("Sec-Fetch-Site", "cross-site")]),
        (ROWS, vec![own, ("Sec-Fetch-Site", "same-site")]),
        (ROWS, vec![("Sec-Fetch-Site", "none")]),
        (ROWS, vec![same, ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]),
        (ROWS, vec![("Origin", "http://evil.example"), ("Upgrade", "websocket")]),
        (WRITE, vec![]),
        (WRITE, vec![same]),
        (WRITE, vec![("Origin", "null"), same]),
        (WRITE, vec![("Origin", "http://evil.example"), same]),
        (
            "OPTIONS /console/proxy/shop/shop-admin/auth/shop/api/customers",
            vec![("Origin", "http://evil.example")],
        ),
    ] {
        let reply = shop.ask(line, &headers, "").await;
        assert_eq!(reply.status, 403, "{line} {headers:?}: {reply:?}");
        assert!(reply.body.contains(OWN_PAGE_ONLY), "{line} {headers:?}: {reply:?}");
        assert!(!reply.headers.contains("access-control"), "{line} {headers:?}: {reply:?}");
    }
    for (line, headers) in [
        ("GET /", vec![]),
        ("GET /", vec![("Sec-Fetch-Site", "none")]),
        (ROWS, vec![same]),
        (ROWS, vec![own]),
    ] {
        assert_eq!(shop.ask(line, &headers, "").await.status, 200, "{line} {headers:?}");
    }
}

/// Seen to fail without the look at where a request goes, at the exchange, and at parts that climb.
#[tokio::test]
async fn the_proxy_leads_to_the_tenant_of_the_key_and_nowhere_else() {
    let shop = Shop::open().await;
    for path in [
        "shop/shop-admin/auth/other/api",
        "shop/shop-admin/auth/SHOP/api",
        "other/shop-admin/auth/shop/api",
        "shop/shop-admin/api/auth/apikeys/exchange",
        "shop/shop-admin/.well-known/jwks.json",
        "shop/shop-admin/auth/shop/../../api/auth/apikeys/exchange",
        "shop/shop-admin/auth/shop/%2e%2e/%2e%2e/api/auth/apikeys/exchange",
        "shop/shop-admin/auth/shop/..%2f..%2fapi/auth/apikeys/exchange",
        "shop/shop-admin/api/ddl/../auth/apikeys/exchange",
        "shop/shop-admin//auth/shop/api",
        "shop/shop-admin/auth/shop//api",
        "shop/shop-admin/console/proxy/shop/north/auth/shop/api",
        "shop/shop-admin/",
        "shop/shop-admin",
    ] {
        for method in ["GET", "POST"] {
            let reply = shop.page(&format!("{method} /console/proxy/{path}"), &[], "").await;
            assert_eq!(reply.status, 403, "{method} {path}: {reply:?}");
            assert!(reply.body.contains("the console forwards only"), "{method} {path}: {reply:?}");
        }
    }
    let unheard_of = shop.page("GET /console/proxy/shop/nothing/auth/shop/api", &[], "").await;
    assert_eq!(unheard_of.status, 404, "{unheard_of:?}");
    // another tenant with a key that is none of its own
    let foreign = shop.page("GET /console/proxy/other/shop-admin/auth/other/api", &[], "").await;
    assert_eq!(foreign.status, 404, "{foreign:?}");
    for line in ["POST /", "DELETE /console/keys.json", "GET /console", "GET /console/assets/../keys.json"] {
        assert_eq!(shop.page(line, &[], "").await.status, 404, "{line}");
    }
}

/// Seen to fail where all headers are forwarded.
#[tokio::test]
async fn the_page_asks_with_the_key_of_its_choice_and_never_sees_it() {
    let shop = Shop::open().await;
    let page = shop.page("GET /", &[], "").await;
    assert_eq!((page.status, page.body.as_str()), (200, "<title>a page</title>"));
    for header in [
        "content-security-policy: default-src 'self'; worker-src 'self' blob:; ",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-resource-policy: same-origin",
        "cache-control: private, no-store",
        "content-type: text/html",
    ] {
        assert!(page.headers.contains(header), "{header}: {page:?}");
    }
    let keys = shop.page("GET /console/keys.json", &[], "").await.json();
    let listed: Vec<_> =
        keys.as_array().expect("a list").iter().map(|key| (&key["name"], &key["scoped"])).collect();
    let expected =
        [("north", true), ("shop-admin", false), ("south", true)].map(|(name, is)| (json!(name), json!(is)));
    assert_eq!(listed, expected.iter().map(|(name, is)| (name, is)).collect::<Vec<_>>());

    let customers = |key: &str| format!("GET /console/proxy/shop/{key}/auth/shop/api/customers");
    assert_eq!(shop.page(&customers("shop-admin"), &[], "").await.rows(), 80);
    assert_eq!(shop.page(&customers("north"), &[], "").await.rows(), 40);
    // what the browser holds of its own counts for nothing
    let (own, other) = (shop.world.key("shop-admin"), shop.world.key("south"));
    for header in [
        ("X-API-Key", own.as_str()),
        ("Authorization", "Bearer x"),
        ("Cookie", "a=b"),
        ("X-MS-API-ROLE", "postgres"),
        ("X-API-Key", other.as_str()),
    ] {
        assert_eq!(shop.page(&customers("north"), &[header], "").await.rows(), 40, "{}", header.0);
    }
    let forwarded = [
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "https"),
        ("Forwarded", "host=evil.example"),
    ];
    let next = shop.page(&format!("{}?$first=1", customers("north")), &forwarded, "").await.json();
    let next = next["nextLink"].as_str().expect("there are more").to_owned();
    assert!(next.starts_with(&format!("{}/auth/shop/api/customers?", shop.world.url())), "{next}");

    let ada = r#"{"name": "Ada", "email": "ada@example.com", "region": "north", "signedUpOn": "2026-11-21"}"#;
    let json = ("Content-Type", "application/json");
    let write = |key: &str| format!("POST /console/proxy/shop/{key}/auth/shop/api/customers");
    assert_eq!(shop.page(&write("shop-admin"), &[json], ada).await.status, 201);
    assert_eq!(shop.page(&write("north"), &[json], ada).await.status, 403);
    let query = r#"{"query": "{ customers(first: 2) { items { name } } }"}"#;
    let graphql = shop.page("POST /console/proxy/shop/north/auth/shop/graphql", &[json], query).await;
    assert_eq!(graphql.json()["data"]["customers"]["items"].as_array().map(Vec::len), Some(2), "{graphql:?}");
    let grouped = r#"{"groupBy": ["region"], "aggregations": {"n": {"function": "count"}}}"#;
    let groups =
        shop.page("POST /console/proxy/shop/north/api/ddl/aggregates/customers", &[json], grouped).await;
    assert!([200, 400].contains(&groups.status), "it reaches the surface: {groups:?}");

    let large = format!("{{\"query\": \"{}\"}}", " ".repeat(1 << 20));
    let large = shop.page("POST /console/proxy/shop/north/auth/shop/graphql", &[json], &large).await;
    assert_eq!(large.status, 413, "{large:?}");
}

/// Seen to fail without the look at the manifests, and without the one at the status.
#[tokio::test]
async fn a_key_that_ends_disappears() {
    let shop = Shop::open().await;
    let names = async || {
        let keys = shop.page("GET /console/keys.json", &[], "").await.json();
        let names = keys.as_array().expect("a list").iter();
        names.map(|key| key["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names().await, "north shop-admin south");
    shop.world.edit(
        "keys.yaml",
        "  claims:\n    region: north\n",
        "  revoked: true\n  claims:\n    region: north\n",
    );
    until("the end of a revoked key", async || (names().await == "shop-admin south").then_some(())).await;
    let reply = shop.page("GET /console/proxy/shop/north/auth/shop/api", &[], "").await;
    assert_eq!(reply.status, 404, "{reply:?}");

    let keys = std::fs::read_to_string(shop.world.manifests().join("keys.yaml")).expect("it is there");
    let (others, _south) = keys.rsplit_once("\n---\n").expect("south stands last");
    shop.world.write("keys.yaml", others);
    until("the end of a deleted key", async || (names().await == "shop-admin").then_some(())).await;
}

/// Seen to fail where a key that is there is not read again.
#[tokio::test]
async fn a_key_with_a_new_secret_goes_on() {
    let shop = Shop::open().await;
    let before = shop.world.key("north");
    std::fs::remove_file(shop.world.state().join("secrets/default/north.yaml"))
        .expect("the key has a Secret");
    until("the end of the lost secret", async || {
        (shop.world.get(&before, "/auth/shop/api").await.status == 401).then_some(())
    })
    .await;
    let rows = "GET /console/proxy/shop/north/auth/shop/api/customers?$first=1";
    until("rows with the new secret", async || (shop.page(rows, &[], "").await.status == 200).then_some(()))
        .await;
}

/// Seen to fail with a proxy that passes every request on.
#[tokio::test]
async fn a_page_gets_no_secret_of_a_webhook() {
    let shop = Shop::open().await;
    let json = ("Content-Type", "application/json");
    let draft = r#"{"name": "orders", "url": "https://example.com/hooks"}"#;
    let why = "the answer to this request holds a secret, which the console gives to no page; send the request with curl and the \
               header X-API-Key";
    for path in ["", "/", "/01k0000000000000000000000a/secret/rotate"] {
        let line = format!("POST /console/proxy/shop/shop-admin/api/ddl/events/webhooks{path}");
        let reply = shop.page(&line, &[json], draft).await;
        assert_eq!((reply.status, reply.json()["error"]["message"].as_str()), (403, Some(why)), "{line}");
    }
    let list = shop.page("GET /console/proxy/shop/shop-admin/api/ddl/events/webhooks", &[], "").await;
    assert_eq!((list.status, list.json()), (200, json!({"subscriptions": []})));
}
