//! What becomes of each answer to a download.

use super::*;
use crate::script::{Script, answer};

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
        .collect()
}

fn judged(status: u16, pairs: &[(&'static str, &'static str)], have: u64) -> Step {
    step(StatusCode::from_u16(status).expect("a status"), &headers(pairs), have)
}

#[test]
fn a_part_is_continued_only_where_it_ends() {
    assert_eq!(judged(206, &[("content-range", "bytes 5-9/10")], 5), Step::Append(Some(10)));
    assert_eq!(judged(206, &[("content-range", "bytes 5-9/*")], 5), Step::Append(None));
    for wrong in ["bytes 4-9/10", "bytes 0-9/10", "lines 5-9/10", ""] {
        assert_eq!(judged(206, &[("content-range", wrong)], 5), Step::StartOver, "{wrong}");
    }
    assert_eq!(judged(206, &[], 5), Step::StartOver);
}

#[test]
fn a_server_without_ranges_sends_the_whole_again() {
    assert_eq!(judged(200, &[("content-length", "10")], 5), Step::Begin(Some(10)));
    assert_eq!(judged(200, &[], 0), Step::Begin(None));
}

#[test]
fn a_range_behind_the_end_means_complete_if_the_sizes_agree() {
    assert_eq!(judged(416, &[("content-range", "bytes */10")], 10), Step::Complete);
    assert_eq!(judged(416, &[("content-range", "bytes */9")], 10), Step::StartOver);
    assert_eq!(judged(416, &[], 10), Step::StartOver);
}

#[test]
fn an_address_that_is_over_is_renewed_and_an_outage_is_waited_for() {
    for status in [400, 403, 404, 410] {
        assert_eq!(judged(status, &[], 5), Step::Renew, "{status}");
    }
    for status in [408, 429, 500, 502, 503] {
        assert_eq!(judged(status, &[], 5), Step::Later, "{status}");
    }
}

#[test]
fn bytes_are_asked_for_from_where_the_part_ends() {
    let bare = || Request::get("/x".to_owned());
    let accepts = || bare().header("accept", "*/*".to_owned());
    assert_eq!(request(bare(), 0, Some("\"a\"")), accepts());
    let ranged = accepts().header("range", "bytes=5-".to_owned());
    assert_eq!(request(bare(), 5, None), ranged);
    assert_eq!(request(bare(), 5, Some("\"a\"")), ranged.header("if-range", "\"a\"".to_owned()));
}

/// The bytes that are written, whether all are there, and the requests.
async fn downloaded(retries: u32, answers: Vec<String>) -> (String, Option<u8>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("t.csv");
    let script = Script::new(answers);
    let mut part = Part::open(&target, None).expect("a part");
    let job = Job::of(serde_json::json!({"id": "j", "status": "succeeded", "url": "/f"})).expect("a job");
    let done = run(&script.api(retries), &job, &mut part, &Progress::new()).await;
    let text = std::fs::read_to_string(folder.path().join("t.csv.part")).expect("a file");
    (text, done.err().map(|failure| failure.exit_code()), script.requests())
}

fn job() -> String {
    answer("200 OK", "", r#"{"id": "j", "status": "succeeded", "url": "/f2"}"#)
}

#[tokio::test]
async fn a_broken_download_goes_on_at_a_renewed_address() {
    let answers = vec![
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\netag: \"e\"\r\n\r\n01234".to_owned(),
        job(),
        answer("403 Forbidden", "", ""),
        job(),
        answer("206 Partial Content", "content-range: bytes 5-9/10\r\n", "56789"),
    ];
    let (text, failed, requests) = downloaded(3, answers).await;
    assert_eq!((text.as_str(), failed), ("0123456789", None));
    assert!(
        requests[2].starts_with("get /f2 ") && requests[2].contains("range: bytes=5-"),
        "{}",
        requests[2]
    );
    assert!(requests[2].contains("if-range: \"e\""));
}

#[tokio::test]
async fn a_file_that_changed_is_downloaded_whole() {
    let answers = vec![
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n01234".to_owned(),
        job(),
        answer("200 OK", "", "abcdefgh"),
    ];
    let (text, failed, _) = downloaded(3, answers).await;
    assert_eq!((text.as_str(), failed), ("abcdefgh", None));
}

#[tokio::test]
async fn a_download_without_progress_is_given_up_and_keeps_its_bytes() {
    let answers = vec![
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n01234".to_owned(),
        job(),
        answer("503 Service Unavailable", "", ""),
    ];
    let (text, failed, _) = downloaded(1, answers).await;
    assert_eq!((text.as_str(), failed), ("01234", Some(3)));
    let (_, failed, _) = downloaded(3, vec![answer("401 Unauthorized", "", "")]).await;
    assert_eq!(failed, Some(4));
}
