//! No request reaches an address that was not judged, whatever the resolver or the receiver says.

use super::*;

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn a_host_with_an_address_that_is_refused_is_refused() {
    let (receiver, _) = Receiver::answering(OK).await;
    let url = receiver.url("/");
    for (address, word) in [
        ("10.0.0.1", "private"),
        ("0.0.0.0", "unspecified"),
        ("169.254.169.254", "metadata"),
        ("169.254.0.1", "link-local"),
        ("100.64.0.1", "carriers"),
        ("192.0.0.1", "reserved"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("fd00:ec2::254", "metadata"),
        ("fe80::1", "link-local"),
        ("fd12::1", "private"),
        // what leads to the receiver itself, in disguise
        ("::ffff:127.0.0.1", "IPv6 form"),
        ("::127.0.0.1", "IPv6 form"),
        ("::ffff:0:127.0.0.1", "IPv6 form"),
        ("64:ff9b::127.0.0.1", "IPv6 form"),
        ("2002:7f00:1::", "IPv6 form"),
    ] {
        // alone, and beside one that is allowed, before it and behind it
        for answers in [&[address][..], &["127.0.0.1", address], &[address, "127.0.0.1"]] {
            refused(&status(&sender(&[answers], LONG, LONG), &url).await, word);
        }
    }
    assert_eq!(receiver.n_connections(), 0);
}

#[tokio::test]
async fn what_the_installation_does_not_list_is_refused_at_connect() {
    let (receiver, _) = Receiver::answering(OK).await;
    let sender = sender(&[&["127.0.0.1"]], LONG, LONG);
    let strict = Policy { ranges: vec![], ..policy() };
    let post = async |url: &str, policy: &Policy| {
        let sent = sender.post(&destination(url), policy, HeaderMap::new(), Bytes::new()).await;
        sent.result.map(|answer| answer.status)
    };
    let by_address = format!("http://{}/", receiver.address);
    refused(&post(&receiver.url("/"), &strict).await, "loopback");
    refused(&post(&by_address, &strict).await, "loopback");
    assert_eq!(receiver.n_connections(), 0);
    assert_eq!(post(&receiver.url("/"), &policy()).await, Ok(204));
    // a connection that was opened under another policy is judged again
    refused(&post(&receiver.url("/"), &strict).await, "loopback");
    assert_eq!(post(&by_address, &policy()).await, Ok(204));
    refused(&post(&by_address, &strict).await, "loopback");
    let https_only = Policy { allow_http: false, ..policy() };
    refused(&post(&receiver.url("/"), &https_only).await, "plain http");
    assert_eq!(receiver.n_connections(), 2);
}

#[tokio::test]
async fn an_answer_that_changes_after_the_judgement_is_not_asked_for() {
    let (receiver, _) = Receiver::answering(OK).await;
    let (resolve, n_asked) = resolver(&[&["127.0.0.1"], &["10.0.0.1"], &["127.0.0.1"]]);
    let sender = Sender::with(policy().ranges, resolve, Roots::system(), LONG, Duration::ZERO);
    // the second answer would be a private address: one request asks once
    assert_eq!(status(&sender, &receiver.url("/")).await, Ok(204));
    assert_eq!((n_asked.load(Ordering::SeqCst), receiver.n_connections()), (1, 1));
    // no connection is old enough to be used again here: each connect asks, and judges
    refused(&status(&sender, &receiver.url("/")).await, "private");
    assert_eq!((n_asked.load(Ordering::SeqCst), receiver.n_connections()), (2, 1));
    assert_eq!(status(&sender, &receiver.url("/")).await, Ok(204));
    assert_eq!((n_asked.load(Ordering::SeqCst), receiver.n_connections()), (3, 2));
}

#[tokio::test]
async fn the_next_address_is_reached_when_the_first_is_down() {
    let (receiver, _) = Receiver::answering(OK).await;
    let url = receiver.url("/");
    assert_eq!(status(&sender(&[&["127.0.0.2", "127.0.0.1"]], LONG, LONG), &url).await, Ok(204));
    unreachable(&status(&sender(&[&["127.0.0.2"]], LONG, LONG), &url).await, "refused the connection");
}

#[tokio::test]
async fn redirects_are_answers() {
    let (elsewhere, _) = Receiver::answering(OK).await;
    let target = format!("http://{}/", elsewhere.address);
    let sender = sender(&[&["127.0.0.1"]], LONG, LONG);
    for code in [301, 302, 303, 307, 308] {
        let head = format!("HTTP/1.1 {code} Moved\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        let (receiver, _) = Receiver::answering(head.leak()).await;
        assert_eq!(status(&sender, &receiver.url("/")).await, Ok(code));
    }
    assert_eq!(elsewhere.n_connections(), 0);
}

#[tokio::test]
async fn names_that_cannot_be_resolved_are_unreachable() {
    unreachable(&status(&sender(&[&[]], LONG, LONG), "http://hook.example/").await, "cannot be resolved");
    let failing: Resolve = Arc::new(|_: &str| Box::pin(ready(Err(io::Error::other("10.0.0.53 said no")))));
    let sender = Sender::with(policy().ranges, failing, Roots::system(), LONG, LONG);
    let result = status(&sender, "http://hook.example/").await;
    assert_eq!(result, Err(SendFailure::Unreachable("the host name cannot be resolved".to_owned())));
}

/// Says whether this process is the child of the test below.
const IS_CHILD: &str = "ROWGATE_TEST_WITH_PROXY";

#[tokio::test]
async fn proxy_variables_are_ignored() {
    if std::env::var_os(IS_CHILD).is_some() {
        let (receiver, _) = Receiver::answering(OK).await;
        assert_eq!(status(&sender(&[&["127.0.0.1"]], LONG, LONG), &receiver.url("/")).await, Ok(204));
        return;
    }
    let (proxy, _) = Receiver::answering("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
    let address = format!("http://{}", proxy.address);
    let mut child = tokio::process::Command::new(std::env::current_exe().expect("it runs"));
    child.args(["--exact", "delivery::sender::tests::guard::proxy_variables_are_ignored"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, &address);
    }
    let child = child.env(IS_CHILD, "1").env_remove("no_proxy").env_remove("NO_PROXY").output().await;
    let child = child.expect("it runs");
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(proxy.n_connections(), 0);
}
