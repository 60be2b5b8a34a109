//! Errors in the middle of an answer.

use rowgate_core::problem::Code;
use serde_json::json;

use super::fixture::{Fixture, big, ids};
use super::raw::{Raw, has_end};

/// Seen to fail with the end of the JSON written after the error.
#[tokio::test]
async fn an_error_after_the_first_rows_breaks_the_answer_off() {
    let mut fixture = Fixture::new("10m", &["--connections-per-tenant", "1"]).await;
    let mut raw = Raw::get(&fixture.world, &fixture.key, &big("/broken?$first=-1")).await;
    let answer = raw.rest().await;
    assert!(answer.starts_with(b"HTTP/1.1 200") && 100_000 < answer.len(), "rows had left before the error");
    assert!(!has_end(&answer), "the body has no end");
    let tail = String::from_utf8_lossy(&answer[answer.len() - 60..]).into_owned();
    assert!(!tail.contains("]}") && !tail.contains("nextLink") && !tail.contains("error"), "{tail}");
    fixture.world.says("an answer was cut short").await;
    let lines: Vec<_> = fixture.world.log().lines().map(str::to_owned).collect();
    let told: Vec<_> = lines.iter().filter(|line| line.contains("an answer was cut short")).collect();
    assert!(told.len() == 1 && told[0].contains("raw-1") && told[0].contains("22012"), "{told:?}");
    // The error came in order, so the connection is good.
    let before = fixture.backends().await;
    assert_eq!(ids(&fixture.get("/long?$first=2").await), [1, 2]);
    assert_eq!(fixture.backends().await, before);
}

#[tokio::test]
async fn an_error_before_the_first_rows_left_is_a_problem() {
    let fixture = Fixture::new("10m", &["--connections-per-tenant", "1"]).await;
    for path in ["/broken_at_once?$first=-1", "/broken?$first=-1&$filter=id%20gt%204900"] {
        let reply = fixture.get(path).await;
        assert_eq!(reply.status, 400, "{path}");
        assert_eq!(reply.json()["error"]["code"], json!(Code::InvalidValue), "{path}");
    }
}
