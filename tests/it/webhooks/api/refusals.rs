//! Each mistake of a caller with the whole message that it gets.

use serde_json::{Value, json};

use crate::webhooks::fixture::{Mill, id};

const URL: &str = "http://127.0.0.1:9/hooks";

/// A body of a subscription that would be good with these members.
fn with(more: &Value) -> Value {
    let mut body = json!({"name": "a", "url": URL});
    if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
        body.extend(more.clone());
    }
    body
}

#[tokio::test]
async fn a_body_that_is_refused_says_what_to_change() {
    let mill = Mill::open().await;
    let members = "the members are name, url, filter, payloadQuery, batch, retry, headers, suspend";
    let cases = [
        (json!([]), "BadRequest", format!("the body is not a JSON object; its {}", members.trim_start_matches("the "))),
        (json!({"url": URL}), "BadRequest", "name is missing; send such as \"name\": \"orders\"".to_owned()),
        (json!({"name": "a"}), "BadRequest", "url is missing; send such as \"url\": \"https://example.com/hooks\"".to_owned()),
        (with(&json!({"filer": 1})), "BadRequest", format!("\"filer\" is not a member of the body; {members}")),
        (with(&json!({"name": ""})), "InvalidValue", "name is a text of 1 to 100 characters, none of them a control character".to_owned()),
        (with(&json!({"name": 1})), "BadRequest", "name is a text in quotes".to_owned()),
        (with(&json!({"filter": []})), "BadRequest", "filter is an object; its members are tables, ops".to_owned()),
        (with(&json!({"filter": {"table": []}})), "BadRequest", "\"filter.table\" is not a member there; the members are tables, ops".to_owned()),
        (with(&json!({"filter": {"tables": []}})), "BadRequest",
            "filter.tables names no table; leave it out for all whose events the API key may read".to_owned()),
        (with(&json!({"filter": {"tables": "orders"}})), "BadRequest", "filter.tables is an array of texts".to_owned()),
        (with(&json!({"filter": {"tables": ["quiet"]}})), "BadRequest",
            "filter.tables: \"quiet\" is not a table whose events this API key may read; it may read the events of: bags, orders".to_owned()),
        (with(&json!({"filter": {"tables": ["orders", "mill.orders"]}})), "BadRequest",
            "filter.tables: orders and orders are the same table; name one of them".to_owned()),
        (with(&json!({"filter": {"ops": []}})), "BadRequest", "filter.ops names no op; leave it out for insert, update and delete".to_owned()),
        (with(&json!({"filter": {"ops": ["upsert"]}})), "BadRequest",
            "filter.ops: \"upsert\" is not an op; name some of insert, update, delete and truncate".to_owned()),
        (with(&json!({"filter": {"ops": ["insert", "insert"]}})), "BadRequest", "filter.ops names insert twice; name it once".to_owned()),
        (with(&json!({"batch": {"maxEvents": 101}})), "InvalidValue", "batch.maxEvents is a whole number from 1 to 100".to_owned()),
        (with(&json!({"batch": {"maxBytes": 1023}})), "InvalidValue", "batch.maxBytes is a whole number from 1024 to 262144".to_owned()),
        (with(&json!({"batch": {"maxBytes": "1"}})), "BadRequest", "batch.maxBytes is a whole number, without quotes".to_owned()),
        (with(&json!({"retry": {"maxAttempts": 21}})), "InvalidValue", "retry.maxAttempts is a whole number from 1 to 20".to_owned()),
        (with(&json!({"retry": {"initialDelay": 0}})), "InvalidValue", "retry.initialDelay is a whole number from 1 to 3600".to_owned()),
        (with(&json!({"retry": {"maxDelay": 4}})), "InvalidValue",
            "retry.initialDelay is longer than retry.maxDelay; make initialDelay shorter or maxDelay longer".to_owned()),
        (with(&json!({"retry": {"disableOnGone": "true"}})), "BadRequest", "retry.disableOnGone is true or false, without quotes".to_owned()),
        (with(&json!({"suspend": 1})), "BadRequest", "suspend is true or false, without quotes".to_owned()),
        (with(&json!({"headers": {"a b": "x"}})), "InvalidValue", "headers: \"a b\" is not the name of a header".to_owned()),
        (with(&json!({"headers": {"Webhook-Id": "x"}})), "InvalidValue", "headers: Webhook-Id is set by Rowgate or by HTTP; leave it out".to_owned()),
        (with(&json!({"headers": {"Host": "x"}})), "InvalidValue", "headers: Host is set by Rowgate or by HTTP; leave it out".to_owned()),
        (with(&json!({"headers": {"X-A": "x", "x-a": "y"}})), "BadRequest", "headers names x-a twice, in other letters; name it once".to_owned()),
        (with(&json!({"headers": {"X-A": 1}})), "BadRequest", "headers: the value of X-A is a text in quotes".to_owned()),
        (with(&json!({"headers": {"X-A": "a\nb"}})), "InvalidValue",
            "headers: the value of X-A is at most 1024 characters of printable ASCII".to_owned()),
    ];
    for (body, code, message) in &cases {
        let told = mill.told("one", "POST", "", body.clone(), 400).await;
        let error = &told["error"];
        assert_eq!(
            (error["code"].as_str(), error["message"].as_str()),
            (Some(*code), Some(message.as_str())),
            "{body}"
        );
    }
    let told = mill.told("one", "POST", "", with(&json!({"payloadquery": "x"})), 400).await;
    assert_eq!(told["error"]["details"], json!(["did you mean \"payloadQuery\"?"]), "{told}");
    assert_eq!(mill.told("one", "GET", "", Value::Null, 200).await, json!({"subscriptions": []}));
}

