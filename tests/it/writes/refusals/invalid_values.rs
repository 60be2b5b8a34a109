//! A value that its column does not take is refused by the name of its field, also where PostgreSQL names no column.

use serde_json::{Value, json};

use crate::writes::fixtures::tenant::OwnTenant;

/// `all` may do everything; `few` may neither read what is worked out nor one of its sources; `outside` may not look into the
/// schema of the type.
const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: strict-script}
data:
  schema.sql: |
    create schema s;
    create schema other;
    create domain s.short as varchar(3);
    create domain s.shorter as s.short check (value <> 'no');
    create domain s.odd as integer check (1 / value >= 0);
    create domain other.there as varchar(2);
    create type s.mood as enum ('glad', 'half glad');
    create domain s.felt as s.mood;
    create type s.pair as (name varchar(3), n numeric(3,1));
    create table s.things (
        id varchar(4) primary key, name varchar(5), fixed char(3), flags bit(4), some_flags bit varying(4),
        price numeric(5,2), tiny numeric(3,3), names varchar(3)[], short s.short, shorter s.shorter, shorts s.short[],
        odd s.odd, pair s.pair, pairs s.pair[], mood s.mood, felt s.felt, bytes bytea, size integer,
        twice integer generated always as (size * 2) stored,
        part integer, share integer generated always as (100 / part) stored,
        word text, number integer generated always as (word::integer) stored,
        checked integer check (10 / checked < 100));
    create table s.rooms (id integer primary key, there other.there, name varchar(3));
    create view s.shown as select id, name as title from s.things;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: strict}
