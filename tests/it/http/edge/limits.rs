//! Requests that are too large, or no requests at all.

use rowgate_core::problem::Code;
use rowgate_core::secret::{ApiKeySecret, ENTROPY_LEN};
use rowgate_tests::client::Client;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::json;

use super::raw;

const KIB: usize = 1024;

/// The resident memory of a process, in KiB.
pub(crate) fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// What no handler saw is counted all the same, once its connection is over.
pub(super) async fn until_metric(world: &World, line: &str) {
    let url = format!("{}/metrics", world.probes_url());
    let told = async || Client::new().get(&url, &[]).await.body.lines().any(|it| it == line).then_some(());
    until(line, told).await;
}

/// Seen to fail with a bound that leaves the headers out.
#[tokio::test]
async fn heads_beyond_16_kib_are_refused_in_our_words() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let (client, key) = (Client::new(), world.key("shop-admin"));
    let orders = world.shop_url("/orders");
    for (header, query, code) in [
        (15 * KIB, 0, None),
        (0, 15 * KIB, None),
        (17 * KIB, 0, Some(Code::HeadersTooLarge)),
        (30 * KIB, 0, Some(Code::HeadersTooLarge)),
        (9 * KIB, 9 * KIB, Some(Code::HeadersTooLarge)),
        (0, 17 * KIB, Some(Code::UriTooLong)),
        (1, 30 * KIB, Some(Code::UriTooLong)),
    ] {
        let filler = "x".repeat(header);
        let url = if query == 0 { orders.clone() } else { format!("{orders}?{}=1", "x".repeat(query)) };
        for key in [&*key, ""] {
            let reply = client.get(&url, &[("X-API-Key", key), ("X-Filler", &filler)]).await;
            let here = format!("{header} and {query} bytes: {reply:?}");
            let wanted = code.or(key.is_empty().then_some(Code::Unauthorized));
            assert_eq!(reply.status.as_u16(), wanted.map_or(200, Code::status), "{here}");
            if let Some(code) = wanted {
                assert_eq!(reply.json()["error"]["code"], json!(code), "{here}");
                assert_eq!(reply.header("cache-control"), Some("private, no-store"), "{here}");
            }
        }
    }
}

/// Seen to fail with a buffer of 8 MiB for heads: they were read and answered.
#[tokio::test]
async fn heads_of_a_mebibyte_are_refused_and_kept_by_nobody() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let head = |target: &str, header: usize| {
        let filler = "x".repeat(header);
        format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Filler: {filler}\r\n\r\n")
    };
    let long = format!("/{}", "x".repeat(1024 * KIB));
    let many = "a: b\r\n".repeat(KIB * KIB / 6);
    let heads = [
        ("HTTP/1.1 431", head("/", 1024 * KIB)),
        ("HTTP/1.1 431", head(&long, 1)),
        ("HTTP/1.1 431", format!("GET / HTTP/1.1\r\nHost: h\r\n{many}\r\n")),
        ("HTTP/1.1 431", format!("GET / HTTP/1.1\r\n{}", "x".repeat(1024 * KIB))),
    ];
    let (url, before) = (world.url(), resident(world.pid()));
    for _ in 0..8 {
        let sent = heads.iter().map(|(status, head)| {
            let url = &url;
            async move {
                let answer = raw::send(url, head.as_bytes()).await;
                assert!(answer.starts_with(status), "{}: {answer:?}", &head[..60]);
                assert!(answer.contains("\"HeadersTooLarge\""), "{}: {answer:?}", &head[..60]);
            }
        });
        futures_util::future::join_all(sent.collect::<Vec<_>>()).await;
    }
    until_metric(&world, "rowgate_http_rejected_total{reason=\"too_large\"} 32").await;
    let grown = resident(world.pid()).saturating_sub(before);
    assert!(grown < 16 * KIB, "{grown} KiB more after 32 MiB of heads");
}

