//! What is sent again, and what each refusal becomes.

use serde_json::json;

use super::*;
use crate::script::{Script, answer};

const PROBLEM: &str =
    r#"{"error": {"code": "Unavailable", "message": "the database is down", "status": 503}}"#;

/// The value, or the exit code, and the number of requests.
async fn outcome(request: Request, retries: u32, answers: Vec<String>) -> (Result<Value, u8>, usize) {
    let script = Script::new(answers);
    let answer = script.api(retries).json(&request).await;
    (answer.map(|answer| answer.value).map_err(|failure| failure.exit_code()), script.requests().len())
}

fn get() -> Request {
    Request::get("/auth/shop/api".to_owned())
}

#[tokio::test]
async fn a_read_is_repeated_while_the_server_is_unavailable() {
    let answers = vec![
        String::new(),
        answer("503 Service Unavailable", "retry-after: 0\r\n", PROBLEM),
        answer("502 Bad Gateway", "", "<html>"),
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_owned(),
        answer("200 OK", "", "{\"a\": 1}"),
    ];
    assert_eq!(outcome(get(), 4, answers).await, (Ok(json!({"a": 1})), 5));
}

#[tokio::test]
async fn retries_end() {
    let down = || answer("503 Service Unavailable", "retry-after: 0\r\n", PROBLEM);
    assert_eq!(outcome(get(), 1, vec![down(), down()]).await, (Err(3), 2));
    let later = answer("429 Too Many Requests", "retry-after: 3600\r\n", PROBLEM);
    assert_eq!(outcome(get(), 4, vec![later]).await, (Err(1), 1));
}

#[tokio::test]
async fn what_does_something_is_sent_once() {
    let request = || Request::post("/api/ddl/exports".to_owned(), Some(json!({"entity": "orders"})));
    let down = answer("503 Service Unavailable", "retry-after: 0\r\n", PROBLEM);
    assert_eq!(outcome(request(), 4, vec![down]).await, (Err(3), 1));
    let script = Script::new(vec!["HTTP/1.1".to_owned()]);
    let failure = script.api(4).json(&request()).await.expect_err("no answer");
    assert!(failure.to_string().ends_with(IN_DOUBT), "{failure}");
}

#[tokio::test]
async fn refusals_have_their_codes_and_are_final() {
    for (status, code) in
        [("400 Bad Request", 1), ("401 Unauthorized", 4), ("404 Not Found", 1), ("500 Internal", 1)]
    {
        assert_eq!(outcome(get(), 4, vec![answer(status, "", PROBLEM)]).await, (Err(code), 1), "{status}");
    }
    let moved = answer("307 Temporary Redirect", "location: http://other.example/\r\n", "");
    assert_eq!(outcome(get(), 4, vec![moved]).await, (Err(1), 1));
    assert_eq!(outcome(get(), 4, vec![answer("200 OK", "", "<html>")]).await, (Err(1), 1));
}

#[tokio::test]
async fn the_key_is_sent_to_its_server_alone() {
    let ours = Script::new(vec![answer("200 OK", "", "{}")]);
    let theirs = Script::new(vec![answer("200 OK", "", "{}")]);
    let api = ours.api(0);
    for link in ["/x", theirs.url.as_str()] {
        let target = api.base().link(link).expect("a link");
        api.json(&Request::follow(target)).await.expect("an answer");
    }
    assert!(ours.requests()[0].contains("x-api-key: shop:dlk_test"));
    assert!(!theirs.requests()[0].contains("dlk_test"));
}