spec:
  database: {bootstrap: {configMapRef: {name: strict-script}}}
  entities:
    - {name: things, source: {schema: s, object: things}, mappings: {name: 'The Name'}, rowLevelSecurity: {none: true}}
    - {name: rooms, source: {schema: s, object: rooms}, rowLevelSecurity: {none: true}}
    - {name: shown, source: {schema: s, object: shown}, kind: View, keyFields: [id]}
  shared:
    permissions:
      - {entity: things, actions: [read, create, update]}
      - {entity: rooms, actions: [read, create]}
      - {entity: shown, actions: [read, create, update]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec: {tenantRef: {name: strict}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: few}
spec:
  tenantRef: {name: strict}
  scope:
    permissions:
      - {entity: things, actions: [read], fields: {include: [id]}}
      - {entity: things, actions: [create], fields: {include: [id, 'The Name', size, mood, felt]}}
";

/// What is told where nobody can say which value it is.
const UNSAID: &str = "a value does not fit its column, a computation overflows or divides by zero, or two columns have \
                      collations that cannot be compared; compare with values of the column's type";

/// What is sent as the fields of one row, and what is told of it.
const CASES: &[(&str, &str)] = &[
    (
        r#""The Name": "abcdef""#,
        r#"the field "The Name" is character varying(5): write at most 5 characters"#,
    ),
    (r#""fixed": "abcd""#, r#"the field "fixed" is character(3): write at most 3 characters"#),
    (r#""flags": "101""#, r#"the field "flags" is bit(4): write exactly 4 bits"#),
    (r#""some_flags": "10101""#, r#"the field "some_flags" is bit varying(4): write at most 4 bits"#),
    (
        r#""price": 999.995"#,
        r#"the field "price" is numeric(5,2): write a number with at most 3 digits before the point"#,
    ),
    (
        r#""price": "Infinity""#,
        r#"the field "price" is numeric(5,2): write a number with at most 3 digits before the point"#,
    ),
    (r#""tiny": 1"#, r#"the field "tiny" is numeric(3,3): write a number that is less than 1e0 away from 0"#),
    (
        r#""names": ["abc", "a\"\\{", null, "äöüß"]"#,
        r#"the field "names" is character varying(3)[]: write at most 3 characters in each value"#,
    ),
    (r#""short": "abcd""#, r#"the field "short" is s.short: write at most 3 characters"#),
    (r#""shorter": "abcd""#, r#"the field "shorter" is s.shorter: write at most 3 characters"#),
    (
        r#""shorts": ["a", "abcd"]"#,
        r#"the field "shorts" is s.short[], and the value is not valid for that type"#,
    ),
    (
        r#""pair": {"name": "abcd", "n": 1}"#,
        r#"the field "pair" is s.pair, and the value is not valid for that type"#,
    ),
    (
        r#""pairs": [null, {"name": "a,", "n": 99.95}]"#,
        r#"the field "pairs" is s.pair[], and the value is not valid for that type"#,
    ),
    (r#""mood": "sad""#, r#"the field "mood" is s.mood: write one of "glad", "half glad""#),
    (r#""felt": "sad""#, r#"the field "felt" is s.felt: write one of "glad", "half glad""#),
    (
        r#""size": 2000000000"#,
        r#"an expression of the table is out of range with these values, such as that of "twice" (integer) from "size"; change them"#,
    ),
    (
        r#""part": 0, "size": 1"#,
        r#"an expression of the table divides by zero with these values, such as that of "twice" (integer) from "size" and that of "share" (integer) from "part"; change them"#,
    ),
    (
        r#""word": "seven""#,
        r#"an expression of the table does not accept these values, such as that of "number" (integer) from "word"; change them"#,
    ),
    (r#""checked": 0"#, "an expression of the table divides by zero with these values; change them"),
    // the domain's own check fails, so that nobody can say which value it is
    (r#""odd": 0, "fixed": "abc""#, UNSAID),
];

/// Seen to fail with what is worked out named to a key that may not read it, and with types of the tenant's own left out of the
/// question.
#[tokio::test]
async fn a_value_that_does_not_fit_is_refused_by_its_fields_name() {
    let tenant = OwnTenant::open("strict", MANIFEST).await;
    let ask = async |key: &str, method: &str, path: &str, body: &str| {
        let reply = tenant.ask(key, method, path, body, &[]).await;
        let error = reply.json()["error"].clone();
        let told = (error["message"].as_str().unwrap_or_default().to_owned(), error["details"].clone());
        (reply.status.as_u16(), error["code"].as_str().unwrap_or_default().to_owned(), told.0, told.1)
    };
    let invalid =
        |message: &str, details: Value| (400, "InvalidValue".to_owned(), message.to_owned(), details);
    tenant.execute("insert into s.things (id) values ('here')").await;
    for (fields, expected) in CASES {
        let expected = invalid(expected, json!([]));
        let row = format!(r#"{{"id": "new", "bytes": "AP8=", {fields}}}"#);
        assert_eq!(ask("all", "POST", "/things", &row).await, expected, "POST {fields}");
        for method in ["PATCH", "PUT"] {
            for id in ["here", "new"] {
                let told = ask("all", method, &format!("/things/id/{id}"), &format!("{{{fields}}}")).await;
                assert_eq!(told, expected, "{method} {id} {fields}");
            }
        }
    }
    // of a list: which row, and all that is wrong
    let rows = json!([{"id": "a"}, {"id": "b", "price": 1000, "The Name": "abcdef"}, {"id": "cdefg", "The Name": "abcdef"}]);
    let told = ask("all", "POST", "/things", &rows.to_string()).await;
    let details = json!([
        "in the row at index 2 of the array, counted from 0",
        "the field \"The Name\" is character varying(5): write at most 5 characters, in the row at index 1",
        "the field \"The Name\" is character varying(5): write at most 5 characters, in the row at index 2",
        "the field \"price\" is numeric(5,2): write a number with at most 3 digits before the point, in the row at index 1",
    ]);
    assert_eq!(
        told,
        invalid("the field \"id\" is character varying(4): write at most 4 characters", details)
    );
    let told = ask("all", "POST", "/things", r#"[{"id": "a"}, {"id": "b", "mood": "sad"}]"#).await;
    let (_, expected) = CASES.iter().find(|(fields, _)| fields.contains("mood")).expect("it is one of them");
    assert_eq!(told, invalid(expected, json!(["in the row at index 1 of the array, counted from 0"])));
    // what the key does not see is not named, what it sends is
    let told = ask("few", "POST", "/things", r#"{"id": "a", "size": 2000000000}"#).await;
    assert_eq!(
        told,
        invalid("an expression of the table is out of range with these values; change them", json!([]))
    );
    let told = ask("few", "POST", "/things", r#"{"id": "a", "The Name": "abcdef"}"#).await;
    assert_eq!(told, invalid(CASES[0].1, json!([])));
    // nor are the labels of an enum listed that it may set and not read
    for field in ["mood", "felt"] {
        let told = ask("few", "POST", "/things", &format!(r#"{{"id": "a", "{field}": "sad"}}"#)).await;
        let expected = format!("the field {field:?} is s.{field}, and the value is not valid for that type");
        assert_eq!(told, invalid(&expected, json!([])));
    }
    // a domain's rule is a rule, by the name of its field
    let told = ask("all", "POST", "/things", r#"{"id": "a", "name": "x", "shorter": "no"}"#).await;
    assert_eq!(told.1, "UnknownField");
    let told = ask("all", "POST", "/things", r#"[{"id": "a"}, {"id": "b", "shorter": "no"}]"#).await;
    let expected = "the field \"shorter\" is s.shorter, which has a rule that forbids the value; change it";
    let place_of = json!(["in the row at index 1 of the array, counted from 0"]);
    assert_eq!(told, (422, "ConstraintViolation".to_owned(), expected.to_owned(), place_of));
    // by a view; and of a type that the key may not look up
    let told = ask("all", "POST", "/shown", r#"{"id": "a", "title": "abcdef"}"#).await;
    assert_eq!(told.2, "the field \"title\" is character varying(5): write at most 5 characters");
    let told = ask("all", "POST", "/rooms", r#"{"id": 1, "there": "abc", "name": "abc"}"#).await;
    assert_eq!(told, invalid(UNSAID, json!([])));
    assert!(tenant.rows("select from s.things where id <> 'here'").await.is_empty());
}
