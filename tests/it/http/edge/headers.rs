//! Every route with every method: the headers that all answers carry, and OPTIONS and HEAD.

use rowgate_dataplane::api::routes::routes;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::world::World;

/// What no cache may keep for another caller, and that nobody but callers with the same headers may be given it.
fn is_private(reply: &Reply, here: &str) {
    let cache = reply.header("cache-control");
    let address = here.split(" with ").next().unwrap_or_default();
    let is_public = address.ends_with("/.well-known/jwks.json") && reply.status == 200;
    let wanted = match (is_public, reply.header("etag")) {
        (true, _) => "public, max-age=300",
        // who has it asks again before each use
        (false, Some(_)) => "private, no-cache",
        (false, None) => "private, no-store",
    };
    assert_eq!(cache, Some(wanted), "{here}");
    let vary = reply.header("vary").unwrap_or_else(|| panic!("no Vary: {here}")).to_ascii_lowercase();
    for name in ["x-api-key", "authorization", "x-ms-api-role", "accept-encoding", "origin"] {
        assert!(vary.split(", ").any(|listed| listed == name), "{here}: {vary}");
    }
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{here}");
    assert!(reply.header("x-request-id").is_some(), "{here}");
    assert_eq!(reply.header("content-type").is_some(), reply.status != 204, "{here}");
    assert!(reply.headers.keys().all(|name| !name.as_str().starts_with("access-control-")), "{here}");
}

/// Seen to fail with a `Cache-Control` that only rows carry.
#[tokio::test]
async fn every_answer_of_every_route_is_private_and_varies() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let (client, key) = (Client::new(), world.key("shop-admin"));
    let elsewhere = ["/", "/auth/shop/api/", "/auth/shop/api/absentee"].map(str::to_owned);
    let row = |path: &str| path.replace("{entity}", "orders").replace("{*key}", "id/1");
    // the answer to a good request never ends; its headers are looked at elsewhere
    let row = |path: &str| row(path).replace("events/stream", "events/stream?ops=none");
    let paths = routes().iter().map(|route| row(&route.path.replace("{tenant}", "shop"))).chain(elsewhere);
    for path in paths {
        let url = format!("{}{path}", world.url());
        for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
            for headers in [&[][..], &[("X-API-Key", &*key)], &[("Origin", "https://elsewhere.example")]] {
                let reply = client.ask(method, &url, headers).await;
                is_private(&reply, &format!("{method} {path} with {headers:?}: {reply:?}"));
            }
        }
    }
}

/// Seen to fail with a list of methods that leaves the table's POST out.
#[tokio::test]
async fn options_names_the_methods_of_an_address_to_everybody() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let client = Client::new();
    for (path, allow) in [
        ("/auth/shop/api", Some("GET, HEAD, OPTIONS")),
        ("/auth/shop/api/orders", Some("GET, HEAD, POST, OPTIONS")),
        ("/auth/shop/api/orders/id/1", Some("GET, HEAD, PATCH, PUT, DELETE, OPTIONS")),
        ("/auth/nobody/api/nothing/at/all", Some("GET, HEAD, PATCH, PUT, DELETE, OPTIONS")),
        ("/auth/%ff/api/%00", Some("GET, HEAD, POST, OPTIONS")),
        ("/api/auth/apikeys/exchange", Some("POST, OPTIONS")),
        ("/.well-known/jwks.json", Some("GET, HEAD, OPTIONS")),
        ("/auth/shop", None),
        ("/nothing", None),
    ] {
        let reply = client.ask("OPTIONS", &format!("{}{path}", world.url()), &[]).await;
        assert_eq!(reply.header("allow"), allow, "{path}");
        assert_eq!(reply.status.as_u16(), if allow.is_some() { 204 } else { 404 }, "{path}");
        assert_eq!(reply.body.is_empty(), allow.is_some(), "{path}");
    }
}
