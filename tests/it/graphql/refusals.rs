//! What is refused, before anything is executed, and how.

use rowgate_tests::servers::postgres::execute;
use serde_json::{Value, json};

use super::fixture::Shop;

#[tokio::test]
async fn limits_are_named_with_their_amounts() {
    let shop = Shop::open().await;
    let nested = |n: usize| {
        format!(
            "{{ orders(first: 1) {{ items {{ {} id {} }} }} }}",
            "customer { orders(first: 1) { items { ".repeat(n),
            "} } }".repeat(n)
        )
    };
    let aliases =
        |n: usize| format!("{{ {} }}", (0..n).map(|i| format!("a{i}: __typename ")).collect::<String>());
    let lists = |n: usize| {
        format!(
            "{{ {} }}",
            (0..n).map(|i| format!("a{i}: orders(first: 1) {{ totalCount }} ")).collect::<String>()
        )
    };
    for (query, words) in [
        (format!("{{ orders {{ totalCount }} }} #{}", "x".repeat(64 << 10)), "65536 is the most"),
        (format!("{}a{}", "{".repeat(65), "}".repeat(65)), "64 brackets"),
        (nested(7), "12 is the most"),
        (aliases(501), "501 fields, and 500"),
        (lists(51), "more than 50 lists"),
        (
            "{ orders(first: -1) { items { lines(first: -1) { items { product { lines(first: -1) { totalCount items { quantity } } } } } } } }".to_owned(),
            "graphqlCost",
        ),
        ("{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }".to_owned(), "leads to itself"),
        (
            "{ orders(filter: {id: {eq: 12345678901234567890}}) { totalCount } }".to_owned(),
            "send it in variables",
        ),
        ("{ orders(first: 0) { totalCount } }".to_owned(), "first"),
        ("{ orders(after: \"x\") { totalCount } }".to_owned(), "cursor"),
        ("{ orders(filter: {placed_at: {eq: \"yesterday\"}}) { totalCount } }".to_owned(), "placed_at"),
        ("{ a: orders { totalCount } a: customers { totalCount } }".to_owned(), "a"),
        ("query($id: Long!) { orders_by_pk(id: $id) { id } }".to_owned(), "$id"),
        ("subscription { orders { id } }".to_owned(), ""),
        ("query A { __typename } query B { __typename }".to_owned(), "operationName"),
    ] {
        let reply = shop.post("shop-admin", &json!({"query": query}).to_string(), &[]).await;
        let answer: Value = reply.json();
        let message = answer["errors"][0]["message"].as_str().unwrap_or_else(|| panic!("{query}: {answer}"));
        assert!(message.contains(words), "{query}: {message}");
        assert!(answer["data"].is_null(), "{query}: {answer}");
        // no SQL, and no name of the database
        assert!(!message.contains("select ") && !message.contains("shop."), "{message}");
    }
    assert!(shop.ask("shop-admin", json!({"query": nested(6)})).await["errors"].is_null());
}

/// The text of a document comes from strangers: none of these takes the process down.
#[tokio::test]
async fn hostile_documents_are_refused_and_the_server_serves_on() {
    let shop = Shop::open().await;
    let doubling: String =
        (0..400).map(|i| format!("fragment f{i} on Query{{...f{} ...f{}}}", i + 1, i + 1)).collect();
    let lists =
        format!("{{ orders(filter: {}{}) {{ totalCount }} }}", "{and: [".repeat(2_000), "]}".repeat(2_000));
    for query in [
        format!("{{...f0}}{doubling}fragment f400 on Query{{__typename}}"),
        lists,
        "[".repeat(60_000),
        "{a".repeat(20_000),
        "\u{0}".to_owned(),
        "\"\"\"".to_owned(),
        "query($a: [[[[[[[[[[Int]]]]]]]]]]) { __typename }".to_owned(),
        "query($a: Nothing) { orders(first: $a) { totalCount } }".to_owned(),
        "{ orders(filter: {customer: 1}) { totalCount } }".to_owned(),
        "{ orders(orderBy: {id: UP}) { totalCount } }".to_owned(),
        "{ __type(name: 7) { name } }".to_owned(),
    ] {
        let reply = shop.post("shop-admin", &json!({"query": query}).to_string(), &[]).await;
        assert!(
            reply.status == 200 && reply.json()["errors"].is_array(),
            "{}: {reply:?}",
            &query[..query.len().min(80)]
        );
    }
    let deep = format!(
        "{{\"query\": \"query($f: OrdersFilterInput) {{ orders(filter: $f) {{ totalCount }} }}\", \"variables\": {{\"f\": {}1{}}}}}",
        "{\"not\":".repeat(30_000),
        "}".repeat(30_000)
    );
    let reply = shop.post("shop-admin", &deep, &[]).await;
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(shop.data("shop-admin", "{ __typename }").await, json!({"__typename": "Query"}));
}

