//! What is sent, and what becomes of receivers that answer well, late, too much, badly or never.

use axum::http::HeaderValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::interval;

use super::*;

const ONE: &[&[&str]] = &[&["127.0.0.1"]];

#[tokio::test]
async fn a_request_is_written_as_it_was_given() {
    let (receiver, requests) =
        Receiver::answering("HTTP/1.1 200 OK\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\nok").await;
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("rowgate-signature", "t=1,v1=00"),
        ("host", "other.example"),
        ("content-length", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "upgrade"),
        ("upgrade", "h2c"),
        ("expect", "100-continue"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let url = receiver.url("/a%20b/ü?x=1&y=%2F#part");
    let body = Bytes::from_static(b"{\"id\":1}");
    let sent = sender(ONE, LONG, LONG).post(&destination(&url), &policy(), headers, body).await;
    let answer = sent.result.expect("an answer");
    assert_eq!((answer.status, answer.retry_after), (200, Some(Duration::from_secs(7))));
    assert_eq!((answer.body.as_slice(), answer.truncated), (&b"ok"[..], false));
    let request = requests.lock().pop().expect("one request");
    let (head, body) = request.split_once("\r\n\r\n").expect("head and body");
    let mut lines: Vec<_> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /a%20b/%C3%BC?x=1&y=%2F HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: hook.example:{}", receiver.address.port());
    let expected =
        ["content-length: 8", "content-type: application/json", &host, "rowgate-signature: t=1,v1=00"];
    assert_eq!(lines, expected);
    assert_eq!(body, "{\"id\":1}");
}

#[tokio::test]
async fn a_connection_is_used_again_until_it_is_old() {
    let (receiver, requests) = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let url = receiver.url("/");
    let young = sender(ONE, LONG, LONG);
    for _ in 0..5 {
        assert_eq!(status(&young, &url).await, Ok(200));
    }
    assert_eq!(receiver.n_connections(), 1);
    let old = sender(ONE, LONG, Duration::ZERO);
    for _ in 0..2 {
        assert_eq!(status(&old, &url).await, Ok(200));
    }
    assert_eq!(receiver.n_connections(), 3);
    assert_eq!(requests.lock().len(), 7);
}

#[tokio::test]
async fn a_receiver_that_closes_idle_connections_gets_the_next_request_on_a_new_one() {
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let closes_at_once =
        Receiver::start(move |mut stream, _| async move { answer(&mut stream, text).await }).await;
    // closes just as the next request comes
    let closes_late = Receiver::start(move |mut stream, _| async move {
        answer(&mut stream, text).await;
        let _ = stream.read_u8().await;
    });
    let closes_late = closes_late.await;
    let sender = sender(ONE, LONG, LONG);
    for receiver in [&closes_at_once, &closes_late] {
        for n_requests in 1..=4 {
            assert_eq!(status(&sender, &receiver.url("/")).await, Ok(200));
            assert_eq!(receiver.n_connections(), n_requests);
        }
    }
}

#[tokio::test]
async fn an_answer_is_read_up_to_a_bound() {
    let receiver = Receiver::start(|mut stream, _| async move {
        answer(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n").await;
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    });
    let receiver = receiver.await;
    let sender = sender(ONE, LONG, LONG);
    for n_requests in 1..=2 {
        let answer = post(&sender, &receiver.url("/")).await.expect("an answer");
        assert_eq!((answer.status, answer.body.len(), answer.truncated), (200, MAX_ANSWER_LEN, true));
        assert_eq!(receiver.n_connections(), n_requests, "what is not read to its end is not used again");
    }
    let exact = Receiver::start(|mut stream, _| async move {
        answer(&mut stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {MAX_ANSWER_LEN}\r\n\r\n")).await;
        let _ = stream.write_all(&[b'x'; MAX_ANSWER_LEN]).await;
    });
    let answer = post(&sender, &exact.await.url("/")).await.expect("an answer");
    assert_eq!((answer.body.len(), answer.truncated), (MAX_ANSWER_LEN, false));
}

#[tokio::test]
async fn one_deadline_ends_whatever_a_receiver_does() {
    let silent = Receiver::start(|mut stream, _| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let stuck = Receiver::start(|mut stream, _| async move {
        answer(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    // each byte comes in time, all of them never do
    let drips = |head: &'static str| {
        Receiver::start(move |mut stream, _| async move {
            answer(&mut stream, head).await;
            let mut ticks = interval(Duration::from_millis(10));
            while stream.write_u8(b'x').await.is_ok() {
                ticks.tick().await;
            }
        })
    };
    let receivers = [
        silent.await,
        stuck.await,
        drips("HTTP/1.1 200 OK\r\nx: ").await,
        drips("HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n").await,
    ];
    for receiver in receivers {
        let sent = status(&sender(ONE, SHORT, LONG), &receiver.url("/")).await;
        assert_eq!(sent, Err(SendFailure::TimedOut));
        assert_eq!(receiver.n_connections(), 1);
    }
    let never: Resolve = Arc::new(|_: &str| Box::pin(pending()));
    let sender = Sender::with(policy().ranges, never, Roots::system(), SHORT, LONG);
    assert_eq!(status(&sender, "http://hook.example/").await, Err(SendFailure::TimedOut));
}

#[tokio::test]
async fn a_receiver_that_breaks_off_has_not_answered() {
    let sender = sender(ONE, LONG, LONG);
    for (text, word) in [
        ("", "closed the connection"),
        ("HTTP/1.1 200 OK\r\n", "closed the connection"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "closed the connection"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", "closed the connection"),
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "not valid HTTP"),
        ("HTTP/1.1 2x0 OK\r\n\r\n", "not valid HTTP"),
    ] {
        let receiver =
            Receiver::start(move |mut stream, _| async move { answer(&mut stream, text).await }).await;
        unreachable(&status(&sender, &receiver.url("/")).await, word);
    }
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    let receiver = Receiver::start(move |mut stream, _| {
        let many_headers = many_headers.clone();
        async move { answer(&mut stream, &many_headers).await }
    });
    unreachable(&status(&sender, &receiver.await.url("/")).await, "not valid HTTP");
}

#[tokio::test]
async fn informational_answers_are_skipped_and_every_other_one_is_given() {
    let sender = sender(ONE, LONG, LONG);
    let mut codes = Vec::new();
    for code in [200, 201, 204, 400, 410, 422, 429, 500, 503] {
        let text = format!("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n");
        let (receiver, _) = Receiver::answering(text.leak()).await;
        codes.push((status(&sender, &receiver.url("/")).await, Ok(code)));
    }
    for (found, expected) in &codes {
        assert_eq!(found, expected);
    }
}
