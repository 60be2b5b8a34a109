//! What PostgreSQL cannot write to a view, and what of it can be written instead.

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;

use super::writable::{ABSENT, PRESENT};
use crate::writes::fixtures::views::{Views, told};

const READ: &str = "GET, HEAD, OPTIONS";
const NO_DELETE: &str = "GET, HEAD, PATCH, PUT, OPTIONS";
const ONLY_DELETE: &str = "GET, HEAD, DELETE, OPTIONS";
const WHOLE: &str = "GET, HEAD, PATCH, PUT, DELETE, OPTIONS";

/// DELETE of a collection of a view without INSERT offered POST, and POST of a row that is never deleted offered DELETE.
///
/// Seen to fail with the methods of the table of routes in every 405.
#[tokio::test]
async fn a_405_offers_what_options_offers_and_no_more() {
    let tenant = Views::open().await;
    let kept = r#"{"id": 1, "title": "one"}"#;
    assert_eq!(tenant.ask("all", "POST", "/kept", kept, &[]).await.status, 201);
    let mut seen = std::collections::BTreeMap::new();
    for entity in [
        "pictures",
        "above",
        "only_changes",
        "only_makes",
        "only_drops",
        "mixed",
        "simple",
        "fixed",
        "heap",
        "kept",
        "kept_view",
        "kept_loud",
        "kept_short",
        "kept_flag",
        "absent",
    ] {
        let key = match entity {
            "fixed" => "n",
            "kept_view" => "number",
            _ => "id",
        };
        for path in [format!("/{entity}"), format!("/{entity}/{key}/1"), "".to_owned()] {
            let options = tenant.ask("all", "OPTIONS", &path, "", &[]).await;
            let allow = options.header("allow").expect("Allow").to_owned();
            let methods: Vec<_> = allow.split(", ").collect();
            for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
                let body = if method == "GET" || method == "HEAD" { "" } else { "[]" };
                let reply = tenant.ask("all", method, &path, body, &[]).await;
                let here = format!("{method} {path}, {allow}: {reply:?}");
                assert_eq!(reply.status == 405, !methods.contains(&method), "{here}");
                assert_eq!(reply.header("allow"), (reply.status == 405).then_some(&*allow), "{here}");
            }
            *seen.entry(allow).or_insert(0) += 1;
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}

/// Seen to fail with views that know nothing of the tables below them: the flag becomes NULL, or the row comes back.
#[tokio::test]
async fn a_put_through_a_view_leaves_the_flag_of_its_table() {
    let tenant = Views::open().await;
    let made = tenant.ask("all", "POST", "/kept", r#"{"id": 1, "title": "one"}"#, &[]).await;
    let mut ts = made.json()["value"][0]["dl_expected_ts"].clone();
    for (title, flag) in [("two", None), ("three", Some(true)), ("four", None)] {
        let mut body = serde_json::json!({"title": title, "size": 1, "dl_expected_ts": ts});
        if let Some(flag) = flag {
            body["is_deleted"] = flag.into();
        }
        let put = tenant.ask("all", "PUT", "/kept_flag/id/1", &body.to_string(), &[]).await;
        assert_eq!(put.status, 200, "{put:?}");
        let row = &put.json()["value"][0];
        assert_eq!((&row["title"], &row["is_deleted"]), (&title.into(), &(title != "two").into()), "{put:?}");
        ts = row["dl_expected_ts"].clone();
    }
}

/// Seen to fail with an OPTIONS that does not ask, and with fields that are taken for settable.
#[tokio::test]
async fn what_a_view_cannot_do_is_refused_with_what_it_can() {
    let tenant = Views::open().await;
    tenant.ask("all", "POST", "/pictures", r#"{"id": 1, "name": "a", "size": 5}"#, &[]).await;
    let before = tenant.state().await;
    let size = r#"{"size": 1}"#;
    for (method, path, body, allow, words) in [
        ("POST", "/fixed", r#"{"n": 1}"#, READ, "INSERT"),
        ("PATCH", "/fixed/n/1", r#"{"n": 1}"#, READ, "UPDATE"),
        ("DELETE", "/fixed/n/1", "", READ, "DELETE"),
        ("POST", "/only_changes", size, READ, "INSERT"),
        ("DELETE", "/only_changes/id/1", "", NO_DELETE, "DELETE"),
        ("DELETE", "/only_makes/id/1", "", NO_DELETE, "DELETE"),
        ("POST", "/only_drops", size, READ, "INSERT"),
        ("PATCH", "/only_drops/id/1", size, ONLY_DELETE, "UPDATE"),
        ("PUT", "/only_drops/id/1", size, ONLY_DELETE, "UPDATE"),
    ] {
        let reply = tenant.ask("all", method, path, body, &[]).await;
        let (status, code, message) = told(&reply);
        assert_eq!((status, &*code), (405, "MethodNotAllowed"), "{method} {path}: {reply:?}");
        assert!(message.contains(words) && message.contains("INSTEAD OF"), "{reply:?}");
        assert_eq!(reply.header("allow"), Some(allow), "{method} {path}: {reply:?}");
        let options = tenant.ask("all", "OPTIONS", path, "", &[]).await;
        assert_eq!(options.header("allow"), Some(allow), "{path}: {options:?}");
    }
    let whole = tenant.ask("all", "OPTIONS", "/pictures/id/1", "", &[]).await;
    assert_eq!(whole.header("allow"), Some(WHOLE), "{whole:?}");
    let stranger = tenant.ask("changer", "OPTIONS", "/fixed/n/1", "", &[]).await;
    assert_eq!(stranger.header("allow"), Some(WHOLE), "{stranger:?}");
    for (method, path, body, header, status, code, words) in [
        ("PATCH", "/only_changes/id/9", size, Some(ABSENT), 400, "BadRequest", "omit If-None-Match"),
        ("PATCH", "/only_makes/id/1", size, Some(PRESENT), 400, "BadRequest", "omit If-Match"),
        ("PATCH", "/simple/id/1", r#"{"twice": 4}"#, None, 400, "ReadOnlyColumn", "\"twice\""),
        ("PUT", "/simple/id/1", r#"{"twice": 4}"#, None, 400, "ReadOnlyColumn", "\"twice\""),
        ("POST", "/simple", r#"{"id": 9, "twice": 4}"#, None, 400, "ReadOnlyColumn", "\"twice\""),
        ("POST", "/mixed", r#"{"id": 9, "loud": "x"}"#, None, 400, "ReadOnlyColumn", "\"loud\""),
        ("PATCH", "/mixed/id/9", r#"{"loud": "x"}"#, Some(ABSENT), 400, "ReadOnlyColumn", "\"loud\""),
        ("PATCH", "/mixed/id/9", r#"{"loud": "x"}"#, None, 404, "RowNotFound", "no row"),
    ] {
        let headers: Vec<_> = header.into_iter().collect();
        let reply = tenant.ask("all", method, path, body, &headers).await;
        let (is, error, message) = told(&reply);
        assert_eq!((is, &*error), (status, code), "{method} {path} {body}: {reply:?}");
        assert!(message.contains(words), "{reply:?}");
    }
    assert_eq!(tenant.state().await, before);
}

/// PostgreSQL says what a view can do, and prints the expressions of a table, only with a lock on it. Seen to fail without
/// `lock_timeout`, and with defaults and policies that are printed with their table.
#[tokio::test]
async fn what_somebody_is_changing_keeps_no_catalog_from_being_read() {
    let tenant = Views::open().await;
    tenant.ask("all", "POST", "/pictures", r#"{"id": 1, "name": "a", "size": 5}"#, &[]).await;
    let mut other = tenant.server.connect("views").await;
    execute(&mut other, "begin; alter view g.fixed set (security_barrier = true); lock table g.kept").await;
    let unique = "alter table g.heap add constraint one_note unique (note)";
    execute(&mut tenant.server.connect("views").await, unique).await;
    until("a catalog with the constraint", async || {
        let reply = tenant.ask("all", "POST", "/heap", r#"{"id": 1, "note": "x"}"#, &[]).await;
        reply.body.contains("one_note").then_some(())
    })
    .await;
    let reply = tenant.ask("all", "PATCH", "/pictures/id/1", r#"{"size": -1}"#, &[]).await;
    assert!(reply.status == 422 && told(&reply).2.contains("skipped the row"), "{reply:?}");
    execute(&mut other, "rollback").await;
}
