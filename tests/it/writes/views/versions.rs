//! Views over a table that keeps the versions of its rows.

use serde_json::{Value, json};

use crate::writes::fixtures::versioned_rows::{TS, moment, tag, version};
use crate::writes::fixtures::views::{Views, told};

async fn opened() -> Views {
    let tenant = Views::open().await;
    for id in [1, 2] {
        let made =
            tenant.ask("all", "POST", "/kept", &json!({"id": id, "title": "one"}).to_string(), &[]).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    tenant
}

/// Seen to fail without the right to name the version, with a PUT of what the view works out, and with a tag of such a row.
#[tokio::test]
async fn a_view_that_shows_the_version_is_written_to_as_its_table_is() {
    let tenant = opened().await;
    for path in ["/kept_view/number/1", "/kept_above/number/1", "/kept_loud/id/1"] {
        let read = tenant.ask("all", "GET", path, "", &[]).await;
        let first = version(&read);
        assert_eq!(first, version(&tenant.ask("all", "GET", "/kept/id/1", "", &[]).await), "{path}");
        let body = |title: &str, ts: &str| json!({"title": title, TS: ts}).to_string();
        let changed = tenant.ask("all", "PATCH", path, &body("two", &first), &[]).await;
        assert_eq!(
            (changed.status.as_u16(), &changed.json()["value"][0]["title"]),
            (200, &json!("two")),
            "{changed:?}"
        );
        let second = version(&changed);
        assert!(moment(&first) < moment(&second), "{first} {second}");
        let put = tenant.ask("all", "PUT", path, &body("three", &second), &[]).await;
        assert_eq!(put.status, 200, "{put:?}");
        let third = version(&put);
        // what does not name it, or another one, changes nothing
        let before = tenant.state().await;
        for (body, status, code) in [
            (body("x", &second), 409, "StaleRow"),
            (json!({"title": "x"}).to_string(), 428, "ExpectedTsRequired"),
            (json!({"title": "x", TS: Value::Null}).to_string(), 400, "InvalidValue"),
        ] {
            let reply = tenant.ask("all", "PATCH", path, &body, &[]).await;
            let (is, error, message) = told(&reply);
            assert_eq!((is, &*error), (status, code), "{path}: {reply:?}");
            assert!(message.contains(TS) && !message.contains("add its column"), "{reply:?}");
        }
        assert_eq!(tenant.state().await, before);
        // by the tag of the table's row, too: it names the same version
        let table = tenant.ask("all", "GET", "/kept/id/1", "", &[]).await;
        let (stale, now) = (tag(&table), tag(&changed_of(&tenant, path, &third).await));
        let reply = tenant.ask("all", "PATCH", path, r#"{"title": "x"}"#, &[("If-Match", &stale)]).await;
        assert_eq!(told(&reply).0, 412, "{reply:?}");
        let reply = tenant.ask("all", "PATCH", path, r#"{"title": "four"}"#, &[("If-Match", &now)]).await;
        assert_eq!(told(&reply).0, 200, "{reply:?}");
        // rows are not deleted
        if path != "/kept_above/number/1" {
            let reply = tenant.ask("all", "DELETE", path, "", &[]).await;
            assert_eq!((told(&reply).0, &*told(&reply).1), (405, "DirectDeleteBlocked"), "{reply:?}");
            assert_eq!(reply.header("allow"), Some("GET, HEAD, PATCH, PUT, OPTIONS"));
        }
    }
    // of its own, where all that it shows is the row's
    for (path, has_tag) in
        [("/kept_view/number/1", true), ("/kept_above/number/1", true), ("/kept_loud/id/1", false)]
    {
        let read = tenant.ask("all", "GET", path, "", &[]).await;
        assert_eq!(read.header("etag").is_some(), has_tag, "{read:?}");
        if let Some(etag) = read.header("etag").map(ToOwned::to_owned) {
            assert_eq!(tenant.ask("all", "GET", path, "", &[("If-None-Match", &etag)]).await.status, 304);
            let reply = tenant.ask("all", "PATCH", path, r#"{"title": "5"}"#, &[("If-Match", &etag)]).await;
            assert_eq!(reply.status, 200, "{reply:?}");
            let now = tenant.ask("all", "GET", path, "", &[("If-None-Match", &etag)]).await;
            assert_eq!((now.status.as_u16(), tag(&now)), (200, tag(&reply)), "{now:?}");
        }
    }
    // a row that is not there is made without one, and not with one
    let made = tenant.ask("all", "PATCH", "/kept_view/number/7", r#"{"title": "new"}"#, &[]).await;
    assert_eq!(made.status, 201, "{made:?}");
    let body = json!({"title": "x", TS: version(&made)}).to_string();
    let reply = tenant.ask("all", "PATCH", "/kept_view/number/8", &body, &[]).await;
    assert_eq!((told(&reply).0, &*told(&reply).1), (409, "StaleRow"), "{reply:?}");
    let reply = tenant
        .ask("all", "POST", "/kept_view", &json!({"number": 9, TS: version(&made)}).to_string(), &[])
        .await;
    assert_eq!((told(&reply).0, &*told(&reply).1), (400, "ReadOnlyColumn"), "{reply:?}");
    // a right to change one field brings reading and naming the version
    let read = tenant.ask("short", "GET", "/kept_view/number/2", "", &[]).await;
    let body = json!({"title": "short", TS: version(&read)}).to_string();
    let reply = tenant.ask("short", "PATCH", "/kept_view/number/2", &body, &[]).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// The row changed in its table: what that read of it says.
async fn changed_of(tenant: &Views, path: &str, ts: &str) -> rowgate_tests::client::Reply {
    let body = json!({"title": path, TS: ts}).to_string();
    let reply = tenant.ask("all", "PATCH", "/kept/id/1", &body, &[]).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply
}

/// Seen to fail with an expression taken for the version, with the table's message, and with a DELETE taken for a cascade.
#[tokio::test]
async fn a_view_that_does_not_show_the_version_says_what_to_add() {
    let tenant = opened().await;
    let before = tenant.state().await;
    for (method, path, body) in [
        ("PATCH", "/kept_short/id/1", r#"{"title": "x"}"#),
        ("PUT", "/kept_short/id/1", r#"{"title": "x"}"#),
        ("PATCH", "/kept_false/id/1", r#"{"title": "x"}"#),
    ] {
        let reply = tenant.ask("all", method, path, body, &[]).await;
        let (status, code, message) = told(&reply);
        assert_eq!((status, &*code), (428, "ExpectedTsRequired"), "{path}: {reply:?}");
        assert!(message.contains("add its column dl_expected_ts to the view"), "{message}");
    }
    let reply = tenant.ask("all", "DELETE", "/kept_short/id/1", "", &[]).await;
    assert_eq!((told(&reply).0, &*told(&reply).1), (405, "DirectDeleteBlocked"), "{reply:?}");
    let read = tenant.ask("all", "GET", "/kept_false/id/1", "", &[]).await;
    assert_eq!(read.header("etag"), None, "{read:?}");
    let body = json!({"title": "x", TS: version(&read)}).to_string();
    let reply = tenant.ask("all", "PATCH", "/kept_false/id/1", &body, &[]).await;
    assert_eq!((told(&reply).0, &*told(&reply).1), (400, "ReadOnlyColumn"), "{reply:?}");
    assert_eq!(tenant.state().await, before);
    let made = tenant.ask("all", "PATCH", "/kept_short/id/9", r#"{"title": "new"}"#, &[]).await;
    assert_eq!(made.status, 201, "{made:?}");
}
