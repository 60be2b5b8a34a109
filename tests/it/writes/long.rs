//! Writes whose rows are too long to be told.

use rowgate_tests::client::Reply;
use serde_json::{Value, json};

use super::fixtures::tenant::OwnTenant;

/// A row of `wide` is told with 1 MB, one of `vast` with 40, one of `huge` with 70.
const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: s}
data:
  schema.sql: |
    create table wide (id integer primary key, t text not null default repeat('x', 1000000));
    create table vast (id integer primary key, n integer, t text not null default repeat('x', 40000000));
    create table huge (id integer primary key, t text not null default repeat('x', 70000000));
    create table moved (id integer primary key, n integer);
    create function move() returns trigger language plpgsql as 'begin new.id = new.id + 1000; return new; end';
    create trigger move before insert on moved for each row execute function move();
    create table gone (id integer primary key, n integer);
    create function go() returns trigger language plpgsql as
        'begin delete from gone where id = old.id; return new; end';
    create trigger go before update on gone for each row execute function go();
    insert into gone values (1, 1);
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: long}
spec:
  database: {bootstrap: {configMapRef: {name: s}}}
  entities:
    - {name: wide, source: {object: wide}, rowLevelSecurity: {none: true}}
    - {name: vast, source: {object: vast}, rowLevelSecurity: {none: true}}
    - {name: huge, source: {object: huge}, rowLevelSecurity: {none: true}}
    - {name: moved, source: {object: moved}, rowLevelSecurity: {none: true}}
    - {name: gone, source: {object: gone}, rowLevelSecurity: {none: true}}
  shared:
    permissions:
      - {entity: wide, actions: [read, create]}
      - {entity: vast, actions: [read, create, update]}
      - {entity: huge, actions: [read, create]}
      - {entity: moved, actions: [read, create, update]}
      - {entity: gone, actions: [read, update]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: k}
spec: {tenantRef: {name: long}}
";

async fn ask(long: &OwnTenant, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    long.ask("k", method, &format!("/{path}"), &body.to_string(), headers).await
}

/// Seen to fail with a limit that is an error: 500, and the rows were there or not.
#[tokio::test]
async fn rows_that_are_too_long_to_be_told_are_written_and_that_is_said() {
    let long = OwnTenant::open("long", MANIFEST).await;
    let many: Value = (1..=50).map(|id| json!({ "id": id })).collect();
    let reply = ask(&long, "POST", "wide", &[], &many).await;
    assert_eq!((reply.status.as_u16(), reply.header("preference-applied")), (204, Some("return=minimal")));
    assert_eq!(reply.body, "");
    assert_eq!(long.rows("select count(*) from wide").await, [json!({ "count": 50 })]);
    // the connection goes on
    let few: Value = (51..=52).map(|id| json!({ "id": id })).collect();
    let reply = ask(&long, "POST", "wide", &[], &few).await;
    assert_eq!((reply.status.as_u16(), reply.header("preference-applied")), (201, None));
    assert_eq!(reply.json()["value"].as_array().map(Vec::len), Some(2));

    for (method, path, body) in [
        ("POST", "vast", json!({ "id": 1 })),
        ("PATCH", "vast/id/2", json!({ "n": 1 })),
        ("PATCH", "vast/id/1", json!({ "n": 2 })),
    ] {
        let reply = ask(&long, method, path, &[], &body).await;
        let made =
            (method == "POST" || path.ends_with('2')).then(|| if method == "POST" { "1" } else { "2" });
        let said = reply.header("preference-applied");
        assert_eq!(
            (reply.status.as_u16(), said),
            (204, Some("return=minimal")),
            "{method} {path}: {:.200}",
            reply.body
        );
        let wanted = made.map(|id| format!("{}/auth/long/api/vast/id/{id}", long.world.url()));
        assert_eq!(reply.header("location").map(str::to_owned), wanted, "{method} {path}");
    }
    let stored = long.rows("select id, n from vast order by id").await;
    assert_eq!(stored, [json!({ "id": 1, "n": 2 }), json!({ "id": 2, "n": 1 })]);
}

/// Seen to fail with such a message taken for one that breaks the protocol.
#[tokio::test]
async fn a_row_beyond_one_message_is_written_only_where_it_need_not_be_told() {
    let long = OwnTenant::open("long", MANIFEST).await;
    let reply = ask(&long, "POST", "huge", &[], &json!({ "id": 1 })).await;
    assert_eq!(reply.status, 413, "{}", reply.body);
    assert_eq!(reply.json()["error"]["code"], "TooLarge");
    assert_eq!(long.rows("select count(*) from huge").await, [json!({ "count": 0 })]);
    let reply = ask(&long, "POST", "huge", &[("Prefer", "return=minimal")], &json!({ "id": 1 })).await;
    assert_eq!(reply.status, 204, "{}", reply.body);
    assert_eq!(long.rows("select count(*) from huge").await, [json!({ "count": 1 })]);
}

/// It was 500, as if Rowgate had failed.
///
/// Seen to fail with such a message taken for one that breaks the protocol.
#[tokio::test]
async fn a_row_beyond_one_message_is_read_without_its_long_fields() {
    let long = OwnTenant::open("long", MANIFEST).await;
    ask(&long, "POST", "huge", &[("Prefer", "return=minimal")], &json!({ "id": 1 })).await;
    for path in ["huge/id/1", "huge", "huge?$filter=id%20eq%201"] {
        let reply = ask(&long, "GET", path, &[], &Value::Null).await;
        assert_eq!(reply.status, 413, "{path}: {}", reply.body);
        let error = reply.json()["error"].clone();
        assert_eq!(error["code"], "TooLarge", "{path}");
        assert!(error["message"].as_str().is_some_and(|told| told.contains("$select")), "{path}: {error}");
    }
    let reply = ask(&long, "GET", "huge/id/1?$select=id", &[], &Value::Null).await;
    assert_eq!(reply.rows(), [json!({ "id": 1 })]);
}

/// Seen to fail with the address that was asked.
#[tokio::test]
async fn what_a_trigger_does_to_the_key_is_where_the_row_is() {
    let long = OwnTenant::open("long", MANIFEST).await;
    let url = format!("{}/auth/long/api/moved/id", long.world.url());
    for (method, path, at) in
        [("POST", "moved", 1001), ("PATCH", "moved/id/2", 1002), ("PUT", "moved/id/3", 1003)]
    {
        let reply = ask(&long, method, path, &[], &json!({ "id": at - 1000, "n": 5 })).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        assert_eq!(reply.header("location"), Some(&*format!("{url}/{at}")), "{method}");
    }
    let reply = ask(&long, "PATCH", "gone/id/1", &[], &json!({ "n": 2 })).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (422, &json!("ConstraintViolation")));
    assert_eq!(long.rows("select id, n from gone").await, [json!({ "id": 1, "n": 1 })]);
}
