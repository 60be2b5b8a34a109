//! HTTP as callers meet it: links that can be followed, names and values with every character, headers, and errors of
//! one shape.

use rowgate_core::problem::Code;
use rowgate_dataplane::api::routes::routes;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::world::World;
use serde_json::{Value, json};

const LABELS: &str = "
    create table shop.labels (name text, language text, primary key (name, language));
    insert into shop.labels values ('a/b', 'en'), ('it''s', 'en'), ('100%', 'en'), ('%2F', 'en'), ('ä ö', 'de'),
        ('a+b', 'en'), ('a&b=c', 'en'), ('?#', 'en'), ('', 'en'), ('..', 'en');
";

struct Shop {
    world: World,
    client: Client,
    key: String,
}

impl Shop {
    async fn open() -> Shop {
        let mut world = World::founded_shop_with(|world| {
            world.shop_script(LABELS);
            world.shop_entity("labels");
            world.shop_permission("labels");
        })
        .await;
        world.start().await;
        let key = world.key("shop-admin");
        Shop { world, client: Client::new(), key }
    }

    fn url(&self, path: &str) -> String {
        self.world.shop_url(path)
    }

    async fn get(&self, path: &str) -> Reply {
        self.client.get(&self.url(path), &[("X-API-Key", &self.key)]).await
    }
}

/// Seen to fail with a `nextLink` without host.
#[tokio::test]
async fn a_next_link_is_absolute_and_can_be_pasted() {
    let shop = Shop::open().await;
    let all = shop.get("/orders?$first=-1&$select=id,comment&$orderby=comment%20desc").await.rows();
    // With a filter that every row passes and that needs escapes.
    let mut link = shop.url("/orders?$first=70&$orderby=comment%20desc&$select=id,comment&$filter=not%20(comment%20eq%20'a%26b%27%27%23')%20or%20comment%20eq%20null");
    let mut pages = Vec::new();
    loop {
        // As pasted: a new caller, who knows nothing but the link and the key.
        let reply = Client::new().get(&link, &[("X-API-Key", &shop.key)]).await;
        pages.push(reply.rows());
        match &reply.json()["nextLink"] {
            Value::Null => break,
            next => link = next.as_str().expect("a text").to_owned(),
        }
        assert!(link.starts_with(&shop.world.url()), "{link}");
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [70, 70, 70, 70, 20]);
    assert_eq!(pages.concat(), all);
}

#[tokio::test]
async fn key_values_hold_any_character_and_are_decoded_once() {
    let shop = Shop::open().await;
    for (escaped, name, language) in [
        ("a%2Fb", "a/b", "en"),
        ("a%2fb", "a/b", "en"),
        ("it%27s", "it's", "en"),
        ("it's", "it's", "en"),
        ("100%25", "100%", "en"),
        ("%252F", "%2F", "en"),
        ("%C3%A4%20%C3%B6", "ä ö", "de"),
        ("a+b", "a+b", "en"),
        ("a%2Bb", "a+b", "en"),
        ("a&b=c", "a&b=c", "en"),
        ("%3F%23", "?#", "en"),
        ("", "", "en"),
    ] {
        let row = [json!({"name": name, "language": language})];
        for path in [
            format!("/labels/name/{escaped}/language/{language}"),
            format!("/labels/language/{language}/name/{escaped}"),
        ] {
            assert_eq!(shop.get(&path).await.rows(), row, "{path}");
        }
        let filter =
            escaped.replace("'", "''").replace("%27", "%27%27").replace('&', "%26").replace('+', "%2B");
        let path = format!("/labels?$filter=name%20eq%20'{filter}'");
        assert_eq!(shop.get(&path).await.rows(), row, "{path}");
    }
    for absent in ["a%252Fb", "it%27%27s", "100%2525"] {
        let path = format!("/labels/name/{absent}/language/en");
        assert_eq!(shop.get(&path).await.rows(), Vec::<Value>::new(), "{path}");
    }
    for broken in
        ["/labels/name/%zz/language/en", "/labels/name/%ff/language/en", "/labels/name/%00/language/en"]
    {
        assert_eq!(shop.get(broken).await.status, 400, "{broken}");
    }
    assert_eq!(shop.get("/labels/name/a/b/language/en").await.status, 400, "a bare slash ends a part");
}

