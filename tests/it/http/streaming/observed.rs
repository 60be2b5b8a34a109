//! What log and metrics tell of answers that take their time, and of those that never end.

use std::time::Instant;

use rowgate_tests::wait::until;
use serde_json::{Map, Value};

use super::fixture::{Fixture, big};
use super::raw::Raw;

impl Fixture {
    /// The line of the next request of [`Raw`] that is told of, after `n` of them.
    async fn line(&self, n: usize) -> Map<String, Value> {
        until("a line of the request", async || self.lines().into_iter().nth(n)).await
    }

    fn lines(&self) -> Vec<Map<String, Value>> {
        let log = self.world.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok());
        lines.filter(|it| it["target"] == "rowgate::request" && it["request_id"] == "raw-1").collect()
    }

    async fn metric(&self, name: &str) -> Option<f64> {
        let page = self.client.get(&format!("{}/metrics", self.world.probes_url()), &[]).await;
        page.body.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }
}

/// Seen to fail with a line that is written where the answer begins.
#[tokio::test]
async fn a_long_answer_is_told_of_at_its_end_with_all_its_rows_and_bytes() {
    let fixture = Fixture::new("10m", &[]).await;
    let mut raw = Raw::get(&fixture.world, &fixture.key, &big("/long?$first=20000")).await;
    let began = Instant::now();
    raw.take(15).await;
    // It cannot be over: between us and the server there is no room for 20 MB.
    let page = fixture.metric("rowgate_tenants").await;
    assert_eq!((page, fixture.lines().len()), (Some(2.0), 0));
    let taking = began.elapsed();
    let answer = raw.whole().await;
    let line = fixture.line(0).await;
    assert_eq!((&line["status"], &line["rows"], line.get("cut")), (&200.into(), &20_000.into(), None));
    let body = fixture.get("/long?$first=20000").await.body;
    assert_eq!(line["bytes"], body.len());
    assert!(body.len() < answer.len(), "chunks have their own marks");
    assert!(
        taking.as_secs_f64() * 1e3 <= line["duration_ms"].as_f64().expect("a number"),
        "{taking:?} {line:?}"
    );
    let sum =
        "rowgate_http_request_duration_seconds_sum{tenant=\"big\",route=\"/auth/{tenant}/api/{entity}\"}";
    assert!(taking.as_secs_f64() <= fixture.metric(sum).await.expect("it is told"));
    assert_eq!(fixture.metric("rowgate_http_cut_total{tenant=\"big\"}").await, Some(0.0));

    // Of a compressed answer the bytes are those that were sent, and HEAD sends none.
    let url = format!("{}{}", fixture.world.url(), big("/long?$first=20000"));
    for (n, method, encoding) in [(1, reqwest::Method::GET, "gzip"), (2, reqwest::Method::HEAD, "identity")] {
        let request = reqwest::Client::new().request(method.clone(), &url).header("X-API-Key", &fixture.key);
        let request = request.header("X-Request-Id", "raw-1").header("Accept-Encoding", encoding);
        let bytes = request.send().await.expect("an answer").bytes().await.expect("a whole body");
        let line = fixture.line(n).await;
        assert_eq!((&line["bytes"], line.get("cut")), (&bytes.len().into(), None), "{method}");
        assert!(bytes.len() * 10 < body.len(), "{method}");
    }
}

/// Seen to fail with an end that counts as whole however it came, and with a request that is told of by its answer alone.
#[tokio::test]
async fn what_breaks_off_is_told_of_as_cut() {
    let mut fixture = Fixture::new("10m", &["--connections-per-tenant", "1"]).await;
    // An error in the middle.
    Raw::get(&fixture.world, &fixture.key, &big("/broken?$first=-1")).await.rest().await;
    // A client that goes away in the middle.
    let mut leaving = Raw::get(&fixture.world, &fixture.key, &big("/long?$first=-1")).await;
    leaving.take(200_000).await;
    drop(leaving);
    let lines = [fixture.line(0).await, fixture.line(1).await];
    // A client that goes away before there is an answer.
    let waiting = Raw::get(&fixture.world, &fixture.key, &big("/slow?$first=1")).await;
    fixture.runs("slow").await;
    drop(waiting);
    let last = fixture.line(2).await;
    for (line, status) in lines.iter().chain([&last]).zip([200, 200, 499]) {
        let told = (&line["status"], line.get("cut"), line.get("rows"), &line["tenant"]);
        assert_eq!(told, (&status.into(), Some(&true.into()), None, &"big".into()));
        let bytes = line["bytes"].as_u64().expect("a number");
        assert_eq!(bytes == 0, status == 499, "{line:?}");
    }
    assert_eq!(fixture.metric("rowgate_http_cut_total{tenant=\"big\"}").await, Some(3.0));
    let gone = "rowgate_http_requests_total{tenant=\"big\",route=\"/auth/{tenant}/api/{entity}\",method=\"GET\",status=\"499\"}";
    assert_eq!(fixture.metric(gone).await, Some(1.0));
}