#[tokio::test]
async fn statuses_follow_the_media_type() {
    let shop = Shop::open().await;
    let accept = [("Accept", "application/graphql-response+json")];
    for (body, plain, labelled) in [
        (r#"{"query": "{ __typename }"}"#, 200, 200),
        (r#"{"query": "{ nothing }"}"#, 200, 400),
        (r#"{"query": "{"}"#, 200, 400),
        (r#"{"query": 1}"#, 400, 400),
        (r#"[{"query": "{ __typename }"}]"#, 400, 400),
        (r#"{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "ab"}}}"#, 200, 400),
        (
            r#"{"query": "{ __typename }", "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "ab"}}}"#,
            200,
            400,
        ),
    ] {
        let reply = shop.post("shop-admin", body, &[]).await;
        assert_eq!(
            (reply.status.as_u16(), reply.headers["content-type"].to_str().ok()),
            (plain, Some("application/json; charset=utf-8")),
            "{body}"
        );
        let reply = shop.post("shop-admin", body, &accept).await;
        assert_eq!(reply.status.as_u16(), labelled, "{body}");
        assert_eq!(
            reply.headers["content-type"], "application/graphql-response+json; charset=utf-8",
            "{body}"
        );
    }
    // a key that lives no more gets 401 and nothing else, whatever it asks
    let key = shop.world.key("shop-admin");
    let mut conn = shop.world.superuser("shop").await;
    execute(&mut conn, "select dl.revoke(id) from dl.keys where name = 'shop-admin'").await;
    for body in [
        r#"{"query": "{ __typename }"}"#,
        r#"{"query": "{ __schema { types { name } } }"}"#,
        r#"{"query": "{"}"#,
        "[]",
        r#"{"query": "{ orders { totalCount } }"}"#,
        r#"{"query": "mutation { __typename }"}"#,
    ] {
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        let reply = shop.client.send("POST", &shop.url(), &headers, body).await;
        assert_eq!(reply.status, 401, "{body}: {reply:?}");
    }
}

/// Seen to fail with the errors in the order in which async-graphql finds them.
#[tokio::test]
async fn errors_stand_in_the_order_of_the_document() {
    let shop = Shop::open().await;
    for n in 0..20 {
        // each is another document, so that none is remembered
        let fragments: String = (0..6).map(|i| format!("fragment F{i} on Query {{ none{i} }} ")).collect();
        let query = format!("{{ v{n}: __typename ...F0 ...F1 ...F2 ...F3 ...F4 ...F5 }} {fragments}");
        let answer = shop.ask("shop-admin", json!({"query": query})).await;
        let errors = answer["errors"].as_array().expect("errors");
        let named: Vec<_> =
            errors.iter().map(|error| error["message"].as_str().unwrap_or_default()).collect();
        assert_eq!(named.len(), 6, "{answer}");
        for (i, message) in named.iter().enumerate() {
            assert!(message.contains(&format!("none{i}")), "{named:?}");
        }
    }
}
