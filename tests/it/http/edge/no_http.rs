//! What is no HTTP: hyper answers it without asking us, and its answer is replaced.

use rowgate_tests::wait::DEADLINE;
use rowgate_tests::world::World;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::limits::until_metric;
use super::raw;

/// Of the last answer on a connection.
fn last(answers: &str) -> (&str, Value) {
    let start = answers.rfind("HTTP/1.1 4").unwrap_or_else(|| panic!("no answer: {answers:?}"));
    let (head, body) = answers[start..].split_once("\r\n\r\n").expect("a head");
    let length = format!("content-length: {}", body.len());
    assert!(head.split("\r\n").any(|line| line == length), "{answers}");
    (head, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answers}")))
}

/// A blank or a quote in an address, as a script sends it, got an empty answer.
///
/// Seen to fail with hyper's own answer.
#[tokio::test]
async fn what_is_no_http_is_told_what_to_write() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let url = world.url();
    let filtered =
        |filter: &str| format!("GET /auth/shop/api/customers?$filter={filter} HTTP/1.1\r\nHost: h\r\n\r\n");
    let long = format!("GET /{} b HTTP/1.1\r\n\r\n", "x".repeat(5000));
    let cases = [
        (filtered("name eq 'x'"), "write it as %20"),
        (filtered("name%20eq%20\"x\""), "write it as %22"),
        (filtered("id<3"), "write it as %3C"),
        (filtered("name%20eq%20'\u{1}'"), "write it as %01"),
        ("GET / HTTP/1.1 HTTP/1.1\r\n\r\n".to_owned(), "write it as %20"),
        ("GET\r\n\r\n".to_owned(), "request line"),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), "headers"),
        ("GET /\u{e4} HTTP/1.1\r\nHost\r\n\r\n".to_owned(), "headers"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), "HTTP/1.1"),
        ("\u{16}\u{3}\u{1}\u{2}".to_owned(), "without TLS"),
        ("{\"name\": \"x\"}\r\n\r\n".to_owned(), "request line"),
        ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(), "headers"),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n".to_owned(), "headers"),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: rot13\r\n\r\n".to_owned(), "headers"),
        // beyond what is kept of the line
        (long, "request line"),
    ];
    let mut ids = std::collections::BTreeSet::new();
    for (bytes, words) in &cases {
        let answer = raw::send(&url, bytes.as_bytes()).await;
        let (head, body) = last(&answer);
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{bytes:?}: {answer}");
        for line in [
            "connection: close",
            "content-type: application/json; charset=utf-8",
            "cache-control: private, no-store",
        ] {
            assert_eq!(head.split("\r\n").filter(|it| *it == line).count(), 1, "{bytes:?}: {answer}");
        }
        let error = &body["error"];
        assert_eq!(
            (&error["code"], &error["status"]),
            (&"BadRequest".into(), &400.into()),
            "{bytes:?}: {answer}"
        );
        assert!(error["message"].as_str().is_some_and(|it| it.contains(words)), "{bytes:?}: {answer}");
        let id = error["requestId"].as_str().expect("an id").to_owned();
        assert!(head.contains(&format!("x-request-id: {id}")), "{answer}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), cases.len());
    // without a body, as every answer to a HEAD
    let head = raw::send(&url, b"HEAD /a b HTTP/1.1\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 400 ") && head.ends_with("\r\n\r\n"), "{head}");
    until_metric(&world, "rowgate_http_rejected_total{reason=\"malformed\"} 16").await;
    until_metric(&world, "rowgate_http_rejected_total{reason=\"too_large\"} 0").await;
    for id in ids {
        assert!(world.log().contains(&id), "the log knows {id}");
    }
}

/// However the bytes come, and whatever was asked before on the connection. Seen to fail with a line that is not forgotten
/// when its answer is out.
#[tokio::test]
async fn what_comes_before_and_how_it_comes_changes_nothing() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let key = world.key("shop-admin");
    let good = format!("GET /auth/shop/api/orders?$first=1 HTTP/1.1\r\nHost: h\r\nX-API-Key: {key}\r\n\r\n");
    let post = "POST /auth/shop/api/orders HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\nGET /a b H\r\n"
        .to_owned();
    let bad = "GET /auth/shop/api/orders?$filter=a eq 1 HTTP/1.1\r\nHost: h\r\n\r\n";
    for (sent, statuses, words) in [
        (format!("{good}{bad}"), "200 400", ""),
        (format!("{good}{good}{bad}{good}"), "200 200 400", ""),
        (format!("\r\n\r\n{bad}"), "400", "%20"),
        // a stranger's body is not read: the connection ends
        (format!("{post}{bad}"), "401", ""),
    ] {
        for pause in [false, true] {
            let answers = talk(&world.url(), &sent, pause).await;
            let found: Vec<_> =
                answers.match_indices("HTTP/1.1 ").map(|(at, _)| &answers[at + 9..at + 12]).collect();
            assert_eq!(found.join(" "), statuses, "{sent:?} {pause}: {answers}");
            let (_, body) = last(&answers);
            let message = body["error"]["message"].as_str().expect("an error");
            assert!(message.contains(words), "{sent:?} {pause}: {message}");
        }
    }
    // each answered before the next is asked, as a client does that keeps its connection
    let mut stream = TcpStream::connect(world.url().trim_start_matches("http://")).await.expect("it listens");
    for _ in 0..3 {
        stream.write_all(good.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            let read = timeout(DEADLINE, stream.read_buf(&mut answer)).await.expect("in time");
            assert_ne!(read.expect("it answers"), 0, "{}", String::from_utf8_lossy(&answer));
        }
    }
    stream.write_all(bad.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut answer)).await.expect("in time").expect("UTF-8");
    let (_, body) = last(&answer);
    assert!(body["error"]["message"].as_str().is_some_and(|it| it.contains("write it as %20")), "{answer}");
}

/// What came back until the server closed. `in_bytes`: one at a time.
async fn talk(url: &str, sent: &str, in_bytes: bool) -> String {
    if !in_bytes {
        return raw::send(url, sent.as_bytes()).await;
    }
    let stream = TcpStream::connect(url.trim_start_matches("http://")).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let (mut read, mut write) = stream.into_split();
    let writing = async {
        for byte in sent.as_bytes() {
            // the server may have had enough
            if write.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let mut answer = Vec::new();
    let reading =
        async { timeout(DEADLINE, read.read_to_end(&mut answer)).await.expect("it closes in time") };
    let ((), _ended) = tokio::join!(writing, reading);
    String::from_utf8(answer).expect("our answers are UTF-8")
}
