//! A document against the server: what it has is answered, what it has not is refused, and every example is taken.

use serde_json::{Value, json};

use super::fixture::{Fixture, KEYS};

/// Names that a key has nothing to do with.
const HIDDEN: [(&str, &str, &[&str]); 3] = [
    (
        "shop",
        "south",
        &["email", "products", "stock", "unit_price", "order_summary", "best_sellers", "place_order"],
    ),
    ("shop", "north", &["place_order"]),
    ("types", "few", &["an_integer", "a_mood", "so \\\"so", "versioned", "shape", "loud", "idle_call"]),
];

/// Those of the names that stand in the document as words.
fn found<'a>(document: &Value, names: &[&'a str]) -> Vec<&'a str> {
    let text = document.to_string();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let stands = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            !is_word(before.chars().next_back()) && !is_word(after.chars().next())
        })
    };
    names.iter().copied().filter(|name| stands(name)).collect()
}

#[tokio::test]
async fn what_a_key_does_not_have_is_not_in_its_document() {
    let fixture = Fixture::open().await;
    for (tenant, key, names) in HIDDEN {
        let mut document = fixture.document(tenant, key).await;
        assert_eq!(found(&document, names), [""; 0], "{key}");
        // the same look finds one that is put in
        document["components"]["schemas"]["x"]["properties"][names[0]] = json!({"type": "string"});
        assert_eq!(found(&document, names).first(), names.first(), "{key}");
    }
    let all = fixture.document("shop", "shop-admin").await;
    assert_eq!(found(&all, HIDDEN[0].2), HIDDEN[0].2, "who has them sees them");
}

/// Of one address: what the document says of each method, and what the server does.
async fn compare(fixture: &Fixture, key: &str, item: Option<&Value>, path: &str, methods: &[&str]) -> usize {
    for method in methods {
        let is_documented = item.is_some_and(|item| !item[method.to_lowercase()].is_null());
        // what may be sent is refused for what it holds, and the rest whatever it holds
        let body = match *method {
            "GET" | "DELETE" => "",
            _ if is_documented => "{\"no such field\": 1}",
            _ => "{}",
        };
        let reply = fixture.send(key, method, path, &[], body).await;
        let (code, message) = match reply.status.as_u16() {
            200..300 => (String::new(), String::new()),
            _ => ["code", "message"]
                .map(|it| reply.json()["error"][it].as_str().expect("a text").to_owned())
                .into(),
        };
        let codes = ["EntityNotFound", "Forbidden", "MethodNotAllowed", "DirectDeleteBlocked", "NotFound"];
        let is_refused = codes.contains(&&*code) || message.contains("the database generates the keys");
        assert_eq!(is_documented, !is_refused, "{key}: {method} {path}: {reply:?}");
    }
    methods.len()
}

/// Seen to fail with a document that has DELETE wherever rows are read.
#[tokio::test]
async fn each_method_of_each_entity_is_documented_where_the_server_takes_it() {
    let fixture = Fixture::open().await;
    let mut n = 0;
    for (tenant, key) in KEYS {
        let all = if tenant == "shop" { "shop-admin" } else { "all-types" };
        let (all, own) = (fixture.document(tenant, all).await, fixture.document(tenant, key).await);
        let base = format!("/auth/{tenant}/api/");
        for (path, item) in all["paths"].as_object().expect("an object") {
            let Some(rest) = path.strip_prefix(&base) else { continue };
            let item_of_own = own["paths"].get(path);
            n += match rest.contains('/') {
                false => compare(&fixture, key, item_of_own, path, &["GET", "POST"]).await,
                true => {
                    let path = absent_row(path, item);
                    compare(&fixture, key, item_of_own, &path, &["GET", "PATCH", "PUT", "DELETE"]).await
                }
            };
        }
    }
    assert!(100 < n, "{n}");
}

/// The address of a row that is not there.
fn absent_row(path: &str, item: &Value) -> String {
    item["parameters"].as_array().expect("a list").iter().fold(path.to_owned(), |path, parameter| {
        let name = parameter["name"].as_str().expect("a text");
        let value = match parameter["schema"]["type"].as_str() {
            Some("integer" | "number") => "987654".to_owned(),
            _ => parameter["example"].as_str().expect("a text").to_owned(),
        };
        path.replace(&format!("{{{name}}}"), &value)
    })
}

/// The examples of a tenant without rows, sent in an order in which each of them can be taken.
#[tokio::test]
async fn every_example_is_taken() {
    let fixture = Fixture::open().await;
    let document = fixture.document("types", "all-types").await;
    let (schemas, shared) = (&document["components"]["schemas"], &document["components"]["parameters"]);
    let mut n = 0;
    for (path, item) in document["paths"].as_object().expect("an object") {
        let Some(rest) = path.strip_prefix("/auth/types/api/") else { continue };
        let entity = rest.split('/').next().expect("a part");
        let own = item["parameters"].as_array().into_iter().flatten();
        let path = own.fold(path.clone(), |path, parameter| {
            let name = parameter["name"].as_str().expect("a text");
            let value = match &parameter["example"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            path.replace(&format!("{{{name}}}"), &value)
        });
        for (method, part) in [
            ("get", ""),
            ("post", "create"),
            ("post", "call"),
            ("patch", "change"),
            ("put", "replace"),
            ("delete", ""),
        ] {
            let schema = &schemas[format!("{entity}.{part}")];
            if item[method].is_null() || (!part.is_empty() && schema.is_null()) {
                continue;
            }
            let mut queries = vec![String::new()];
            for parameter in item[method]["parameters"].as_array().into_iter().flatten() {
                let name = parameter["$ref"].as_str().and_then(|it| it.rsplit('/').next()).expect("a name");
                if let Some(example) = shared[name]["example"].as_str() {
                    let query: String =
                        format!("{}={example}", shared[name]["name"].as_str().expect("a text"));
                    queries.push(format!("?{}", query.replace(' ', "%20").replace('\'', "%27")));
                }
            }
            let body = if part.is_empty() { String::new() } else { schema["examples"][0].to_string() };
            for query in queries {
                let reply = fixture
                    .send("all-types", &method.to_uppercase(), &format!("{path}{query}"), &[], &body)
                    .await;
                // a protected row asks for its version
                let is_versioned = entity == "versioned" && reply.status == 428;
                assert!(
                    reply.status.is_success() || is_versioned,
                    "{method} {path}{query} {body}: {reply:?}"
                );
                n += 1;
            }
        }
    }
    assert!(40 < n, "{n}");
}
