//! Parquet files as their readers find them: pyarrow, DuckDB, Polars and pandas, each of PyPI.

use std::process::Command;

use serde_json::{Value, json};

use super::fixture::Depot;
use crate::keys::tokens::clients::{packages, tests};
use crate::openapi::fixture::run;

const READERS: [&str; 4] = ["pyarrow", "duckdb", "polars", "pandas"];

/// What each reader is expected to find: for each column its type as each of [`READERS`] calls it, and the rows.
const EXPECTED: &str = include_str!("extremes.json");

/// Types, the ends of their ranges and NULLs come through whole.
#[tokio::test]
async fn every_reader_finds_the_types_and_values_of_the_table() {
    let depot = Depot::open().await;
    let expected: Value = serde_json::from_str(EXPECTED).expect("JSON");
    // All before the first is read: while a reader runs, this test takes no notice of connections that the server closes.
    let mut files = Vec::new();
    for compression in ["zstd", "gzip", "none"] {
        let body =
            json!({"entity": "extremes", "format": "parquet", "orderby": "id", "compression": compression});
        let (_, bytes) = depot.export("plain", body).await;
        let file = depot.world.folder().join(format!("extremes-{compression}.parquet"));
        std::fs::write(&file, bytes).expect("the folder is ours");
        files.push(file);
    }
    for file in files {
        let start = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2])";
        let mut command = Command::new("python3");
        command.args(["-I", "-B", "-c", start]).arg(packages().join("python"));
        let output = run(command.arg(tests().join("clients/exports/parquet.py")).arg(&file), "");
        let found: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        for (at, reader) in READERS.into_iter().enumerate() {
            let found = &found[reader];
            for (name, types) in expected["types"].as_object().expect("an object") {
                assert_eq!(found["types"][name], types[at], "{reader}: {name}");
            }
            let rows = found["rows"].as_array().expect("a list");
            let expected = expected["rows"].as_array().expect("a list");
            assert_eq!(rows.len(), expected.len(), "{reader}");
            for (row, expected) in rows.iter().zip(expected) {
                for (name, value) in expected.as_object().expect("an object") {
                    // Polars knows no type for JSON, and gives its bytes
                    let value = match (reader, name.as_str(), value.as_str()) {
                        ("polars", "j", Some(text)) => json!(hex(text)),
                        _ => value.clone(),
                    };
                    assert_eq!(row[name], value, "{reader}: {name}");
                }
            }
        }
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
