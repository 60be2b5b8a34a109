//! What a call takes and gives.

use rowgate_tests::client::Reply;
use serde_json::{Value, json};

use super::fixture::{Desk, given, refusal};

#[tokio::test]
async fn a_call_gives_what_the_routine_gives_under_its_names() {
    let desk = Desk::open().await;
    for (name, body, expected) in [
        ("scalar", json!({"a": 2, "b": 3}), json!([{"scalar": 5}])),
        ("scalar", json!({"b": "3", "a": null}), json!([{"scalar": null}])),
        (
            "pairs",
            json!({"n": 3}),
            json!([{"i": 1, "square": 1}, {"i": 2, "square": 4}, {"i": 3, "square": 9}]),
        ),
        ("pairs", json!({"n": 0}), json!([])),
        ("listed", json!({"n": 2}), json!([{"listed": "r1"}, {"listed": "r2"}])),
        ("split", json!({"whole": "größe"}), json!([{"head": "g", "tail": "röße"}])),
        ("both", json!({"a": 1, "b": "x"}), json!([{"a": 2, "b": "x!"}])),
        ("defaults", json!({}), json!([{"defaults": "7x{1,2}"}])),
        ("defaults", json!({"c": [3], "a": 1}), json!([{"defaults": "1x{3}"}])),
        ("whole", json!({"id": 4}), json!([{"x": 4, "label": "s4"}])),
        ("one_of", json!({"wanted": "happy"}), json!([{"one_of": "happy"}])),
        ("nothing", json!({"n": 1}), json!([])),
        ("strict", json!({"a": null}), json!([{"strict": null}])),
        ("transfer", json!({"source": 1, "target": 2, "amount": 30}), json!([{"done": 30}])),
        ("counted", json!({"n": 21}), json!([{"total": 42, "last": "n21"}])),
        ("halves", json!({"n": 5}), json!([])),
    ] {
        for key in ["plain", "clerk"] {
            let reply = desk.call(key, name, body.clone()).await;
            assert_eq!(given(&reply), expected, "{key} {name} {body}");
            assert_eq!(reply.header("location"), None);
        }
    }
    let balances = desk.rows("select balance from c.accounts order by id").await;
    assert_eq!(balances, [json!({"balance": 40}), json!({"balance": 60})]);
    // Of each of both: 1 by `nothing`; by `halves` 5, not 1005, and 2005.
    let notes = desk.rows("select n, count(*) from c.notes group by n order by n").await;
    let twice = |n| json!({"n": n, "count": 2});
    assert_eq!(notes, [twice(1), twice(5), twice(2005)]);

    // Nothing sent is as good as no parameter.
    let url = format!("{}/auth/desk/api/defaults", desk.world.url());
    let bare = desk.client.send("POST", &url, &[("X-API-Key", &desk.world.key("clerk"))], "").await;
    assert_eq!(given(&bare), json!([{"defaults": "7x{1,2}"}]));
    let headers = [("X-API-Key", &*desk.world.key("clerk")), ("Prefer", "return=minimal")];
    let minimal = desk.client.send("POST", &url, &headers, "").await;
    assert_eq!((minimal.status.as_u16(), &*minimal.body), (204, ""));
}