/// What all errors have in common. Seen to fail with an error that has no `details`.
pub(crate) fn assert_shape(reply: &Reply, code: Code, what: &str) {
    assert_eq!(reply.status.as_u16(), code.status(), "{what}: {reply:?}");
    let body = reply.json();
    let error = body["error"].as_object().unwrap_or_else(|| panic!("{what}: {reply:?}"));
    assert_eq!(body.as_object().map(serde_json::Map::len), Some(1), "{what}: {reply:?}");
    let mut names: Vec<_> = error.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["code", "details", "message", "requestId", "status"], "{what}");
    assert_eq!(
        (&error["code"], &error["status"]),
        (&json!(code), &json!(code.status())),
        "{what}: {reply:?}"
    );
    assert_eq!(error["requestId"].as_str(), reply.header("x-request-id"), "{what}");
    let message = error["message"].as_str().expect("a text");
    assert!(!message.is_empty() && !message.ends_with('.'), "{what}: {message}");
    let details = error["details"].as_array().expect("a list");
    assert!(details.iter().all(Value::is_string), "{what}: {reply:?}");
    // Words of ours: nothing that PostgreSQL or a library says. A type alone has the name that PostgreSQL gives it.
    let words = reply.body.replace("shop.order_state", "").replace("relationship", "");
    for foreign in ["SQLSTATE", "relation", "syntax error", "sqlx", "select ", "shop."] {
        assert!(!words.contains(foreign), "{what}: {reply:?}");
    }
}

#[tokio::test]
async fn other_methods_are_405_with_those_that_are_allowed() {
    let shop = Shop::open().await;
    for route in routes() {
        let path =
            route.path.replace("{tenant}", "shop").replace("{entity}", "orders").replace("{*key}", "id/1");
        let url = format!("{}{path}", shop.world.url());
        let mut answered = vec!["OPTIONS"];
        for beside in routes().iter().filter(|beside| beside.path == route.path) {
            answered.push(beside.method);
            answered.extend((beside.method == "GET").then_some("HEAD"));
        }
        answered.sort_unstable();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
            if answered.contains(&method) {
                continue;
            }
            let reply = shop.client.ask(method, &url, &[("X-API-Key", &shop.key)]).await;
            assert_shape(&reply, Code::MethodNotAllowed, &format!("{method} {path}"));
            let mut allowed: Vec<_> =
                reply.header("allow").expect("Allow").split(',').map(str::trim).collect();
            allowed.sort_unstable();
            assert_eq!(allowed, answered, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_answer_carries_its_request_id_and_is_kept_by_no_cache() {
    let shop = Shop::open().await;
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> =
            [("X-API-Key", &*shop.key)].into_iter().chain(headers.iter().copied()).collect();
        shop.client.get(&shop.url(path), &headers).await
    };
    for path in ["", "/orders?$first=1", "/orders/id/1", "/absentee", "/orders?$first=0", "/orders/"] {
        let reply = ask(path, &[("X-Request-Id", "mine-1.2:3_4")]).await;
        assert_eq!(reply.header("x-request-id"), Some("mine-1.2:3_4"), "{path}");
        assert_eq!(reply.header("cache-control"), Some("private, no-store"), "{path}");
        let vary = reply.header("vary").expect("Vary").to_ascii_lowercase();
        assert!(vary.contains("x-api-key") && vary.contains("x-ms-api-role"), "{path}: {vary}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(reply.header("content-type").is_some_and(|it| it.starts_with("application/json")), "{path}");
    }
    let long = "x".repeat(65);
    for unfit in ["", "a b", "a\"b", "<script>", &long] {
        let reply = ask("/absentee", &[("X-Request-Id", unfit)]).await;
        let made = reply.header("x-request-id").expect("one of ours").to_owned();
        assert_ne!(made, unfit);
        assert_eq!(reply.json()["error"]["requestId"], made);
        assert!((1..=64).contains(&made.len()) && made.bytes().all(|c| c.is_ascii_alphanumeric()), "{made}");
    }
    // No two of ours are the same.
    let ids = [ask("", &[]).await, ask("", &[]).await].map(|it| it.header("x-request-id").map(str::to_owned));
    assert_ne!(ids[0], ids[1]);
    // CORS is off: a page of another origin reads nothing.
    for method in ["GET", "OPTIONS"] {
        let headers = [("Origin", "https://elsewhere.example"), ("Access-Control-Request-Method", "GET")];
        let reply = shop.client.ask(method, &shop.url("/orders"), &headers).await;
        assert!(reply.headers.keys().all(|name| !name.as_str().starts_with("access-control-")), "{reply:?}");
    }
}

/// The limit is 16 KiB for the request line and all headers; what is within is served, and one that is beyond costs its
/// sender the connection and nobody else anything.
#[tokio::test]
async fn headers_beyond_16_kib_are_refused() {
    let shop = Shop::open().await;
    let status = async |bytes: usize| {
        let filler = "x".repeat(bytes);
        shop.client.get(&shop.url("/orders"), &[("X-API-Key", &shop.key), ("X-Filler", &filler)]).await.status
    };
    assert_eq!(status(15 * 1024).await, 200);
    assert_eq!(status(17 * 1024).await, 431);
    assert_eq!(status(15 * 1024).await, 200);
}
