//! Compressed answers: which, how, and that what comes out is what went in.

use std::io::Read as _;

use reqwest::header::HeaderMap;
use rowgate_tests::world::World;

struct Shop {
    world: World,
    client: reqwest::Client,
    key: String,
}

impl Shop {
    async fn open() -> Shop {
        let mut world = World::founded_shop().await;
        world.start().await;
        let key = world.key("shop-admin");
        Shop { world, client: reqwest::Client::new(), key }
    }

    /// Headers and the bytes as they were sent: this client decompresses nothing.
    async fn ask(&self, method: reqwest::Method, path: &str, accept: &str) -> (HeaderMap, Vec<u8>) {
        let url = format!("{}{path}", self.world.url());
        let request = self.client.request(method, url).header("X-API-Key", &self.key);
        let request = request.header("X-Request-Id", "same").header("Accept-Encoding", accept);
        let answer = request.send().await.expect("an answer");
        (answer.headers().clone(), answer.bytes().await.expect("a body").to_vec())
    }

    async fn get(&self, path: &str, accept: &str) -> (Option<String>, Vec<u8>) {
        let (headers, body) = self.ask(reqwest::Method::GET, path, accept).await;
        let encoding = headers.get("content-encoding").map(|name| name.to_str().expect("a name").to_owned());
        // A length would be that of another body.
        assert!(encoding.is_none() || !headers.contains_key("content-length"), "{headers:?}");
        (encoding, body)
    }
}

/// What an encoding holds.
pub(crate) fn unpacked(encoding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match encoding {
        "gzip" => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).expect("whole gzip"),
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out).expect("whole br"),
        "zstd" => zstd::Decoder::new(bytes).expect("zstd").read_to_end(&mut out).expect("whole zstd"),
        other => panic!("{other}"),
    };
    out
}

/// Seen to fail with a body of 1 KiB and less compressed, and with answers that are compressed as gzip whatever is asked.
#[tokio::test]
async fn large_answers_are_compressed_as_asked_and_small_ones_are_not() {
    let shop = Shop::open().await;
    let large = "/auth/shop/api/orders?$first=-1";
    let (encoding, plain) = shop.get(large, "identity").await;
    assert_eq!(encoding, None);
    assert!(10_000 < plain.len());
    for (accept, wanted) in [
        ("gzip", "gzip"),
        ("br", "br"),
        ("zstd", "zstd"),
        ("gzip, deflate, br", "br"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("br;q=0.5, gzip;q=0.8, zstd;q=0", "gzip"),
    ] {
        let (encoding, bytes) = shop.get(large, accept).await;
        assert_eq!(encoding.as_deref(), Some(wanted), "{accept}");
        assert!(bytes.len() * 3 < plain.len(), "{accept}: {} of {} bytes", bytes.len(), plain.len());
        assert_eq!(unpacked(wanted, &bytes), plain, "{accept}");
    }
    for accept in ["", "deflate", "gzip;q=0", "gzip;q=0, identity", "*;q=0"] {
        assert_eq!(shop.get(large, accept).await, (None, plain.clone()), "{accept}");
    }
    let mut n_small = 0;
    for first in 1..=20 {
        let path = format!("/auth/shop/api/orders?$select=id&$first={first}&$filter=id%20gt%200");
        let (encoding, body) = shop.get(&path, "gzip, br, zstd").await;
        if encoding.is_none() {
            n_small += 1;
            assert!(body.len() <= 1024, "{first}");
        }
    }
    assert!(0 < n_small);
    for small in ["/auth/shop/api/orders/id/1", "/auth/shop/api/absentee", "/.well-known/jwks.json"] {
        let (encoding, body) = shop.get(small, "gzip, br, zstd").await;
        assert_eq!(encoding, None, "{small}");
        assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok(), "{small}");
    }
}

/// Seen to fail with a HEAD that says nothing of the encoding.
#[tokio::test]
async fn head_tells_what_get_would_send() {
    let shop = Shop::open().await;
    for path in ["/auth/shop/api/orders?$first=-1", "/auth/shop/api/orders/id/1", "/auth/shop/api/absentee"] {
        for accept in ["identity", "gzip", "br, zstd;q=0.1"] {
            let (mut get, _) = shop.ask(reqwest::Method::GET, path, accept).await;
            let (mut head, body) = shop.ask(reqwest::Method::HEAD, path, accept).await;
            for headers in [&mut get, &mut head] {
                // What one connection makes of a body, and the time.
                headers.remove("transfer-encoding");
                headers.remove("date");
            }
            assert_eq!(head, get, "{path} {accept}");
            assert_eq!(body, Vec::<u8>::new(), "{path} {accept}");
        }
    }
}
