//! Browsers: pages of listed origins may call a tenant, all others may not, and nobody learns which tenants there are.

use reqwest::StatusCode;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;

const APP: &str = "https://app.example";

const MORE: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: quiet}
spec: {database: {}}
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: open}
spec: {cors: {origins: ['*', 'https://other.example']}}
";

struct Shop {
    world: World,
    client: Client,
    key: String,
}

impl Shop {
    async fn open() -> Shop {
        let origins = format!("  cors: {{origins: ['{APP}', 'http://localhost:3000']}}\n  entities:\n");
        let mut world = World::founded_shop_with(|world| {
            world.edit("tenant.yaml", "  entities:\n", &origins);
            world.write("more.yaml", MORE);
        })
        .await;
        world.start().await;
        let key = world.key("shop-admin");
        Shop { world, client: Client::new(), key }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        let headers: Vec<_> = headers.iter().copied().chain([("X-Request-Id", "same")]).collect();
        self.client.ask(method, &format!("{}{path}", self.world.url()), &headers).await.tellable()
    }

    async fn preflight(&self, path: &str, origins: &[&str]) -> Reply {
        let asked = [
            ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Headers", "x-api-key,x-anything"),
        ];
        let headers: Vec<_> = origins.iter().map(|origin| ("Origin", *origin)).chain(asked).collect();
        self.ask("OPTIONS", path, &headers).await
    }
}

/// The names of the headers of CORS in an answer.
fn opened(reply: &Reply) -> Vec<&str> {
    reply
        .headers
        .keys()
        .map(|name| name.as_str())
        .filter(|name| name.starts_with("access-control-"))
        .collect()
}

#[tokio::test]
async fn a_preflight_of_a_listed_origin_is_told_what_it_may_send() {
    let shop = Shop::open().await;
    for (path, origin, told, methods) in [
        ("/auth/shop/api/orders", APP, APP, "GET,HEAD,POST"),
        ("/auth/shop/api/absentee/id/1", APP, APP, "GET,HEAD,PATCH,PUT,DELETE"),
        ("/auth/%73hop/api", APP, APP, "GET,HEAD"),
        ("/auth/shop/api", "http://localhost:3000", "http://localhost:3000", "GET,HEAD"),
        ("/auth/open/api", "https://anybody.example", "*", "GET,HEAD"),
        ("/auth/open/api", "https://other.example", "*", "GET,HEAD"),
    ] {
        let reply = shop.preflight(path, &[origin]).await;
        assert_eq!((reply.status, &*reply.body), (StatusCode::NO_CONTENT, ""), "{path} {origin}: {reply:?}");
        assert_eq!(reply.header("access-control-allow-origin"), Some(told), "{path} {origin}");
        assert_eq!(reply.header("access-control-allow-methods"), Some(methods), "{path} {origin}");
        let sent = reply.header("access-control-allow-headers").expect("a list").to_ascii_lowercase();
        for name in ["x-api-key", "authorization", "x-ms-api-role", "x-request-id"] {
            assert!(sent.split(", ").any(|listed| listed == name), "{sent}");
        }
        assert!(!sent.contains("anything") && !sent.contains('*'), "{sent}");
        assert_eq!(reply.header("access-control-max-age"), Some("600"));
        assert_eq!(reply.header("access-control-allow-credentials"), None);
        assert!(reply.header("vary").is_some_and(|vary| vary.contains("Origin")));
    }
}