/// Seen to fail with a URL that is not looked at when it is changed.
#[tokio::test]
async fn a_url_to_which_nothing_may_be_sent_is_refused_when_it_is_made_and_when_it_is_changed() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", URL).await);
    for url in [
        "ftp://127.0.0.1/",
        "hooks",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest",
        "http://[::ffff:10.0.0.1]/",
        "http://user:pass@127.0.0.1/",
        "http://no-such-host.invalid/",
    ] {
        for (method, path, body) in [
            ("POST", "".to_owned(), with(&json!({"url": url}))),
            ("PATCH", format!("/{id}"), json!({"url": url})),
        ] {
            let told = mill.told("one", method, &path, body, 400).await;
            assert_eq!(told["error"]["code"], "InvalidDestination", "{method} {url}: {told}");
            assert!(
                told["error"]["message"].as_str().is_some_and(|text| text.starts_with("url: ")),
                "{told}"
            );
        }
    }
}

#[tokio::test]
async fn this_machine_is_refused_where_the_installation_does_not_allow_it() {
    let mill = Mill::open_with(|_| ()).await;
    for url in [URL, "http://localhost:9/", "http://[::1]:9/", "http://0x7f000001:9/"] {
        let told = mill.told("one", "POST", "", with(&json!({"url": url})), 400).await;
        assert_eq!(told["error"]["code"], "InvalidDestination", "{url}: {told}");
    }
}

#[tokio::test]
async fn a_key_subscribes_to_what_it_may_read_and_to_nothing_else() {
    let mill = Mill::open().await;
    let body = |table: &str| with(&json!({"filter": {"tables": [table]}, "suspend": true}));
    mill.told("narrow", "POST", "", body("orders"), 201).await;
    let told = mill.told("narrow", "POST", "", body("bags"), 400).await;
    assert_eq!(
        told["error"]["message"],
        "filter.tables: \"bags\" is not a table whose events this API key may read; it may read the events of: orders"
    );
}

#[tokio::test]
async fn options_and_paths_that_are_wrong_are_refused() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", URL).await);
    for (method, path, body, status, message) in [
        ("GET", "?limit=1", Value::Null, 400, "this URL takes no options; leave out everything after the ?"),
        ("GET", "/ID?x=1", Value::Null, 400, "this URL takes no options; leave out everything after the ?"),
        ("GET", "/ID/deliveries?limit=0", Value::Null, 400, "limit takes a whole number from 1 to 100"),
        ("GET", "/ID/deliveries?before=x", Value::Null, 400, "before takes the id of a delivery"),
        (
            "GET",
            "/ID/dead-letters?after=x",
            Value::Null,
            400,
            "\"after\" is not a parameter here; use limit, before",
        ),
        ("POST", "/ID/test", json!({"a": 1}), 400, "\"a\" is not a member of the body; the members are "),
        (
            "GET",
            "/ID/dead-letters/x",
            Value::Null,
            404,
            "the subscription has no such dead letter; GET its dead-letters lists those that it has",
        ),
        (
            "POST",
            "/ID/dead-letters/x/redrive",
            Value::Null,
            404,
            "the subscription has no such dead letter; GET its dead-letters lists those that it has",
        ),
        (
            "GET",
            "/x",
            Value::Null,
            404,
            "this API key has no such webhook subscription; GET /api/ddl/events/webhooks lists those that it has",
        ),
    ] {
        let told = mill.told("one", method, &path.replace("ID", &id), body, status).await;
        assert_eq!(told["error"]["message"], message, "{method} {path}");
    }
}

/// What exists and is hidden is refused in the words of what does not exist.
#[tokio::test]
async fn a_payload_query_that_cannot_run_says_why() {
    let mill = Mill::open().await;
    let cases = [
        (
            "select id from mill.orders where id = @id",
            "line 1, column 39: a payloadQuery ends with FOR JSON PATH or FOR JSON AUTO (orders)",
        ),
        (
            "delete from mill.orders for json path",
            "line 1, column 25: the text cannot be read here; one SELECT in PostgreSQL's syntax is expected (orders)",
        ),
        (
            "select id from mill.orders for json path; select 1",
            "line 1, column 43: one statement is allowed, and a second begins here (orders)",
        ),
        (
            "select id from mill.orders where id = @wrong for json path",
            "line 1, column 39: @wrong is not a variable here; the variables are @dl_op, @dl_table, @dl_schema, @dl_rowKeyJson, @id (orders)",
        ),
        (
            "select id from mill.nowhere for json path",
            "the payload query names mill.nowhere, which does not exist or which the owner key may not read",
        ),
        (
            "select nothing from mill.orders for json path",
            "the payload query names a column that does not exist or that the owner key may not read, or a value's type does not fit where it stands",
        ),
        (
            "select set_config('role', 'postgres', true) as a for json path",
            "line 1, column 8: the function set_config is not allowed here (orders)",
        ),
        (
            "select from from mill.orders for json path",
            "line 1, column 22: the text cannot be read here; one SELECT in PostgreSQL's syntax is expected (orders)",
        ),
    ];
    let mut wrong = Vec::new();
    for (query, message) in cases {
        let body = with(&json!({"payloadQuery": query, "filter": {"tables": ["orders"]}}));
        let told = mill.told("one", "POST", "", body, 400).await;
        assert_eq!(told["error"]["code"], "InvalidPayloadQuery", "{query}: {told}");
        let given = told["error"]["message"].as_str().unwrap_or_default();
        if given != format!("payloadQuery: {message}") {
            wrong.push(format!("{query}\n    {given}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
