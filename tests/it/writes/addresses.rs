//! What a row's address may say of its key, and what the body may say beside it.

use serde_json::json;

use super::fixtures::rounding_keys::{ROUNDING, RoundingKeys};
use super::fixtures::views::told;

/// Seen to fail where the value is not compared with what its column keeps: 201, with a `Location` where no row is.
#[tokio::test]
async fn a_key_that_its_column_would_round_makes_no_row() {
    let tenant = RoundingKeys::open().await;
    for (table, ty, rounded, kept) in ROUNDING {
        for (method, only) in [
            ("PUT", None),
            ("PATCH", None),
            ("PUT", Some(("If-None-Match", "*"))),
            ("PATCH", Some(("If-Match", "*"))),
        ] {
            let path = format!("/{table}/k/{rounded}");
            let headers: Vec<_> =
                [Some(("Content-Type", "application/json")), only].into_iter().flatten().collect();
            let reply = tenant.ask_with(method, &path, r#"{"v": "1"}"#, &headers).await;
            let (status, code, message) = told(&reply);
            if only.is_some_and(|it| it.0 == "If-Match") {
                assert_eq!(status, 404, "{path}: {reply:?}");
                continue;
            }
            assert_eq!((status, code.as_str()), (400, "InvalidValue"), "{method} {path} {ty}: {reply:?}");
            assert!(message.contains("key field \"k\""), "{reply:?}");
            assert!(tenant.rows(&format!("select 1 from a.{table}")).await.is_empty(), "{method} {path}");
        }
        let path = format!("/{table}/k/{kept}");
        for (method, status) in [("PUT", 201), ("PUT", 200), ("PATCH", 200)] {
            let reply = tenant.ask("all", method, &path, r#"{"v": "1"}"#).await;
            assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        }
        let read = tenant.ask("all", "GET", &path, "").await;
        assert_eq!(read.rows().len(), 1, "{path}: {read:?}");
        // and back as it was read
        let reply = tenant.ask("all", "PUT", &path, &read.rows()[0].to_string()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
}

/// Seen to fail where body and address are compared as text.
#[tokio::test]
async fn a_key_in_the_body_is_compared_by_value() {
    let tenant = RoundingKeys::open().await;
    let id = "6b1b1e1e-0000-4000-8000-00000000000a";
    for (path, key, other) in [
        (format!("/ids/id/{}", id.to_uppercase()), json!({"id": id}), json!({"id": id.replace("6b", "6c")})),
        ("/r_numeric/k/1.0".into(), json!({"k": 1.00}), json!({"k": "1.01"})),
        ("/r_domain/k/1.0".into(), json!({"k": "1.00"}), json!({"k": null})),
        ("/lists/k/%7B1,%202%7D".into(), json!({"k": [1, 2]}), json!({"k": [1, 3]})),
    ] {
        for (method, status) in [("PUT", 201), ("PUT", 200), ("PATCH", 200)] {
            let mut body = other.clone();
            body["v"] = json!("x");
            let reply = tenant.ask("all", method, &path, &body.to_string()).await;
            let (refused, code, message) = told(&reply);
            assert_eq!((refused, code.as_str()), (400, "BadRequest"), "{path}: {reply:?}");
            assert!(message.contains("differs from the URL"), "{reply:?}");
            body = key.clone();
            body["v"] = json!("x");
            let reply = tenant.ask("all", method, &path, &body.to_string()).await;
            assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        }
        let read = tenant.ask("all", "GET", &path, "").await;
        let reply = tenant.ask("all", "PUT", &path, &read.rows()[0].to_string()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
}

/// Seen to fail where PUT and DELETE name whatever field is in the way.
#[tokio::test]
async fn no_refusal_names_a_field_that_the_key_does_not_know() {
    let tenant = RoundingKeys::open().await;
    let unknown = tenant.ask("part", "GET", "/secrets?$select=sec", "").await;
    assert_eq!(told(&unknown).1, "UnknownField");
    for path in ["/secrets/id/1", "/secrets/id/9"] {
        let (status, code, message) = told(&tenant.ask("part", "PUT", path, r#"{"pub": "x"}"#).await);
        assert_eq!((status, code.as_str()), (403, "Forbidden"), "{message}");
        assert!(!message.contains("sec\"") && message.contains("PATCH"), "{message}");
    }
    // a field that it may read is named
    let (status, _, message) = told(&tenant.ask("looker", "PUT", "/secrets/id/1", r#"{"pub": "x"}"#).await);
    assert!(status == 403 && message.contains("\"sec\""), "{message}");
    let (status, code, message) = told(&tenant.ask("part", "DELETE", "/kept/id/1", "").await);
    assert_eq!((status, code.as_str()), (405, "DirectDeleteBlocked"));
    assert!(!message.contains("is_deleted"), "{message}");
    let message = told(&tenant.ask("all", "DELETE", "/kept/id/1", "").await).2;
    assert!(message.contains("\"is_deleted\""), "{message}");
    // one that nobody has a right on yet
    tenant.execute("alter table a.secrets add column extra text").await;
    rowgate_tests::wait::until("the new column", async || {
        let reply = tenant.ask("all", "PUT", "/secrets/id/1", r#"{"pub": "x", "sec": "s"}"#).await;
        assert!(!reply.body.contains("extra"), "{reply:?}");
        (reply.status == 403).then_some(())
    })
    .await;
    assert_eq!(tenant.ask("part", "PATCH", "/secrets/id/1", r#"{"pub": "y"}"#).await.status, 200);
}

/// Seen to fail where a number passes for base 64, an array of one for its row, and where the parameters of headers are not read.
#[tokio::test]
async fn a_body_is_what_it_says_it_is() {
    let tenant = RoundingKeys::open().await;
    for value in ["true", "1234", "[1234]"] {
        let body = format!(r#"{{"id": 1, "data": {value}}}"#);
        let (status, code, message) = told(&tenant.ask("all", "POST", "/files", &body).await);
        assert_eq!((status, code.as_str()), (400, "InvalidValue"), "{value}: {message}");
    }
    for method in ["PATCH", "PUT"] {
        let (status, code, message) =
            told(&tenant.ask("all", method, "/secrets/id/1", r#"[{"pub": "x", "sec": "s"}]"#).await);
        assert_eq!((status, code.as_str()), (400, "BadRequest"), "{message}");
        assert!(message.contains("one object"), "{message}");
    }
    let body = r#"{"pub": "x"}"#;
    for (ty, prefer, status) in [
        ("application/json; charset=utf-16", "x", 400),
        ("application/json; charset=\"ISO-8859-1\"", "x", 400),
        ("application/json;charset=\"UTF-8\"", "return=\"minimal\"", 204),
        ("application/json", "wait=1, Return = minimal; foo=bar", 204),
        ("application/json", "return=\"representation\"", 200),
    ] {
        let headers = [("Content-Type", ty), ("Prefer", prefer)];
        let reply = tenant.ask_with("PATCH", "/secrets/id/1", body, &headers).await;
        assert_eq!(reply.status, status, "{ty} {prefer}: {reply:?}");
    }
}
