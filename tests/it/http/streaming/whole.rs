//! What a long answer holds.

use rowgate_tests::client::Client;
use serde_json::Value;

use super::fixture::{Fixture, big, ids};
use crate::http::edge::compression::unpacked;

#[tokio::test]
async fn a_long_answer_is_whole_and_a_short_one_says_its_length() {
    let fixture = Fixture::new("10m", &["--connections-per-tenant", "1"]).await;
    let short = fixture.get("/long?$first=10").await;
    assert_eq!(short.header("content-length"), Some(&*short.body.len().to_string()));
    assert_eq!(ids(&short), (1..=10).collect::<Vec<_>>());

    // One row alone may be long too. It comes first: while this thread takes a long body apart it sees no connection close.
    let row = fixture.get("/wide/id/7").await;
    assert_eq!(row.rows()[0]["body"].as_str().map(str::len), Some(200_000));

    let long = fixture.get("/long?$first=25000&$count=true").await;
    assert_eq!((long.header("content-length"), long.header("transfer-encoding")), (None, Some("chunked")));
    assert_eq!(ids(&long), (1..=25_000).collect::<Vec<_>>());
    let body = long.json();
    assert!(body["value"].as_array().expect("rows").iter().all(|row| row["body"] == "x".repeat(1000)));
    assert_eq!(body["count"], 40_000);
    let link = body["nextLink"].as_str().expect("another page");
    let rest = Client::new().get(link, &[("X-API-Key", &fixture.key)]).await;
    assert_eq!(ids(&rest), (25_001..=40_000).collect::<Vec<_>>());
    assert_eq!(rest.json()["nextLink"], Value::Null);
}

#[tokio::test]
async fn a_long_answer_is_compressed_while_it_streams() {
    let fixture = Fixture::new("10m", &[]).await;
    let path = "/long?$first=25000";
    let plain = fixture.get(path).await.body;
    for encoding in ["gzip", "br", "zstd"] {
        let url = format!("{}{}", fixture.world.url(), big(path));
        let request = reqwest::Client::new().get(url).header("X-API-Key", &fixture.key);
        let answer = request.header("Accept-Encoding", encoding).send().await.expect("an answer");
        assert_eq!(
            answer.headers().get("content-encoding").map(|it| it.as_bytes()),
            Some(encoding.as_bytes())
        );
        let bytes = answer.bytes().await.expect("a whole body");
        assert!(bytes.len() * 10 < plain.len(), "{encoding}: {} of {}", bytes.len(), plain.len());
        assert!(unpacked(encoding, &bytes) == plain.as_bytes(), "{encoding}");
    }
}

/// Seen to fail with the rows of the last, small piece before the end that were forgotten (of `long`).
#[tokio::test]
async fn a_page_of_many_bytes_ends_at_32_mib_and_goes_on_behind_its_link() {
    let mut fixture = Fixture::new("10m", &["--connections-per-tenant", "1"]).await;
    for (entity, n_rows, n_pages) in [("wide", 400, 3), ("long", 40_000, 2)] {
        let mut link = format!("{}{}", fixture.world.url(), big(&format!("/{entity}?$first=-1")));
        let mut pages = Vec::new();
        loop {
            let page = Client::new().get(&link, &[("X-API-Key", &fixture.key)]).await;
            assert!(page.body.len() < (32 << 20) + 300_000, "{}", page.body.len());
            pages.push(ids(&page));
            match &page.json()["nextLink"] {
                Value::Null => break,
                next => next.as_str().expect("a text").clone_into(&mut link),
            }
        }
        assert_eq!(pages.concat(), (1..=n_rows).collect::<Vec<_>>(), "{entity}");
        assert_eq!(pages.len(), n_pages, "{entity}");
    }
    // What was left of full pages is not read: their statements are ended.
    fixture.nothing_runs().await;
}