#[tokio::test]
async fn values_of_every_kind_pass_through_a_call_unchanged() {
    let desk = Desk::open().await;
    let sent = json!({
        "big": 9_007_199_254_740_993_i64, "exact": "0.10", "flag": true, "day": "2024-02-29",
        "moment": "2024-02-29T12:00:00.123456Z", "id": "0f14d0ab-9605-4a62-a9e4-5ed26688389b", "bytes": "AP9h",
        "doc": {"a": [1, {"b": null}]}, "raw": {"z": 1, "a": 2}, "words": ["a \"b\"", null, "c,d"],
        "spot": {"x": 1, "label": "o'ne"}, "spots": [{"x": 2, "label": "t{w}o"}, null], "mood": "sad", "small": 99,
        "span": "P1DT2H", "range": "[1,5)",
    });
    let fields = sent.as_object().expect("an object");
    let body: Value = fields.iter().map(|(name, value)| (format!("p_{name}"), value.clone())).collect();
    let mut expected = sent.clone();
    expected["exact"] = serde_json::from_str("0.10").expect("a number");
    for key in ["plain", "clerk"] {
        let reply = desk.call(key, "kinds", body.clone()).await;
        assert_eq!(given(&reply), json!([expected]), "{key}");
        assert!(
            reply.body.contains("9007199254740993") && reply.body.contains("\"exact\":0.10"),
            "{reply:?}"
        );
    }
    let nulls: Value = fields.keys().map(|name| (format!("p_{name}"), Value::Null)).collect();
    let expected: Value = fields.keys().map(|name| (name.clone(), Value::Null)).collect();
    assert_eq!(given(&desk.call("clerk", "kinds", nulls).await), json!([expected]));

    for (name, value, says) in [
        ("p_big", json!("1.5"), "\"p_big\" is bigint"),
        ("p_day", json!("2024-02-30"), "\"p_day\" is date"),
        ("p_flag", json!(1), "\"p_flag\" is boolean"),
        ("p_mood", json!("glad"), "\"p_mood\" is c.mood"),
        ("p_words", json!("a"), "\"p_words\" is text[]"),
        ("p_spot", json!({"y": 1}), "\"p_spot\" is c.spot"),
        ("p_id", json!("x"), "\"p_id\" is uuid"),
    ] {
        let mut wrong = body.clone();
        wrong[name] = value;
        let (code, status, message) = refusal(&desk.call("clerk", "kinds", wrong).await);
        assert_eq!((&*code, status), ("InvalidValue", 400), "{name}: {message}");
        assert!(message.contains(says), "{name}: {message}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_refused_by_name() {
    let desk = Desk::open().await;
    for (name, body, expected, says) in [
        ("scalar", "{\"a\": 1}", "InvalidValue 400", "\"b\""),
        ("scalar", "{}", "InvalidValue 400", "\"a\", \"b\""),
        ("scalar", "{\"a\": 1, \"b\": 2, \"c\": 3}", "UnknownField 400", "\"c\""),
        ("scalar", "{\"a\": 1, \"A\": 2, \"b\": 3}", "UnknownField 400", "\"A\""),
        ("scalar", "{\"a\": 1, \"a\": 2, \"b\": 3}", "BadRequest 400", "twice"),
        ("scalar", "[{\"a\": 1, \"b\": 2}]", "BadRequest 400", "not an array"),
        ("scalar", "7", "BadRequest 400", "neither"),
        ("scalar", "{\"a\": 99999999999, \"b\": 1}", "InvalidValue 400", "\"a\" is integer"),
        // What comes out only is no parameter.
        ("counted", "{\"n\": 1, \"total\": 2}", "UnknownField 400", "\"total\""),
        ("split", "{\"whole\": \"x\", \"head\": \"y\"}", "UnknownField 400", "\"head\""),
        ("no_such", "{}", "EntityNotFound 404", ""),
    ] {
        let (code, status, message) = refusal(&desk.ask("clerk", "POST", &format!("/{name}"), body).await);
        assert_eq!(format!("{code} {status}"), expected, "{name} {body}: {message}");
        assert!(message.contains(says), "{name} {body}: {message}");
    }
    let options = desk.ask("clerk", "POST", "/scalar?$select=scalar", "{\"a\": 1, \"b\": 2}").await;
    assert_eq!(refusal(&options).0, "BadRequest");
}

#[tokio::test]
async fn a_procedure_is_called_and_nothing_else() {
    let desk = Desk::open().await;
    for (method, path) in [
        ("GET", "/scalar"),
        ("GET", "/scalar/a/1"),
        ("PATCH", "/scalar/a/1"),
        ("PUT", "/scalar/a/1"),
        ("DELETE", "/scalar/a/1"),
    ] {
        let body = if ["PATCH", "PUT"].contains(&method) { "{}" } else { "" };
        let reply = desk.ask("clerk", method, path, body).await;
        assert_eq!(refusal(&reply).0, "MethodNotAllowed", "{method} {path}");
        assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, Some("POST")), "{method} {path}");
    }
    let head = desk.ask("clerk", "HEAD", "/scalar", "").await;
    assert_eq!((head.status.as_u16(), head.header("allow")), (405, Some("POST")));
    // it has no rows: a 405 would offer the method that it refuses
    let row = desk.ask("clerk", "POST", "/scalar/a/1", "{}").await;
    assert_eq!((row.status.as_u16(), row.header("allow")), (404, None), "{row:?}");
    // Whoever may call it is told what it takes; everybody else what a stranger is.
    for (key, path, allow) in [
        ("clerk", "/scalar", "POST"),
        ("poor", "/scalar", "POST"),
        ("clerk", "/scalar/a/1", "POST"),
        ("poor", "/pairs", "GET, HEAD, POST, OPTIONS"),
        ("clerk", "/absent", "GET, HEAD, POST, OPTIONS"),
        ("poor", "/pairs/a/1", "GET, HEAD, PATCH, PUT, DELETE, OPTIONS"),
    ] {
        let options = desk.ask(key, "OPTIONS", path, "").await;
        assert_eq!((options.status.as_u16(), options.header("allow")), (204, Some(allow)), "{key} {path}");
    }
    // A key that may not call it learns nothing of it.
    let told = |reply: Reply| {
        let mut told = reply.tellable();
        told.headers.remove("x-request-id");
        told.body = told.body.split("requestId").next().unwrap_or_default().to_owned();
        told
    };
    for method in ["GET", "POST"] {
        let absent = told(desk.ask("poor", method, "/absent", "{}").await);
        assert_eq!(absent.status, 404);
        assert_eq!(told(desk.ask("poor", method, "/pairs", "{}").await), absent);
    }
    assert_eq!(given(&desk.call("poor", "scalar", json!({"a": 1, "b": 1})).await), json!([{"scalar": 2}]));

    let listed = |key: &'static str| {
        let desk = &desk;
        async move { desk.ask(key, "GET", "", "").await.json()["value"].clone() }
    };
    let url = format!("{}/auth/desk/api/scalar", desk.world.url());
    let scalar = json!({"name": "scalar", "kind": "Procedure", "url": url, "parameters": ["a", "b"], "fields": ["scalar"]});
    assert_eq!(listed("poor").await, json!([scalar]));
    let all = listed("clerk").await;
    let counted =
        all.as_array().expect("a list").iter().find(|one| one["name"] == "counted").expect("listed");
    assert_eq!((&counted["parameters"], &counted["fields"]), (&json!(["n"]), &json!(["total", "last"])));
}
