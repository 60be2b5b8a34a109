//! PATCH and PUT: a row is changed, or made where there is none.

use futures_util::StreamExt as _;
use reqwest::StatusCode;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use serde_json::json;

use super::fixtures::tables::Desk;

#[tokio::test]
async fn patch_changes_what_is_sent_and_put_all_of_a_row() {
    let desk = Desk::open().await;
    let patched = desk.ask("shelf", "PATCH", "/shelves/id/1", r#"{"label": "ONE"}"#).await;
    let row = json!({"id": 1, "region": "north", "label": "ONE", "note": "x", "n": 7});
    assert_eq!((patched.status, patched.json()), (StatusCode::OK, json!({"value": [row]})), "{patched:?}");
    assert_eq!(patched.header("location"), None);

    // the whole row, as it was read; then without what has a default
    let put = desk.ask("shelf", "PUT", "/shelves/id/1", &row.to_string()).await;
    assert_eq!((put.status, put.json()), (StatusCode::OK, json!({"value": [row]})), "{put:?}");
    let body = r#"{"region": "north", "label": "1", "n": 1}"#;
    let put = desk.ask("shelf", "PUT", "/shelves/id/1", body).await;
    let row = json!({"id": 1, "region": "north", "label": "1", "note": "new", "n": 1});
    assert_eq!((put.status, put.json()), (StatusCode::OK, json!({"value": [row]})), "{put:?}");

    let body = r#"{"region": "north", "label": "1", "note": null}"#;
    let put = desk.ask("shelf", "PUT", "/shelves/id/1", body).await;
    let row = json!({"id": 1, "region": "north", "label": "1", "note": null, "n": 5});
    assert_eq!((put.status, put.json()), (StatusCode::OK, json!({"value": [row]})), "{put:?}");

    // a default that draws from a sequence, by a key that makes no rows
    let put = desk.ask("changer", "PUT", "/tickets/id/1", r#"{"label": "two"}"#).await;
    assert_eq!(put.status, StatusCode::OK, "{put:?}");
    assert_eq!(desk.rows("select label, rank from d.tickets").await, [json!({"label": "two", "rank": 2})]);

    // what is not there is made, with its defaults
    for (method, id) in [("PATCH", 10), ("PUT", 11)] {
        let path = format!("/shelves/id/{id}");
        let made = desk.ask("shelf", method, &path, r#"{"region": "north", "label": "new", "n": 2}"#).await;
        let row = json!({"id": id, "region": "north", "label": "new", "note": "new", "n": 2});
        assert_eq!((made.status, made.json()), (StatusCode::CREATED, json!({"value": [row]})), "{made:?}");
        assert_eq!(made.header("location"), Some(&*format!("{}/auth/desk/api{path}", desk.world.url())));
        assert_eq!(desk.ask("shelf", "GET", &path, "").await.rows(), [row]);
    }
    let minimal = [("Prefer", "return=minimal")];
    let quiet = desk.ask_with("shelf", "PATCH", "/shelves/id/10", r#"{"n": 3}"#, &minimal).await;
    assert_eq!((quiet.status, quiet.body.as_str()), (StatusCode::NO_CONTENT, ""));
    assert_eq!(desk.rows("select 1 from d.shelves where id = 10 and n = 3").await.len(), 1);

    // no index keeps these apart
    for (status, note) in [(StatusCode::CREATED, "a"), (StatusCode::OK, "b")] {
        let reply = desk.ask("all", "PATCH", "/loose/id/1", &json!({"note": note}).to_string()).await;
        assert_eq!(
            (reply.status, reply.json()),
            (status, json!({"value": [{"id": 1, "note": note}]})),
            "{reply:?}"
        );
    }
}

/// Key, method, path, body, a header; status, code, and words of the message.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
    u16,
    &'static str,
    &'static str,
);

#[tokio::test]
async fn what_a_key_may_not_change_or_make_stays_as_it_is() {
    let desk = Desk::open().await;
    let before = desk.state().await;
    let new = r#"{"region": "north", "label": "new"}"#;
    let (present, absent) = (("If-Match", "*"), ("If-None-Match", "*"));
    let cases: Vec<Case> = vec![
        ("shelf", "PATCH", "/shelves/id/9", new, Some(present), 404, "RowNotFound", "no row"),
        ("shelf", "PATCH", "/shelves/id/1", new, Some(absent), 412, "PreconditionFailed", "already"),
        (
            "shelf",
            "PATCH",
            "/shelves/id/1",
            new,
            Some(("If-Match", "\"x\"")),
            400,
            "BadRequest",
            "keeps no version",
        ),
        ("shelf", "PATCH", "/shelves/id/9", r#"{"region": "north"}"#, None, 400, "InvalidValue", "\"label\""),
        (
            "shelf",
            "PUT",
            "/shelves/id/1",
            r#"{"region": "north"}"#,
            None,
            400,
            "InvalidValue",
            "value for \"label\"",
        ),
        ("shelf", "PATCH", "/shelves/id/1", "{}", None, 400, "BadRequest", "no field"),
        ("shelf", "PATCH", "/shelves/id/1", "[]", None, 400, "BadRequest", "one object"),
        ("shelf", "PATCH", "/shelves/id/1", r#"{"id": 2}"#, None, 400, "BadRequest", "URL"),
        ("shelf", "PATCH", "/shelves/id/1", r#"{"n": "x"}"#, None, 400, "InvalidValue", "whole"),
        ("shelf", "PATCH", "/shelves/id/1", r#"{"m": 1}"#, None, 400, "UnknownField", "\"m\""),
        // a policy hides the row, or would hide it then
        ("shelf", "PATCH", "/shelves/id/2", new, None, 403, "Forbidden", "not visible"),
        ("shelf", "PATCH", "/shelves/id/1", r#"{"region": "south"}"#, None, 403, "Forbidden", "policy"),
        ("changer", "PATCH", "/shelves/id/2", r#"{"label": "x"}"#, None, 404, "RowNotFound", "no row"),
        ("changer", "PATCH", "/shelves/id/9", r#"{"label": "x"}"#, None, 404, "RowNotFound", "no row"),
        ("changer", "PATCH", "/shelves/id/1", r#"{"note": "x"}"#, None, 403, "Forbidden", "\"note\""),
        ("changer", "PUT", "/shelves/id/1", r#"{"label": "x"}"#, None, 403, "Forbidden", "may not change"),
        ("changer", "PUT", "/shelves/id/9", new, Some(absent), 403, "Forbidden", "create"),
        ("maker", "PATCH", "/shelves/id/1", new, Some(present), 403, "Forbidden", "change"),
        ("reader", "PATCH", "/notes/id/100", r#"{"Note Title": "x"}"#, None, 403, "Forbidden", "neither"),
        // the database gives these their key
        ("all", "PATCH", "/notes/id/7", r#"{"Note Title": "x"}"#, None, 404, "RowNotFound", "no row"),
        (
            "blind",
            "PUT",
            "/notes/id/7",
            r#"{"region": "north", "Note Title": "x"}"#,
            None,
            400,
            "BadRequest",
            "POST",
        ),
        (
            "all",
            "PATCH",
            "/notes/id/100",
            r#"{"Note Title": "second"}"#,
            None,
            409,
            "UniqueViolation",
            "unique",
        ),
        ("all", "PATCH", "/notes/id/100", r#"{"size": 0}"#, None, 422, "ConstraintViolation", "check"),
        ("all", "PATCH", "/counted/region/north", r#"{"n": 1}"#, None, 405, "MethodNotAllowed", "view"),
    ];
    for (key, method, path, body, header, status, code, words) in cases {
        let headers: Vec<_> = header.into_iter().collect();
        let reply = desk.ask_with(key, method, path, body, &headers).await;
        let error = reply.json()["error"].clone();
        let what = format!("{key} {method} {path} {body} {header:?}: {reply:?}");
        assert_eq!((reply.status.as_u16(), error["code"].as_str()), (status, Some(code)), "{what}");
        assert!(error["message"].as_str().is_some_and(|told| told.contains(words)), "{what}");
        assert_eq!(desk.state().await, before, "{what}");
    }
    // a create-only key makes a row once
    for (status, code) in [(201, None), (409, Some("UniqueViolation"))] {
        let reply = desk.ask("maker", "PUT", "/shelves/id/20", new).await;
        assert_eq!(
            (reply.status.as_u16(), reply.json()["error"]["code"].as_str()),
            (status, code),
            "{reply:?}"
        );
    }
}

/// A trigger holds the first of them up between looking for the row and making it. Seen to fail with an insert that does not look at the conflict.
#[tokio::test]
async fn a_thousand_patches_of_an_absent_row_make_one() {
    let desk = Desk::open().await;
    let mut other = desk.server.connect("desk").await;
    execute(&mut other, "select pg_advisory_lock(4712)").await;
    let asking = (0..1_000).map(|n| {
        let (desk, body) = (&desk, json!({"region": "north", "label": "raced", "n": n}).to_string());
        async move { desk.ask("shelf", "PATCH", "/shelves/id/77", &body).await.status.as_u16() }
    });
    let all = futures_util::stream::iter(asking).buffer_unordered(64).collect::<Vec<u16>>();
    let release = async {
        let waiting = "select 1 from pg_stat_activity where wait_event = 'advisory'";
        until("writes that wait", async || (4 <= desk.rows(waiting).await.len()).then_some(())).await;
        execute(&mut other, "select pg_advisory_unlock(4712)").await;
    };
    let (told, ()) = tokio::join!(all, release);
    assert_eq!(told.iter().filter(|status| **status == 201).count(), 1, "{told:?}");
    assert!(told.iter().all(|status| matches!(status, 200 | 201)), "{told:?}");
    assert_eq!(desk.rows("select 1 from d.shelves where id = 77").await.len(), 1);
}