/// Seen to fail without the look at `Content-Length`, and with an exchange that takes a body.
#[tokio::test]
async fn a_body_is_bounded_or_not_read() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let key = world.key("shop-admin");
    let send = async |method: &str, path: &str, length: &str, body: &str| {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: h\r\nX-API-Key: {key}\r\nConnection: close\r\n{length}\r\n\r\n"
        );
        raw::send(&world.url(), &[head.as_bytes(), body.as_bytes()].concat()).await
    };
    let (orders, exchange) = ("/auth/shop/api/orders?$first=1", "/api/auth/apikeys/exchange");
    let (big, chunked) = ("x".repeat(4 * KIB * KIB), "Transfer-Encoding: chunked");
    let length = |bytes: usize| format!("Content-Length: {bytes}");
    for (method, path, length, body, status) in [
        ("GET", orders, length(3), "abc", 200),
        ("GET", orders, length(KIB * KIB), &big[..KIB * KIB], 200),
        ("GET", orders, length(4 * KIB * KIB), &big, 413),
        ("GET", orders, chunked.to_owned(), "3\r\nabc\r\n0\r\n\r\n", 200),
        ("POST", exchange, length(0), "", 200),
        ("POST", exchange, length(3), "abc", 400),
        ("POST", exchange, length(4 * KIB * KIB), &big, 413),
        ("POST", exchange, chunked.to_owned(), "3\r\nabc\r\n0\r\n\r\n", 400),
    ] {
        let answer = send(method, path, &length, body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path} {length}: {answer}");
        assert_eq!(answer.contains("\"TooLarge\""), status == 413, "{answer}");
    }
}

/// Seen to fail where the connection is closed on bytes that nobody has read: the client's write breaks.
#[tokio::test]
async fn a_client_that_reads_after_it_has_written_everything_learns_why_it_was_refused() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let bytes = 12 * KIB * KIB;
    let head = format!("GET /auth/shop/api/orders HTTP/1.1\r\nHost: h\r\nContent-Length: {bytes}\r\n\r\n");
    let answer = raw::send_then_read(&world.url(), &[head.as_bytes(), &vec![b'x'; bytes]].concat()).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("\"TooLarge\""), "{answer}");
}

/// Seen to fail with a body that is read before its key is looked up.
#[tokio::test]
async fn a_body_is_waited_for_from_known_keys_only() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let url = world.url();
    // what was announced never comes
    let begin = |method: &str, path: &str, key: &str| {
        let head = format!(
            "{method} /auth/shop/api/{path} HTTP/1.1\r\nHost: h\r\nX-API-Key: {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        );
        let url = url.clone();
        tokio::spawn(async move { raw::send(&url, head.as_bytes()).await })
    };
    let known = begin("POST", "customers", &world.key("shop-admin"));
    let stranger = ApiKeySecret::generate(&[3; ENTROPY_LEN]).reveal(&"shop".parse().expect("a slug"));
    for (method, path) in [
        ("POST", "customers"),
        ("PATCH", "customers/id/1"),
        ("PUT", "customers/id/1"),
        ("POST", "place_order"),
    ] {
        let answer = begin(method, path, &stranger).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{method}: {answer}");
    }
    assert!(!known.is_finished(), "{:?}", known.await);
    known.abort();
}

/// Seen to fail with a connection that ends without a word.
#[tokio::test]
async fn a_connection_that_ends_because_of_a_body_says_so() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let (url, key) = (world.url(), world.key("shop-admin"));
    for (method, path, key, status) in [
        ("POST", "/auth/shop/api/customers/id/1", &*key, 405),
        ("POST", "/nothing", &key, 404),
        ("POST", "/auth/shop/api/customers", "shop:wrong", 401),
        ("GET", "/auth/shop/api/customers/id/1", &key, 200),
    ] {
        // what was announced never comes, so that nobody can read it
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: h\r\nX-API-Key: {key}\r\nContent-Length: 1000\r\n\r\n"
        );
        let answer = raw::send(&url, head.as_bytes()).await.to_ascii_lowercase();
        assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
}
