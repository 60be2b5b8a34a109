//! Which rule refused a row: its name, and its fields, to a key that may read all of these.

use serde_json::{Value, json};

use crate::writes::fixtures::versioned_rows::{VersionedRows, code};

/// Seen to fail with details told whatever the key may read.
#[tokio::test]
async fn a_rule_is_named_to_who_may_read_all_that_it_is_about() {
    let tenant = VersionedRows::open().await;
    let row = |change: Value| {
        let mut row = json!({"id": 9, "code": "c", "secret": "t", "Raum": 9, "at": 9, "folder": 1});
        row.as_object_mut().expect("a row").extend(change.as_object().expect("fields").clone());
        row
    };
    let nothing: &[&str] = &[];
    // what is refused, as what, and what `all` and `narrow` are told of it
    let cases = [
        (json!({"id": 1}), 409, "UniqueViolation", &["constraint \"codes_pkey\"", "field \"id\""][..], true),
        (
            json!({"code": "a"}),
            409,
            "UniqueViolation",
            &["constraint \"codes_code_key\"", "field \"code\""],
            true,
        ),
        (
            json!({"folder": 99}),
            409,
            "ForeignKeyViolation",
            &["constraint \"codes_folder_fkey\"", "field \"folder\""],
            false,
        ),
        (
            json!({"Raum": -1}),
            422,
            "ConstraintViolation",
            &["constraint \"codes_positive\"", "field \"Raum\""],
            false,
        ),
        (
            json!({"secret": "123456789"}),
            422,
            "ConstraintViolation",
            &["constraint \"codes_hidden\"", "field \"code\"", "field \"secret\""],
            false,
        ),
        (
            json!({"Raum": 1, "at": 1}),
            422,
            "ConstraintViolation",
            &["constraint \"codes_room_at_excl\"", "field \"Raum\"", "field \"at\""],
            false,
        ),
        // a condition, or the whole row: it may be about any field
        (json!({"at": -1}), 409, "UniqueViolation", nothing, false),
        (json!({"folder": null}), 422, "ConstraintViolation", nothing, false),
    ];
    let before = tenant.state().await;
    for (change, status, expected, details, is_known) in cases {
        for (key, told) in [("all", details), ("narrow", if is_known { details } else { nothing })] {
            let reply = tenant.ask(key, "POST", "/codes", &row(change.clone()).to_string(), &[]).await;
            assert_eq!(code(&reply), (status, Some(expected.to_owned())), "{key} {change}: {reply:?}");
            assert_eq!(reply.json()["error"]["details"], json!(told), "{key} {change}: {reply:?}");
        }
    }
    // by an update; and by a rule of another table, of which nothing is said
    let patched = tenant.patch("/codes/id/2", &json!({"code": "a"})).await;
    assert_eq!(
        patched.json()["error"]["details"],
        json!(["constraint \"codes_code_key\"", "field \"code\""])
    );
    let deleted = tenant.ask("all", "DELETE", "/folders/id/1", "", &[]).await;
    assert_eq!(code(&deleted), (409, Some("ForeignKeyViolation".to_owned())));
    assert_eq!(deleted.json()["error"]["details"], json!([]));
    assert_eq!(tenant.state().await, before);
}
