//! What is true of a document whatever it holds: validators take it, it has a tag, it dies with its key, it names its server.

use std::collections::BTreeSet;

use rowgate_dataplane::api::routes::routes;
use rowgate_tests::client::Client;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::world::World;
use serde_json::{Map, Value};

use super::fixture::{Fixture, KEYS, python};

#[tokio::test]
async fn validators_take_the_documents_and_every_example_in_them() {
    let fixture = Fixture::open().await;
    let mut documents = Map::new();
    for (tenant, key) in KEYS {
        documents.insert(key.to_owned(), fixture.document(tenant, key).await);
    }
    let looked = python("validate.py", &Value::Object(documents));
    for (_, key) in KEYS {
        assert!(40 < looked[key].as_u64().expect("a number"), "{looked}");
    }
}

/// A surface that is added to the routes and not to the document is found here.
#[tokio::test]
async fn every_route_is_in_the_document_of_a_key_that_may_do_everything() {
    let fixture = Fixture::open().await;
    let document = fixture.document("shop", "shop-admin").await;
    let paths = document["paths"].as_object().expect("an object");
    let documented: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            let pattern = pattern(path);
            let methods = item.as_object().expect("an object").keys();
            methods.map(move |method| (method.to_uppercase(), pattern.clone()))
        })
        .filter(|(method, _)| method != "PARAMETERS")
        .collect();
    let served: BTreeSet<(String, String)> =
        routes().iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
    assert_eq!(documented, served);
}

/// The pattern of the route that a path of the shop's document belongs to.
fn pattern(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["", "auth", "shop", "api"] => "/auth/{tenant}/api".to_owned(),
        ["", "auth", "shop", "api", _] => "/auth/{tenant}/api/{entity}".to_owned(),
        ["", "auth", "shop", "api", _, ..] => "/auth/{tenant}/api/{entity}/{*key}".to_owned(),
        ["", "api", "ddl", "aggregates", _] => "/api/ddl/aggregates/{entity}".to_owned(),
        ["", "auth", "shop", ..] => path.replacen("shop", "{tenant}", 1),
        _ => path.to_owned(),
    }
}

