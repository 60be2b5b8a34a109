//! What cannot be written: each refusal says what to change, and nothing is stored.

use rowgate_tests::servers::postgres::{attempt, execute};
use rowgate_tests::wait::until;
use serde_json::json;

use crate::http::edge::raw::send;
use crate::reads::refusals::OF_WRITES;
use crate::writes::fixtures::tables::Desk;

#[tokio::test]
async fn what_cannot_be_written_is_refused_and_nothing_is_stored() {
    let desk = Desk::open().await;
    let before = desk.state().await;
    let note = |more: &str| format!(r#"{{"region": "north", "Note Title": "new"{more}}}"#);
    let cases: Vec<(&str, &str, &str, String, u16, &str, &str)> = vec![
        ("all", "POST", "/notes", "{".into(), 400, "BadRequest", "line 1, column 1"),
        ("all", "POST", "/notes", "7".into(), 400, "BadRequest", "object"),
        (
            "all",
            "POST",
            "/notes",
            r#"{"region": "north", "region": "south"}"#.into(),
            400,
            "BadRequest",
            "twice",
        ),
        ("all", "POST", "/notes?$select=id", note(""), 400, "BadRequest", "no options"),
        ("all", "POST", "/notes", note(r#", "titel": 1"#), 400, "UnknownField", "titel"),
        ("all", "POST", "/notes", note(r#", "title": 1"#), 400, "UnknownField", "title"),
        ("all", "POST", "/notes", note(r#", "number": 1"#), 400, "ReadOnlyColumn", "number"),
        ("all", "POST", "/notes", note(r#", "twice": 1"#), 400, "ReadOnlyColumn", "twice"),
        ("all", "POST", "/notes", note(r#", "dl_mark": "x""#), 400, "ReadOnlyColumn", "dl_mark"),
        // every table has these, whoever asks; a view may have a column of that name, or none
        ("all", "POST", "/notes", note(r#", "ctid": "(0,1)""#), 400, "ReadOnlyColumn", "ctid"),
        ("all", "POST", "/notes", note(r#", "tableoid": 1"#), 400, "ReadOnlyColumn", "tableoid"),
        ("all", "PATCH", "/notes/id/100", r#"{"xmin": "1"}"#.into(), 400, "ReadOnlyColumn", "xmin"),
        ("all", "PUT", "/notes/id/100", note(r#", "cmax": null"#), 400, "ReadOnlyColumn", "cmax"),
        ("few", "POST", "/notes", r#"{"xmax": 0}"#.into(), 400, "ReadOnlyColumn", "xmax"),
        ("all", "POST", "/plain", r#"{"cmin": 0}"#.into(), 400, "UnknownField", "cmin"),
        ("all", "POST", "/notes", note(r#", "CTID": "(0,1)""#), 400, "UnknownField", "CTID"),
        ("all", "POST", "/notes", r#"{"region": "north"}"#.into(), 400, "InvalidValue", "Note Title"),
        ("all", "POST", "/notes", note(r#", "size": null"#), 400, "InvalidValue", "size"),
        ("all", "POST", "/notes", note(r#", "size": 1.5"#), 400, "InvalidValue", "whole number"),
        ("all", "POST", "/notes", note(r#", "size": 3000000000"#), 400, "InvalidValue", "size"),
        ("all", "POST", "/notes", note(r#", "tags": "x""#), 400, "InvalidValue", "JSON array"),
        (
            "all",
            "POST",
            "/notes",
            r#"{"region": "north", "Note Title": 7}"#.into(),
            400,
            "InvalidValue",
            "double quotes",
        ),
        (
            "all",
            "POST",
            "/notes",
            r#"{"region": "north", "Note Title": "a\u0000"}"#.into(),
            400,
            "InvalidValue",
            "NUL",
        ),
        ("all", "POST", "/notes", note(r#", "size": 0"#), 422, "ConstraintViolation", "check"),
        ("all", "POST", "/notes", note(r#", "id": 100"#), 409, "UniqueViolation", "unique"),
        (
            "all",
            "POST",
            "/notes",
            r#"{"region": "west", "Note Title": "x"}"#.into(),
            409,
            "ForeignKeyViolation",
            "refers",
        ),
        ("all", "POST", "/late", r#"{"id": 1, "other": 9}"#.into(), 409, "ForeignKeyViolation", "refers"),
        (
            "all",
            "POST",
            "/pairs",
            r#"[{"a": "x", "b": 1}, {"a": "x", "b": "y"}]"#.into(),
            400,
            "InvalidValue",
            "whole",
        ),
        ("all", "DELETE", "/regions/name/north", String::new(), 409, "ForeignKeyViolation", "refer"),
        ("all", "DELETE", "/pairs/a/x", String::new(), 400, "BadRequest", "key fields"),
        ("all", "DELETE", "/pairs/a/x/b/y", String::new(), 400, "InvalidValue", "whole number"),
        ("all", "DELETE", "/notes", String::new(), 405, "MethodNotAllowed", "Allow"),
        ("all", "POST", "/notes/id/100", note(""), 405, "MethodNotAllowed", "Allow"),
        ("all", "POST", "/counted", r#"{"region": "east", "n": 1}"#.into(), 405, "MethodNotAllowed", "view"),
        ("all", "DELETE", "/counted/region/north", String::new(), 405, "MethodNotAllowed", "view"),
        (
            "all",
            "POST",
            "/northern",
            note("").replace("Note Title", "title").replace("north", "south"),
            422,
            "ConstraintViolation",
            "check option",
        ),
        ("all", "POST", "/numbered", r#"{"id": 7}"#.into(), 400, "ReadOnlyColumn", "view"),
        (
            "all",
            "POST",
            "/notes",
            format!(r#"{{"region": "north", "Note Title": "{}"}}"#, noise()),
            422,
            "ConstraintViolation",
            "index",
        ),
        (
            "all",
            "POST",
            "/raising",
            r#"{"id": 1, "state": "P0001", "owner": "no_such_role"}"#.into(),
            400,
            "InvalidValue",
            "owner",
        ),
        ("all", "POST", "/absent", note(""), 404, "EntityNotFound", "entity"),
        ("all", "DELETE", "/notes/id/7", String::new(), 404, "RowNotFound", "no row"),
        ("reader", "POST", "/pairs", note(""), 404, "EntityNotFound", "entity"),
        ("reader", "POST", "/notes", note(""), 403, "Forbidden", "create"),
        ("reader", "DELETE", "/notes/id/100", String::new(), 403, "Forbidden", "delete"),
        ("blind", "DELETE", "/notes/id/100", String::new(), 403, "Forbidden", "delete"),
        ("few", "POST", "/notes", r#"{"region": "north", "id": 7}"#.into(), 403, "Forbidden", "\"id\""),
        (
            "few",
            "POST",
            "/notes",
            r#"{"region": "north", "Note Title": "x"}"#.into(),
            400,
            "UnknownField",
            "Note Title",
        ),
        // a field that the key does not know is not named to it
        ("few", "POST", "/notes", r#"{"region": "north"}"#.into(), 422, "ConstraintViolation", "cannot set"),
    ];
    for code in OF_WRITES {
        let code = json!(code);
        let elsewhere = [
            "SerializationFailure",
            "PreconditionFailed",
            "DirectDeleteBlocked",
            "StaleRow",
            "ExpectedTsRequired",
        ];
        let is_elsewhere = elsewhere.iter().any(|it| code == *it);
        assert!(is_elsewhere || cases.iter().any(|case| code == case.5), "{code} needs a row");
    }
    for (key, method, path, body, status, code, words) in cases {
        let reply = desk.ask(key, method, path, &body).await;
        let error = reply.json()["error"].clone();
        let told = format!("{} {}", error["message"], error["details"]).replace("\\\"", "\"");
        assert_eq!(
            (reply.status.as_u16(), error["code"].as_str()),
            (status, Some(code)),
            "{key} {method} {path} {body}: {reply:?}"
        );
        assert!(told.contains(words), "{key} {method} {path} {body}: {told}");
        assert_eq!(desk.state().await, before, "{key} {method} {path} {body}");
    }
    for (method, path) in [("POST", "/counted"), ("DELETE", "/counted/region/north")] {
        let reply = desk.ask("all", method, path, r#"{"region": "east"}"#).await;
        assert_eq!(reply.header("allow"), Some("GET, HEAD, OPTIONS"), "{method} {path}: {reply:?}");
    }
    let plain = desk.ask_with("all", "POST", "/pairs", "a=1", &[("Content-Type", "text/plain")]).await;
    assert_eq!(plain.status, 400, "{plain:?}");
    let packed = desk
        .ask_with("all", "POST", "/pairs", r#"{"a": "x", "b": 1}"#, &[("Content-Encoding", "gzip")])
        .await;
    assert_eq!(packed.status, 400, "{packed:?}");
    let large = format!(r#"{{"a": "{}", "b": 1}}"#, "x".repeat(1 << 20));
    let large = desk.ask("all", "POST", "/pairs", &large).await;
    assert_eq!((large.status.as_u16(), large.json()["error"]["code"].as_str()), (413, Some("TooLarge")));
    // a length that nobody announced
    let (key, body) = (desk.world.key("all"), " ".repeat((1 << 20) + 1));
    let chunked = format!(
        "POST /auth/desk/api/pairs HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let answer = send(&desk.world.url(), chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("\"TooLarge\""), "{answer}");
    assert_eq!(desk.state().await, before);
}

/// Text that does not get shorter, for an index that takes 2,700 bytes.
fn noise() -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + u8::try_from((state >> 33) % 90).expect("small"))
    };
    (0..9000).map(|_| next()).filter(|c| !matches!(c, '"' | '\\')).collect()
}

/// Seen to fail where the context is not looked at. Whatever a trigger raises: a state that PostgreSQL uses for an outage, for a name or for a value is its own word.
#[tokio::test]
async fn what_a_trigger_raises_is_a_rule_of_the_table() {
    let desk = Desk::open().await;
    for state in ["P0001", "RG001", "08006", "42P01", "42703", "22023", "22P02", "0A000", "55000"] {
        let body = format!(r#"{{"id": 1, "state": "{state}"}}"#);
        for _parsed_and_prepared in 0..2 {
            let reply = desk.ask("all", "POST", "/raising", &body).await;
            assert_eq!(reply.status, 422, "{state}: {reply:?}");
            assert!(!format!("{reply:?}").contains("secret"), "{reply:?}");
        }
    }
}

/// Seen to fail when the statements do not look for a second row.
#[tokio::test]
async fn of_several_rows_behind_one_key_none_is_touched() {
    let desk = Desk::open().await;
    execute(
        &mut desk.server.connect("desk").await,
        "insert into d.notes (region, title) values ('north', 'third'); insert into d.loose values (1, 'a'), (1, 'b');",
    )
    .await;
    let (before, loose) = (desk.state().await, desk.rows("select * from d.loose order by note").await);
    for (method, path, body) in [
        ("DELETE", "/regional/region/north", ""),
        ("PATCH", "/regional/region/north", r#"{"size": 9}"#),
        ("PATCH", "/loose/id/1", r#"{"note": "c"}"#),
        ("PUT", "/loose/id/1", r#"{"note": "c"}"#),
    ] {
        let reply = desk.ask("all", method, path, body).await;
        let told = reply.json()["error"]["message"].to_string();
        assert_eq!(reply.status, 422, "{method} {path}: {reply:?}");
        assert!(told.contains("keyFields"), "{told}");
        assert_eq!(desk.state().await, before, "{method} {path}");
        assert_eq!(desk.rows("select * from d.loose order by note").await, loose, "{method} {path}");
    }
    for (method, status) in [("PATCH", 200), ("DELETE", 204), ("DELETE", 404)] {
        let reply = desk.ask("all", method, "/regional/region/south", r#"{"size": 9}"#).await;
        assert_eq!(reply.status, status, "{method}: {reply:?}");
    }
}

#[tokio::test]
async fn two_writes_in_each_others_way_are_told_apart_from_a_wrong_one() {
    let desk = Desk::open().await;
    let mut other = desk.server.connect("desk").await;
    // The one who waits first looks first, so it is the request that ends.
    execute(
        &mut other,
        "begin; set local deadlock_timeout = '10min'; insert into d.pairs values ('second', 2)",
    )
    .await;
    let posting = desk.ask("all", "POST", "/pairs", r#"[{"a": "first", "b": 1}, {"a": "second", "b": 2}]"#);
    let meeting = async {
        let waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into \"d\".\"pairs\"%'";
        until("a write that waits", async || (!desk.rows(waits).await.is_empty()).then_some(())).await;
        attempt(&mut other, "insert into d.pairs values ('first', 1)").await
    };
    let (reply, met) = tokio::join!(posting, meeting);
    assert_eq!(
        (reply.status.as_u16(), reply.json()["error"]["code"].as_str()),
        (409, Some("SerializationFailure")),
        "{reply:?}"
    );
    met.expect("the other one goes on");
    execute(&mut other, "rollback").await;
    assert!(desk.rows("select 1 from d.pairs").await.is_empty());
}
