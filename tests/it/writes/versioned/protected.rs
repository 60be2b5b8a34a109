//! Rows that keep their version: every change names it, and none is deleted.

use serde_json::{Value, json};

use crate::writes::fixtures::versioned_rows::{TS, VersionedRows, code, moment, tag, version};

/// Seen to fail with an update that does not look at the version it is told, and with an insert that is tried though one was told.
#[tokio::test]
async fn a_change_names_the_version_that_it_read_and_moves_it_forward() {
    let tenant = VersionedRows::open().await;
    let first = tenant.make("/docs", &json!({"id": 1, "title": "one"})).await;
    let read = tenant.get("all", "/docs/id/1").await;
    let row = json!({"id": 1, "title": "one", "Doc Size": 1, "folder": null, "body": null, "is_deleted": false, TS: first});
    assert_eq!(read.rows(), [row]);

    let changed = tenant.patch("/docs/id/1", &json!({"title": "two", TS: first})).await;
    let second = version(&changed);
    assert_eq!(
        (changed.status.as_u16(), &changed.json()["value"][0]["title"]),
        (200, &json!("two")),
        "{changed:?}"
    );
    assert!(moment(&first) < moment(&second), "{first} {second}");
    // the whole row, as it was read
    let whole = tenant.get("all", "/docs/id/1").await.rows().remove(0);
    let put = tenant.ask("all", "PUT", "/docs/id/1", &whole.to_string(), &[]).await;
    let third = version(&put);
    assert!(put.status == 200 && moment(&second) < moment(&third), "{put:?}");
    // the same moment in other words
    let spelt = format!(
        "select to_char({TS} at time zone 'UTC' + interval '5:30', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"000+05:30\"') as it from v.docs where id = 1"
    );
    let spelt = tenant.rows(&spelt).await[0]["it"].clone();
    let quiet = tenant
        .ask(
            "all",
            "PATCH",
            "/docs/id/1",
            &json!({"title": "3", TS: spelt}).to_string(),
            &[("Prefer", "return=minimal")],
        )
        .await;
    assert_eq!((quiet.status.as_u16(), &*quiet.body, quiet.header("etag")), (204, "", None));
    let fourth = version(&tenant.get("all", "/docs/id/1").await);
    assert!(moment(&third) < moment(&fourth));

    // without a version a row is made, once
    let made = tenant.patch("/docs/id/2", &json!({"title": "new"})).await;
    assert_eq!(code(&made).0, 201, "{made:?}");
    assert_eq!(tag(&made), tenant.tag("all", "/docs/id/2").await.0);
    let again = tenant.patch("/docs/id/2", &json!({"title": "newer"})).await;
    assert_eq!(code(&again), (428, Some("ExpectedTsRequired".to_owned())), "{again:?}");
    let put = tenant.ask("all", "PUT", "/docs/id/3", r#"{"Doc Size": 2, "is_deleted": false}"#, &[]).await;
    assert_eq!((code(&put).0, put.header("etag")), (201, None), "{put:?}");
    let made = tenant.ask("maker", "PATCH", "/docs/id/4", r#"{"title": "made"}"#, &[]).await;
    assert_eq!(code(&made).0, 201, "{made:?}");
}

/// Key, method, path, body, a header; status, code, and words of the message.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    Value,
    Option<(&'static str, &'static str)>,
    u16,
    &'static str,
    &'static str,
);

#[tokio::test]
async fn what_does_not_know_the_row_changes_nothing() {
    let tenant = VersionedRows::open().await;
    let old = tenant.make("/docs", &json!({"id": 1, "title": "one", "folder": 1})).await;
    let now = version(&tenant.patch("/docs/id/1", &json!({"title": "two", TS: old})).await);
    tenant.make("/docs", &json!({"id": 901, "title": "hidden from narrow"})).await;
    let before = tenant.state().await;
    let (any, none) = (Some(("If-Match", "*")), Some(("If-None-Match", "*")));
    let with = |ts: Value| json!({"title": "x", TS: ts});
    let cases: Vec<Case> = vec![
        ("all", "PATCH", "/docs/id/1", with(json!(old)), None, 409, "StaleRow", "read it again"),
        ("all", "PATCH", "/docs/id/1", with(json!(old)), any, 409, "StaleRow", "read it again"),
        ("narrow", "PATCH", "/docs/id/1", with(json!(old)), None, 409, "StaleRow", "read it again"),
        (
            "all",
            "PUT",
            "/docs/id/1",
            json!({"Doc Size": 1, "is_deleted": false, TS: old}),
            None,
            409,
            "StaleRow",
            "read it again",
        ),
        ("all", "PATCH", "/docs/id/1", with(json!("2199-01-01T00:00:00Z")), None, 409, "StaleRow", "changed"),
        ("all", "PATCH", "/docs/id/1", with(json!("infinity")), None, 409, "StaleRow", "changed"),
        // no row is made
        ("all", "PATCH", "/docs/id/9", with(json!(now)), None, 409, "StaleRow", "gone"),
        (
            "all",
            "PUT",
            "/docs/id/9",
            json!({"Doc Size": 1, "is_deleted": false, TS: now}),
            None,
            409,
            "StaleRow",
            "gone",
        ),
        ("narrow", "PATCH", "/docs/id/901", with(json!(now)), None, 409, "StaleRow", "gone"),
        ("all", "PATCH", "/docs/id/1", json!({"title": "x"}), None, 428, "ExpectedTsRequired", TS),
        ("all", "PATCH", "/docs/id/1", json!({"title": "x"}), any, 428, "ExpectedTsRequired", TS),
        (
            "all",
            "PUT",
            "/docs/id/1",
            json!({"Doc Size": 1, "is_deleted": false}),
            None,
            428,
            "ExpectedTsRequired",
            TS,
        ),
        ("narrow", "PATCH", "/docs/id/1", json!({"title": "x"}), None, 428, "ExpectedTsRequired", TS),
        ("all", "PATCH", "/titles/id/1", json!({"title": "x"}), None, 428, "ExpectedTsRequired", TS),
        ("all", "PATCH", "/docs/id/9", json!({"title": "x"}), any, 404, "RowNotFound", "no row"),
        ("all", "PATCH", "/docs/id/1", json!({"title": "x"}), none, 412, "PreconditionFailed", "already"),
        ("narrow", "PATCH", "/docs/id/901", json!({"title": "x"}), None, 404, "RowNotFound", "no row"),
        ("maker", "PUT", "/docs/id/1", json!({"title": "x"}), None, 409, "UniqueViolation", "already"),
        // who only makes rows knows no version
        ("maker", "PATCH", "/docs/id/1", with(json!(now)), None, 400, "UnknownField", TS),
        // no version
        ("all", "PATCH", "/docs/id/1", with(Value::Null), None, 400, "InvalidValue", "as it was read"),
        ("all", "PATCH", "/docs/id/9", with(Value::Null), None, 400, "InvalidValue", "as it was read"),
        (
            "all",
            "PATCH",
            "/docs/id/1",
            with(json!(1_700_000_000)),
            None,
            400,
            "InvalidValue",
            "as it was read",
        ),
        ("all", "PATCH", "/docs/id/1", with(json!("now")), None, 400, "InvalidValue", "as it was read"),
        (
            "all",
            "PATCH",
            "/docs/id/1",
            with(json!("2024-02-30T00:00:00Z")),
            None,
            400,
            "InvalidValue",
            "as it was read",
        ),
        ("all", "PATCH", "/docs/id/1", with(json!("999999-01-01T00:00:00Z")), None, 400, "InvalidValue", TS),
        ("all", "PATCH", "/docs/id/1", with(json!("\"},{\"")), None, 400, "InvalidValue", "as it was read"),
        ("all", "PATCH", "/docs/id/1", with(json!(now)), none, 400, "BadRequest", "send one of them"),
        ("all", "PATCH", "/docs/id/1", json!({TS: now}), None, 400, "BadRequest", "no field to change"),
        ("all", "POST", "/docs", json!({"id": 7, TS: now}), None, 400, "ReadOnlyColumn", TS),
        ("all", "POST", "/docs", json!([{"id": 7}, {"id": 8, TS: now}]), None, 400, "ReadOnlyColumn", TS),
        ("all", "PATCH", "/plain/id/1", with(json!(now)), None, 400, "UnknownField", TS),
        ("all", "PATCH", "/plain/id/1", json!({"dl_mark": "x"}), None, 400, "ReadOnlyColumn", "dl_mark"),
        ("all", "PATCH", "/titles/id/1", with(json!(now)), None, 400, "UnknownField", TS),
        // no row is deleted, by whatever way
        ("all", "DELETE", "/docs/id/1", Value::Null, None, 405, "DirectDeleteBlocked", "is_deleted"),
        ("all", "DELETE", "/docs/id/9", Value::Null, None, 405, "DirectDeleteBlocked", "is_deleted"),
        ("narrow", "DELETE", "/docs/id/1", Value::Null, None, 405, "DirectDeleteBlocked", "deletion flag"),
        ("all", "DELETE", "/bins/id/1", Value::Null, None, 405, "DirectDeleteBlocked", "is_deleted"),
        (
            "all",
            "DELETE",
            "/folders/id/1",
            Value::Null,
            None,
            409,
            "ForeignKeyViolation",
            "not allow deletes",
        ),
    ];
    for (key, method, path, body, header, status, expected, words) in cases {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers: Vec<_> = header.into_iter().collect();
        let reply = tenant.ask(key, method, path, &body, &headers).await;
        let what = format!("{key} {method} {path} {body} {header:?}: {reply:?}");
        assert_eq!(code(&reply), (status, Some(expected.to_owned())), "{what}");
        let error = reply.json()["error"].clone();
        assert!(error["message"].as_str().is_some_and(|told| told.contains(words)), "{what}");
        assert_eq!(tenant.state().await, before, "{what}");
    }
    assert_eq!(tenant.ask("all", "DELETE", "/folders/id/2", "", &[]).await.status, 204);
}

/// It said `dl_expected_ts`, which is an unknown field then.
///
/// Seen to fail with the column's name in the messages.
#[tokio::test]
async fn the_version_is_asked_for_by_the_name_that_it_is_exposed_under() {
    let tenant = VersionedRows::open().await;
    let made = tenant.ask("all", "POST", "/renamed", r#"{"id": 1}"#, &[]).await;
    let first = made.json()["value"][0]["ver"].clone();
    let changed = tenant.patch("/renamed/id/1", &json!({"title": "one", "ver": first})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let now = changed.json()["value"][0]["ver"].clone();
    let tag = tag(&changed);
    let no_headers: &[(&str, &str)] = &[];
    for (body, headers, status) in [
        (json!({"title": "x"}), no_headers, 428),
        (json!({"title": "x", "ver": first}), no_headers, 409),
        (json!({"title": "x", "ver": null}), no_headers, 400),
        (json!({"title": "x", "ver": first}), &[("If-Match", tag.as_str())], 400),
        (json!({"title": "x", "ver": now}), &[("If-None-Match", "*")], 400),
    ] {
        let reply = tenant.ask("all", "PATCH", "/renamed/id/1", &body.to_string(), headers).await;
        assert_eq!(reply.status, status, "{body} {headers:?}: {reply:?}");
        let message = reply.json()["error"]["message"].as_str().map(ToOwned::to_owned).unwrap_or_default();
        assert!(message.contains("ver ") && !message.contains(TS), "{body} {headers:?}: {message}");
    }
}

/// What foreign keys and triggers do to rows of another table names no version, and who wrote cannot name one: it was 428, or
/// 409 `StaleRow`, about a row that has none.
///
/// Seen to fail with triggers that do not say of which table they speak.
#[tokio::test]
async fn nobody_is_asked_for_the_version_of_a_row_of_another_table() {
    let tenant = VersionedRows::open().await;
    let before = tenant.state().await;
    for (method, path, body) in [
        ("DELETE", "/boxes/id/1", ""),
        ("PATCH", "/boxes/id/2", r#"{"code": 21}"#),
        ("PUT", "/boxes/id/2", r#"{"code": 21, "label": null}"#),
        ("PATCH", "/boxes/id/3", r#"{"label": "x"}"#),
    ] {
        let reply = tenant.ask("all", method, path, body, &[]).await;
        assert_eq!(code(&reply), (409, Some("ForeignKeyViolation".to_owned())), "{method} {path}: {reply:?}");
        assert!(reply.body.contains("rows of another table"), "{method} {path}: {reply:?}");
        assert_eq!(tenant.state().await, before, "{method} {path}");
    }
    // of its own row, in a partition of another schema, it is asked
    let own = tenant.patch("/things/id/1", &json!({"code": null})).await;
    assert_eq!(code(&own), (428, Some("ExpectedTsRequired".to_owned())), "{own:?}");
    assert_eq!(tenant.ask("all", "DELETE", "/boxes/id/1", "", &[]).await.status, 409);
    let freed = tenant.get("all", "/things/id/1").await;
    let freed = tenant.patch("/things/id/1", &json!({"box": null, TS: version(&freed)})).await;
    assert_eq!(freed.status, 200, "{freed:?}");
    assert_eq!(tenant.ask("all", "DELETE", "/boxes/id/1", "", &[]).await.status, 204);
}

/// A data plane that does not know yet that the table is protected tells the same of a DELETE, by what the database says. A
/// view over the table never knows.
#[tokio::test]
async fn what_a_row_takes_is_said_beforehand_and_by_the_database() {
    let tenant = VersionedRows::open().await;
    tenant.make("/docs", &json!({"id": 1, "title": "one"})).await;
    let kept = "GET, HEAD, PATCH, PUT, OPTIONS";
    let all = "GET, HEAD, PATCH, PUT, DELETE, OPTIONS";
    for path in ["/docs/id/1", "/docs/id/9"] {
        let refused = tenant.ask("all", "DELETE", path, "", &[]).await;
        assert_eq!((refused.status.as_u16(), refused.header("allow")), (405, Some(kept)), "{refused:?}");
    }
    for (key, path, allow) in [
        ("all", "/docs/id/1", kept),
        ("narrow", "/docs/id/1", kept),
        ("all", "/docs/id/9", kept),
        ("all", "/titles/id/1", kept),
        ("all", "/plain/id/1", all),
        ("all", "/absent/id/1", all),
        // what a key may not know of is like what is not there
        ("narrow", "/bins/id/1", all),
    ] {
        let told = tenant.ask(key, "OPTIONS", path, "", &[]).await;
        assert_eq!((told.status.as_u16(), told.header("allow")), (204, Some(allow)), "{key} {path}");
        let post = tenant.ask(key, "POST", path, "{}", &[]).await;
        assert_eq!(
            (post.status.as_u16(), post.header("allow")),
            (405, Some(allow)),
            "{key} {path}: {post:?}"
        );
    }
    let stranger = tenant.client.ask("OPTIONS", &tenant.url("/docs/id/1"), &[]).await;
    assert_eq!(stranger.header("allow"), Some(all));
    let before = tenant.state().await;
    let refused = tenant.ask("all", "DELETE", "/titles/id/1", "", &[]).await;
    assert_eq!((code(&refused).0, refused.header("allow")), (405, Some(kept)), "{refused:?}");
    assert_eq!(tenant.state().await, before);
}

/// It was 400 for want of the flag, on every table with a flag that protection has added.
///
/// Seen to fail with a flag that PUT replaces: the row comes back.
#[tokio::test]
async fn a_put_leaves_the_flag_and_brings_no_row_back() {
    let tenant = VersionedRows::open().await;
    let mut ts = tenant.make("/docs", &json!({"id": 1, "title": "one", "Doc Size": 5, "body": "b"})).await;
    for (sent, title, flag) in [
        (json!({"title": "two"}), "two", false),
        (json!({"title": "three", "is_deleted": true}), "three", true),
        (json!({"title": "four"}), "four", true),
        (json!({"title": "five", "is_deleted": false}), "five", false),
    ] {
        let mut body = sent.clone();
        body[TS] = json!(ts);
        let put = tenant.ask("all", "PUT", "/docs/id/1", &body.to_string(), &[]).await;
        assert_eq!(put.status, 200, "{sent}: {put:?}");
        ts = version(&put);
        let row = json!({"id": 1, "title": title, "Doc Size": 1, "folder": null, "body": null, "is_deleted": flag, TS: ts});
        assert_eq!(put.rows(), [row], "{sent}");
    }
    let made = tenant.ask("all", "PUT", "/docs/id/2", r#"{"title": "new"}"#, &[]).await;
    assert_eq!(
        (made.status.as_u16(), &made.json()["value"][0]["is_deleted"]),
        (201, &json!(false)),
        "{made:?}"
    );
}

/// What a key may see of versions it may see of every row, so that nobody is told to send what cannot be read.
#[tokio::test]
async fn whoever_may_change_a_row_may_read_its_version() {
    let tenant = VersionedRows::open().await;
    let first = tenant.make("/docs", &json!({"id": 1, "title": "one"})).await;
    let read = tenant.get("narrow", "/docs/id/1").await.rows();
    assert_eq!(read, [json!({"id": 1, "title": "one", TS: first})]);
    let body = json!({"title": "two", TS: first}).to_string();
    let changed = tenant.ask("narrow", "PATCH", "/docs/id/1", &body, &[]).await;
    assert_eq!(code(&changed).0, 200, "{changed:?}");
    assert_eq!(code(&tenant.ask("narrow", "PATCH", "/docs/id/1", &body, &[]).await).0, 409);
}
