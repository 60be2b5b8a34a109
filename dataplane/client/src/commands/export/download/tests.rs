//! What becomes of each answer to a download.

use super::*;

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