#[tokio::test]
async fn a_document_has_a_tag_and_is_asked_for_with_a_live_key_each_time() {
    const PATH: &str = "/auth/shop/openapi.json";
    let fixture = Fixture::open().await;
    let first = fixture.ask("north", "GET", PATH, &[]).await;
    let tag = first.header("etag").expect("a tag").to_owned();
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    let again = fixture.ask("north", "GET", PATH, &[("If-None-Match", &tag)]).await;
    assert_eq!((again.status.as_u16(), again.body.as_str()), (304, ""));
    let head = fixture.ask("north", "HEAD", PATH, &[]).await;
    assert_eq!((head.status.as_u16(), head.header("etag")), (200, Some(tag.as_str())));
    let packed = fixture.ask("north", "GET", PATH, &[("Accept-Encoding", "gzip")]).await;
    assert_ne!(packed.header("etag"), Some(tag.as_str()), "another encoding is another representation");
    let option = fixture.ask("north", "GET", &format!("{PATH}?$select=id"), &[]).await;
    assert_eq!(option.status, 400, "{option:?}");
    let other = fixture.ask("all-types", "GET", PATH, &[]).await;
    let stranger = Client::new().get(&fixture.url(PATH), &[]).await;
    assert_eq!((other.status.as_u16(), stranger.status.as_u16()), (401, 401));

    let wider = "      - entity: best_sellers\n        actions: [execute]\n---";
    let narrower = "---";
    fixture.world.edit("keys.yaml", wider, narrower);
    rowgate_tests::wait::until("a document without the call", async || {
        let now = fixture.ask("north", "GET", PATH, &[("If-None-Match", &tag)]).await;
        (now.status == 200 && !now.body.contains("best_sellers")).then_some(())
    })
    .await;
    fixture.world.edit("keys.yaml", "  name: north\n", "  name: north2\n");
    rowgate_tests::wait::until("the end of the key", async || {
        let now = fixture.ask("north", "GET", PATH, &[("If-None-Match", &tag)]).await;
        (now.status == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_server_is_where_the_caller_reached_us() {
    let mut world = World::founded_shop().await;
    let trusting = |command: &mut std::process::Command| {
        command.args(["--trusted-proxies", "127.0.0.1"]);
    };
    world.start_with(trusting).await;
    let (client, key, url) =
        (Client::new(), world.key("shop-admin"), format!("{}/auth/shop/openapi.json", world.url()));
    let forwarded = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "shop.example:8443")];
    let mut tags = BTreeSet::new();
    for (headers, server) in
        [(&[][..], world.url()), (&forwarded[..], "https://shop.example:8443".to_owned())]
    {
        let headers: Vec<_> =
            [("X-API-Key", key.as_str())].into_iter().chain(headers.iter().copied()).collect();
        let reply = client.get(&url, &headers).await;
        assert_eq!(reply.json()["servers"], serde_json::json!([{"url": server}]));
        tags.insert(reply.header("etag").expect("a tag").to_owned());
    }
    assert_eq!(tags.len(), 2, "another server is another document");
}

/// Seen to fail with a document that has the exchange whatever is served.
#[tokio::test]
async fn a_replica_of_one_surface_has_nothing_else_and_the_status_names_three_addresses() {
    let mut world = World::founded_shop().await;
    let divided = |command: &mut std::process::Command| {
        command.args(["--surfaces", "data", "--api-url", "https://api.example"]);
        command.args(["--auth-url", "https://auth.example/", "--ddl-url", "https://ddl.example"]);
    };
    world.start_with(divided).await;
    let expected = serde_json::json!({
        "rest": "https://api.example/auth/shop/api",
        "graphql": "https://api.example/auth/shop/graphql",
        "openapi": "https://api.example/auth/shop/openapi.json",
        "tokens": "https://auth.example/api/auth/apikeys/exchange",
        "ddl": "https://ddl.example/api/ddl",
    });
    assert_eq!(world.status("Tenant", "shop")["endpoints"], expected);
    let (client, key) = (Client::new(), world.key("shop-admin"));
    let headers = [("X-API-Key", key.as_str())];
    let own = client.get(&format!("{}/auth/shop/openapi.json", world.url()), &headers).await.json();
    assert!(own["paths"]["/auth/shop/api/orders"].is_object(), "{own}");
    assert!(own["paths"]["/api/auth/apikeys/exchange"].is_null(), "{own}");
    let exchanged = client.ask("POST", &format!("{}/api/auth/apikeys/exchange", world.url()), &headers).await;
    assert_eq!((exchanged.status.as_u16(), &exchanged.json()["error"]["code"]), (404, &"NotFound".into()));
    let rows = client.get(&world.shop_url("/orders?$first=1"), &headers).await;
    assert_eq!(rows.rows().len(), 1);
}

/// Seen to fail with routes that are served whatever the surfaces are.
#[tokio::test]
async fn a_replica_of_tokens_exchanges_keys_and_has_no_rows() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let root = world.state().join("dataplane.root");
    let plane = DataPlane::start_with(&world.socket(), &root, |command| {
        command.args(["--surfaces", "auth"]);
    })
    .await;
    let (client, key) = (Client::new(), world.key("shop-admin"));
    let headers = [("X-API-Key", key.as_str())];
    let exchanged = client.ask("POST", &format!("{}/api/auth/apikeys/exchange", plane.url()), &headers).await;
    assert_eq!(exchanged.status, 200, "{exchanged:?}");
    let bearer = format!("Bearer {}", exchanged.json()["token"].as_str().expect("a token"));
    let keys = client.get(&format!("{}/.well-known/jwks.json", plane.url()), &[]).await;
    assert_eq!(keys.status, 200, "{keys:?}");
    let rows = "/auth/shop/api/orders?$first=1";
    for headers in [headers, [("Authorization", bearer.as_str())]] {
        for (method, path) in
            [("GET", rows), ("GET", "/auth/shop/openapi.json"), ("POST", "/auth/shop/api/orders")]
        {
            let reply = client.ask(method, &format!("{}{path}", plane.url()), &headers).await;
            assert_eq!(
                (reply.status.as_u16(), &reply.json()["error"]["code"]),
                (404, &"NotFound".into()),
                "{method} {path}"
            );
        }
        // the replica of everything beside it takes both
        let reply = client.get(&format!("{}{rows}", world.url()), &headers).await;
        assert_eq!((reply.status.as_u16(), reply.rows().len()), (200, 1), "{reply:?}");
    }
}
