//! What is refused, and what a file is called.

use super::*;

#[test]
fn a_wrong_body_says_what_to_send() {
    for (body, expected) in [
        ("[]", "the body is not an object"),
        (r#"{"format": "csv"}"#, "entity and query are missing"),
        (r#"{"entity": "t"}"#, "format is missing"),
        (r#"{"entity": "t", "format": "xlsx"}"#, "write csv, jsonl or parquet"),
        (r#"{"entity": "t", "query": "select 1", "format": "csv"}"#, "send one of them"),
        (r#"{"entity": "t", "format": "csv", "parameters": {"a": 1}}"#, "parameters is for a query"),
        (r#"{"query": "select 1 as a", "format": "csv", "filter": "a eq 1"}"#, "filter is for an entity"),
        (r#"{"entity": "t", "format": "jsonl", "csvSafe": true}"#, "csvSafe is for the format csv"),
        (r#"{"entity": "t", "format": "csv", "csvSafe": "yes"}"#, "csvSafe is true or false"),
        (r#"{"entity": "t", "format": "csv", "compression": "xz"}"#, "write zstd, gzip or none"),
        (r#"{"entity": "t", "format": "csv", "filer": "a eq 1"}"#, "did you mean \"filter\"?"),
        (r#"{"entity": "t", "format": "csv", "filter": "a == 1"}"#, "InvalidFilter"),
        (
            r#"{"entity": "t", "format": "csv", "orderby": "a up"}"#,
            "InvalidOrderBy: only asc or desc may follow a field in orderby",
        ),
        (r#"{"entity": 1, "format": "csv"}"#, "entity is not a text"),
        (r#"{"query": "delete from t", "format": "csv"}"#, "InvalidSql: line 1"),
    ] {
        let problem = parse(body.as_bytes()).expect_err(body);
        let shown = format!("{:?}: {} {}", problem.code, problem.message, problem.details.join(" "));
        assert!(shown.contains(expected), "{body}: {shown}");
        assert!(!shown.contains('$'), "{body}: {shown}");
    }
}

#[test]
fn a_file_is_called_as_its_source_and_format() {
    for (body, expected) in [
        (r#"{"entity": "orders", "format": "csv"}"#, "orders.csv"),
        (r#"{"entity": "orders", "format": "csv", "compression": "gzip"}"#, "orders.csv.gz"),
        (r#"{"entity": "orders", "format": "parquet", "compression": "gzip"}"#, "orders.parquet"),
        (r#"{"query": "select 1 as a", "format": "jsonl", "compression": "zstd"}"#, "query.jsonl.zst"),
        (r#"{"entity": "../x", "format": "csv"}"#, "query.csv"),
    ] {
        assert_eq!(parse(body.as_bytes()).expect(body).file_name(), expected);
    }
}
