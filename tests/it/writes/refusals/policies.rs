//! Rows that a key reads and policies keep from it: that is said, and of rows that are hidden nothing is.

use rowgate_tests::client::Reply;
use serde_json::{Value, json};

use crate::writes::fixtures::tables::Desk;

const ANY: (&str, &str) = ("If-Match", "*");
const KEPT: &str = "can read the row, but the policies of the table do not let it change the row";

fn told(reply: &Reply) -> (u16, String, String) {
    let error = reply.json()["error"].take();
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (reply.status.as_u16(), text("code"), text("message"))
}

/// It was 404, 403 "may not see", or 400 "there is no row with this key", of a row that the next GET showed.
///
/// Seen to fail without the second look: for what is found by nobody, for an INSERT that fails, for DELETE, and for versions.
#[tokio::test]
async fn what_is_read_and_may_not_be_changed_is_no_row_that_is_not_there() {
    let desk = Desk::open().await;
    let before = desk.state().await;
    let whole = r#"{"owner": "south", "body": "x", "n": 1}"#;
    let new = r#"{"owner": "north", "body": "x", "n": 1}"#;
    for (key, method, path, body, header, words) in [
        // what would be made instead is not whole, is there already, or is not allowed
        ("shelf", "PATCH", "/posts/id/2", r#"{"body": "x"}"#, None, KEPT),
        ("shelf", "PATCH", "/posts/id/2", whole, None, KEPT),
        ("shelf", "PATCH", "/posts/id/2", r#"{"owner": "nobody", "body": "x", "n": 1}"#, None, KEPT),
        ("shelf", "PUT", "/posts/id/2", whole, None, KEPT),
        ("shelf", "PATCH", "/posts/id/2", whole, Some(("Prefer", "return=minimal")), KEPT),
        ("shelf", "PATCH", "/posts/id/2", whole, Some(ANY), KEPT),
        ("changer", "PATCH", "/posts/id/2", r#"{"body": "x"}"#, None, KEPT),
        ("shelf", "DELETE", "/posts/id/2", "", None, "do not let it delete the row"),
        ("shelf", "DELETE", "/posts/id/2", "", Some(ANY), "do not let it delete the row"),
        // a table with triggers that may pass rows over, and a view
        ("shelf", "PATCH", "/ruled/id/2", r#"{"body": "x"}"#, None, KEPT),
        ("shelf", "PATCH", "/ruled/id/2", whole, None, KEPT),
        ("shelf", "PUT", "/ruled/id/2", whole, Some(ANY), KEPT),
        ("shelf", "PATCH", "/posted/id/2", r#"{"body": "x"}"#, None, "a table under the view"),
        ("shelf", "DELETE", "/posted/id/2", "", None, "a table under the view"),
        // the row as it would become
        ("shelf", "PATCH", "/posts/id/1", r#"{"owner": "south"}"#, None, "does not allow this API key"),
    ] {
        let headers: Vec<_> = header.into_iter().collect();
        let reply = desk.ask_with(key, method, path, body, &headers).await;
        let (status, code, message) = told(&reply);
        assert_eq!(
            (status, &*code),
            (403, "Forbidden"),
            "{key} {method} {path} {body} {header:?}: {reply:?}"
        );
        assert!(message.contains(words), "{key} {method} {path} {body} {header:?}: {reply:?}");
        assert_eq!(desk.state().await, before, "{key} {method} {path} {body}");
    }
    // hidden rows get the answer of those that are not there, as far as it can be
    for (key, method, body, header, status) in [
        ("shelf", "PATCH", r#"{"body": "x"}"#, None, 403),
        ("shelf", "PATCH", r#"{"owner": "north"}"#, None, 400),
        ("shelf", "PUT", r#"{"body": "x"}"#, None, 400),
        ("shelf", "PATCH", new, Some(ANY), 404),
        ("changer", "PATCH", r#"{"body": "x"}"#, None, 404),
        ("shelf", "DELETE", "", None, 404),
    ] {
        for table in ["posts", "ruled"] {
            if table == "ruled" && (key, method) != ("shelf", "PATCH") {
                continue;
            }
            let headers: Vec<_> = header.into_iter().collect();
            let [hidden, absent] = ["3", "9"].map(|id| format!("/{table}/id/{id}"));
            let hidden = told(&desk.ask_with(key, method, &hidden, body, &headers).await);
            let absent = told(&desk.ask_with(key, method, &absent, body, &headers).await);
            assert_eq!(hidden, absent, "{key} {method} {table} {body} {header:?}");
            assert_eq!(hidden.0, status, "{key} {method} {table} {body} {header:?}: {hidden:?}");
        }
    }
    for path in ["/posts/id/3", "/ruled/id/3"] {
        let reply = desk.ask("shelf", "PATCH", path, new).await;
        assert!(told(&reply).0 == 403 && told(&reply).2.contains("not visible"), "{reply:?}");
    }
    assert_eq!(desk.state().await, before);
    for (method, body, status) in [("PATCH", r#"{"body": "y"}"#, 200), ("PUT", new, 200), ("DELETE", "", 204)]
    {
        assert_eq!(desk.ask("shelf", method, "/posts/id/1", body).await.status, status, "{method}");
    }
}

/// It was 409 `StaleRow`, whatever was read again.
#[tokio::test]
async fn a_version_that_is_the_rows_does_not_go_stale_by_a_policy() {
    let desk = Desk::open().await;
    let before = desk.state().await;
    let read = desk.ask("shelf", "GET", "/dated/id/2", "").await;
    let (tag, ts) =
        (read.header("etag").expect("a tag").to_owned(), read.rows()[0]["dl_expected_ts"].clone());
    let old = json!("2001-01-01T00:00:00Z");
    let with = |ts: &Value| json!({"body": "x", "dl_expected_ts": ts}).to_string();
    for (path, body, header, status, code) in [
        ("/dated/id/2", with(&ts), None, 403, "Forbidden"),
        ("/dated/id/2", r#"{"body": "x"}"#.to_owned(), Some(("If-Match", &*tag)), 403, "Forbidden"),
        ("/dated/id/2", r#"{"body": "x"}"#.to_owned(), None, 403, "Forbidden"),
        ("/dated/id/2", with(&old), None, 409, "StaleRow"),
        ("/dated/id/3", with(&ts), None, 409, "StaleRow"),
        ("/dated/id/9", with(&ts), None, 409, "StaleRow"),
        ("/dated/id/3", r#"{"body": "x"}"#.to_owned(), Some(("If-Match", &*tag)), 412, "PreconditionFailed"),
        ("/dated/id/1", with(&old), None, 409, "StaleRow"),
    ] {
        let headers: Vec<_> = header.into_iter().collect();
        let reply = desk.ask_with("shelf", "PATCH", path, &body, &headers).await;
        let (is, error, message) = told(&reply);
        assert_eq!((is, &*error), (status, code), "{path} {body} {header:?}: {reply:?}");
        assert_eq!(message.contains(KEPT), status == 403, "{reply:?}");
    }
    assert_eq!(desk.state().await, before);
}

/// Seen to fail with the sentence that names both, and, for a table that refers to itself, with the table that is named alone.
#[tokio::test]
async fn a_foreign_key_says_which_row_is_missing_or_in_the_way() {
    let desk = Desk::open().await;
    desk.execute(
        "insert into d.late values (1, null, 10, null), (2, 1, 20, null), (3, null, 30, 20), (4, null, 40, null);
         insert into d.strict values (1, 4);
         create table d.children (id integer references d.late on delete cascade);
         create table d.grandchildren (id integer);
         alter table d.children add unique (id);
         alter table d.grandchildren add foreign key (id) references d.children (id);
         insert into d.children values (3); insert into d.grandchildren values (3);",
    )
    .await;
    let before = desk.state().await;
    const MISSING: &str = "the row refers to a row that does not exist";
    const IN_USE: &str = "other rows still refer to this row";
    for (method, path, body, words, n_details) in [
        ("POST", "/notes", r#"{"region": "west", "Note Title": "x"}"#, MISSING, 2),
        ("PATCH", "/notes/id/100", r#"{"region": "west"}"#, MISSING, 2),
        ("DELETE", "/regions/name/north", "", IN_USE, 0),
        ("POST", "/late", r#"{"id": 9, "other": 99}"#, MISSING, 2),
        ("PATCH", "/late/id/1", r#"{"other": 99}"#, MISSING, 2),
        ("PATCH", "/late/id/9", r#"{"parent": 99}"#, MISSING, 2),
        ("DELETE", "/late/id/1", "", IN_USE, 2),
        ("PATCH", "/late/id/2", r#"{"code": 21}"#, IN_USE, 2),
        ("PUT", "/late/id/2", r#"{"other": 1}"#, IN_USE, 2),
        ("DELETE", "/late/id/4", "", IN_USE, 0),
        // to what would be deleted with it
        ("DELETE", "/late/id/3", "", IN_USE, 0),
    ] {
        let reply = desk.ask("all", method, path, body).await;
        let (status, code, message) = told(&reply);
        assert_eq!((status, &*code), (409, "ForeignKeyViolation"), "{method} {path} {body}: {reply:?}");
        assert!(message.contains(words), "{method} {path} {body}: {reply:?}");
        let details = reply.json()["error"]["details"].as_array().map_or(0, Vec::len);
        assert_eq!(details, n_details, "{method} {path} {body}: {reply:?}");
        assert_eq!(desk.state().await, before, "{method} {path} {body}");
    }
}
