//! Requests that schemathesis makes of the shop's document: no status that is not documented, no answer that its schema does not
//! allow, no 5xx.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::fixture::Fixture;
use crate::keys::tokens::clients::packages;

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

/// Runs schemathesis with a document in a file.
fn schemathesis(fixture: &Fixture, document: &Value, folder: &Path, further: &[&str]) -> Output {
    let file = folder.join("document.json");
    std::fs::write(&file, document.to_string()).expect("the folder is ours");
    let start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from schemathesis.cli import schemathesis; schemathesis()";
    let key = fixture.world.key("shop-admin");
    Command::new("python3")
        .args(["-I", "-B", "-c", start])
        .arg(packages().join("python"))
        .args(["run", "--no-color", "--warnings", "off", "--no-shrink", "--suppress-health-check", "all"])
        .args(["--generation-database", "none", "--seed", "2026", "--checks", CHECKS])
        // one that waits for events takes up to 30 s
        .args(["--request-timeout", "40"])
        .args(["--url", &fixture.world.url(), "--header", &format!("X-API-Key: {key}")])
        .args(further)
        .arg(&file)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("tests/setup/clients.sh found it")
}

/// How many requests it made, as its last lines say.
fn n_requests(printed: &str) -> u64 {
    let number = printed.split(" generated").next().and_then(|before| before.split_whitespace().next_back());
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// `ROWGATE_CASES`: so many requests, which `make soak` asks for.
#[tokio::test]
async fn schemathesis_finds_no_answer_that_is_not_documented() {
    let fixture = Fixture::open().await;
    let mut document = fixture.document("shop", "shop-admin").await;
    // the answer to a request that is right never ends
    let stream = document["paths"].as_object_mut().and_then(|paths| paths.remove("/api/ddl/events/stream"));
    assert!(stream.is_some(), "the shop has events");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cases: u64 = std::env::var("ROWGATE_CASES").map_or(1_000, |text| text.parse().expect("a number"));
    // The two phases that draw nothing make 3,000 requests; drawn ones take ten times the time.
    let drawn = (cases.min(10_000) / 36 + 1).to_string();
    let further: &[&str] = match cases {
        0..=1_000 => &["--phases", "examples,coverage"],
        _ => &["--phases", "examples,coverage,fuzzing", "--max-examples", &drawn],
    };
    let output = schemathesis(&fixture, &document, folder.path(), further);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(cases.min(10_000) <= n_requests(&printed), "{printed}");

    // the same look finds a status that the document lacks
    let path = "/auth/shop/api/customers/id/{id}";
    let responses = document["paths"][path]["delete"]["responses"].as_object_mut().expect("an object");
    responses.remove("400").expect("it is documented");
    let operation = format!("DELETE {path}");
    let only = ["--phases", "coverage", "--include-name", &operation];
    let output = schemathesis(&fixture, &document, folder.path(), &only);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && printed.contains("Undocumented status code"), "{printed}");
}
