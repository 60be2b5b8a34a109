//! What a caller is told when a routine fails, and what stays of it.

use serde_json::json;

use super::fixture::{Desk, given, refusal};

/// No word of the database's own, and no value that only rows hold.
fn is_safe(message: &str) -> bool {
    !["secret", "hidden", "accounts", "division", "relation", "detail", "hint", "SQL", "integer"]
        .iter()
        .any(|word| message.contains(word))
}

#[tokio::test]
async fn only_what_is_raised_for_callers_is_told_in_its_words() {
    let desk = Desk::open().await;
    for key in ["plain", "clerk"] {
        for (state, message, expected) in [
            ("RG001", "the till is closed", "ProcedureError 422 the till is closed"),
            ("RGXYZ", "größe: 'x' \"y\"", "ProcedureError 422 größe: 'x' \"y\""),
            ("RG002", "two\nlines\u{7}", "ProcedureError 422 two lines "),
            (
                "P0001",
                "a secret",
                "ProcedureError 422 the procedure failed with an error that is not shown to callers; what it committed before stays committed",
            ),
            (
                "22023",
                "a secret",
                "ProcedureError 422 the procedure failed with an error that is not shown to callers; what it committed before stays committed",
            ),
        ] {
            let reply = desk.call(key, "raises", json!({"state": state, "message": message})).await;
            let (code, status, told) = refusal(&reply);
            assert_eq!(format!("{code} {status} {told}"), expected, "{state}");
            assert!(!reply.body.contains("a detail") && !reply.body.contains("a hint"), "{reply:?}");
        }
        let long = desk.call(key, "raises", json!({"state": "RG001", "message": "x".repeat(100_000)})).await;
        assert_eq!(refusal(&long).2.chars().count(), 1_001, "bounded");
    }
    assert!(!desk.world.log().contains("a secret"), "it may be a value of the request");
}

#[tokio::test]
async fn every_other_error_is_told_by_its_kind() {
    let desk = Desk::open().await;
    for key in ["plain", "clerk"] {
        for (how, expected) in [
            ("zero", "ProcedureError 422"),
            ("cast", "ProcedureError 422"),
            ("check", "ConstraintViolation 422"),
            ("null", "ConstraintViolation 422"),
            ("unique", "UniqueViolation 409"),
            ("foreign", "ForeignKeyViolation 409"),
            ("denied", "Forbidden 403"),
            ("absent", "ProcedureError 422"),
            ("commit", "ProcedureError 422"),
            ("serial", "SerializationFailure 409"),
            // as of a table under Concurrency Protection
            ("stale", "StaleRow 409"),
            ("other", "ProcedureError 422"),
        ] {
            let (code, status, message) = refusal(&desk.call(key, "breaks", json!({"how": how})).await);
            assert_eq!(format!("{code} {status}"), expected, "{how}: {message}");
            assert!(is_safe(&message), "{how}: {message}");
        }
        assert_eq!(given(&desk.call(key, "breaks", json!({"how": "not"})).await), json!([{"breaks": 1}]));
        // A routine that runs while it is planned, and one that fails when its transaction ends.
        let planned = refusal(&desk.call(key, "looks", json!({"n": 0})).await);
        assert_eq!((&*planned.0, planned.1), ("ProcedureError", 422), "{planned:?}");
        assert_eq!(given(&desk.call(key, "looks", json!({"n": 2})).await), json!([{"looks": 5}]));
        let deferred = refusal(&desk.call(key, "deferred", json!({"account": 99})).await);
        assert_eq!((&*deferred.0, deferred.1), ("ForeignKeyViolation", 409), "{deferred:?}");
    }
    assert_eq!(desk.number("select count(*) from c.owed").await, 0);
    assert_eq!(desk.number("select count(*) from c.accounts").await, 2);
    assert!(!desk.world.log().contains("\"secret\""), "values stay out of the log");
}

#[tokio::test]
async fn what_a_procedure_committed_stays_and_the_rest_is_undone() {
    let desk = Desk::open().await;
    for (i, key) in ["plain", "clerk"].into_iter().enumerate() {
        let n = 10 * (i + 1);
        let reply = desk.call(key, "halves", json!({"n": n, "fails": true})).await;
        assert_eq!(refusal(&reply), ("ProcedureError".to_owned(), 422, "half of it stands".to_owned()));
        let all = desk.rows(&format!("select n from c.notes where n % 1000 = {n} order by n")).await;
        assert_eq!(all, [json!({"n": n})], "{key}");

        // All or nothing, where it commits nothing by itself.
        let reply = desk.call(key, "transfer", json!({"source": 1, "target": 7, "amount": 10})).await;
        assert_eq!(refusal(&reply).2, "there is no account 7");
        let reply = desk.call(key, "transfer", json!({"source": 1, "target": 2, "amount": 1000})).await;
        assert_eq!(refusal(&reply).0, "ConstraintViolation");
    }
    let balances = desk.rows("select balance from c.accounts order by id").await;
    assert_eq!(balances, [json!({"balance": 100}), json!({"balance": 0})]);
}

#[tokio::test]
async fn an_answer_beyond_the_bound_is_refused_and_its_work_undone() {
    let desk = Desk::open().await;
    let rows = given(&desk.call("clerk", "grown", json!({"n": 100, "width": 10_000})).await);
    assert_eq!(rows.as_array().expect("a list").len(), 100);
    let (code, status, message) =
        refusal(&desk.call("clerk", "grown", json!({"n": 4000, "width": 10_000})).await);
    assert_eq!((&*code, status), ("TooLarge", 413));
    assert!(message.contains("32 MiB"), "{message}");
    // the last is one row beyond what is read of PostgreSQL at once
    for body in
        [json!({"n": 4000}), json!({"n": 1, "width": 40_000_000}), json!({"n": 1, "width": 70_000_000})]
    {
        let (code, ..) = refusal(&desk.call("clerk", "big", body).await);
        assert_eq!(code, "TooLarge");
    }
    assert_eq!(desk.number("select count(*) from c.notes").await, 0, "nothing of it is committed");
}