/// Seen to fail with every origin allowed, with a prefix of the origin compared, and with another refusal for a tenant
/// that there is not.
#[tokio::test]
async fn all_other_preflights_get_one_answer() {
    let shop = Shop::open().await;
    let mut refusals = Vec::new();
    for (path, origins) in [
        ("/auth/shop/api/orders", &["https://elsewhere.example"][..]),
        ("/auth/shop/api/orders", &["https://app.example.evil"]),
        ("/auth/shop/api/orders", &["https://app.exampl"]),
        ("/auth/shop/api/orders", &["http://app.example"]),
        ("/auth/shop/api/orders", &["https://app.example:443"]),
        ("/auth/shop/api/orders", &["https://APP.example"]),
        ("/auth/shop/api/orders", &["https://app.example/"]),
        ("/auth/shop/api/orders", &["null"]),
        ("/auth/shop/api/orders", &["*"]),
        ("/auth/shop/api/orders", &[""]),
        ("/auth/shop/api/orders", &[APP, "https://elsewhere.example"]),
        ("/auth/shop/api/orders", &[APP, APP]),
        ("/auth/SHOP/api/orders", &[APP]),
        ("/auth/quiet/api/orders", &[APP]),
        ("/auth/nobody/api/orders", &[APP]),
        ("/auth/%ff/api/orders", &[APP]),
        ("/auth/%zz/api", &[APP]),
        ("/api/auth/apikeys/exchange", &[APP]),
        ("/.well-known/jwks.json", &[APP]),
    ] {
        let reply = shop.preflight(path, origins).await;
        assert_eq!(reply.status, 403, "{path} {origins:?}: {reply:?}");
        assert_eq!(opened(&reply), Vec::<&str>::new(), "{path} {origins:?}");
        refusals.push(reply);
    }
    for other in &refusals {
        assert_eq!(*other, refusals[0]);
    }
    assert_eq!(refusals[0].json()["error"]["code"], "Forbidden");
}

/// Seen to fail with refusals that a page cannot read.
#[tokio::test]
async fn a_page_of_a_listed_origin_can_read_every_answer() {
    let shop = Shop::open().await;
    let key = ("X-API-Key", &*shop.key);
    let long = "x".repeat(17 * 1024);
    for (method, path, header, status) in [
        ("GET", "/auth/shop/api/orders", key, 200),
        ("GET", "/auth/shop/api", key, 200),
        ("GET", "/auth/shop/api/orders", ("X-API-Key", "x"), 401),
        ("GET", "/auth/shop/api/absentee", key, 404),
        ("GET", "/auth/shop/nothing", key, 404),
        ("GET", "/auth/shop/api/orders?$first=0", key, 400),
        ("DELETE", "/auth/shop/api/orders", key, 405),
        ("GET", "/auth/shop/api/orders", ("X-Filler", &*long), 431),
        ("OPTIONS", "/auth/shop/api/orders", key, 204),
    ] {
        let reply = shop.ask(method, path, &[header, ("Origin", APP)]).await;
        let here = format!("{method} {path}: {reply:?}");
        assert_eq!(reply.status.as_u16(), status, "{here}");
        assert_eq!(
            opened(&reply),
            ["access-control-allow-origin", "access-control-expose-headers"],
            "{here}"
        );
        assert_eq!(reply.header("access-control-allow-origin"), Some(APP), "{here}");
        let shown = reply.header("access-control-expose-headers").expect("a list");
        for name in ["X-Request-Id", "Retry-After", "Location"] {
            assert!(shown.contains(name), "{here}");
        }
        // The same answer without the headers for browsers, to a page of another origin and to no page.
        let other = shop.ask(method, path, &[header, ("Origin", "https://elsewhere.example")]).await;
        assert_eq!(opened(&other), Vec::<&str>::new(), "{other:?}");
        assert_eq!(shop.ask(method, path, &[header]).await, other);
    }
    for path in ["/auth/quiet/api", "/auth/nobody/api"] {
        assert_eq!(
            opened(&shop.ask("GET", path, &[key, ("Origin", APP)]).await),
            Vec::<&str>::new(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn an_origin_comes_and_goes_with_the_manifest() {
    let shop = Shop::open().await;
    let reads = async |origin| shop.ask("GET", "/auth/shop/api", &[("Origin", origin)]).await;
    let other = "https://other.example";
    assert!(!opened(&reads(APP).await).is_empty() && opened(&reads(other).await).is_empty());
    shop.world.edit("tenant.yaml", APP, other);
    until("the new origin", async || (!opened(&reads(other).await).is_empty()).then_some(())).await;
    assert_eq!(opened(&reads(APP).await), Vec::<&str>::new());
}
