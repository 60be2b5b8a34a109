//! Links as the caller sees this server through a proxy, and whose word about it counts.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::world::World;

struct Shop {
    world: World,
    client: Client,
    key: String,
}

impl Shop {
    /// `trusted` is the value of `--trusted-proxies`.
    async fn open(trusted: Option<&str>) -> Shop {
        let mut world = World::founded_shop().await;
        world
            .start_with(|command| {
                if let Some(trusted) = trusted {
                    command.args(["--trusted-proxies", trusted]);
                }
            })
            .await;
        let key = world.key("shop-admin");
        Shop { world, client: Client::new(), key }
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let headers: Vec<_> =
            [("X-API-Key", &*self.key)].into_iter().chain(headers.iter().copied()).collect();
        self.client.get(&self.world.shop_url(path), &headers).await
    }

    /// The next page's address, and the first one in the list of entities.
    async fn links(&self, headers: &[(&str, &str)]) -> [String; 2] {
        let page = self.get("/orders?$first=1", headers).await.json();
        let list = self.get("", headers).await.json();
        [&page["nextLink"], &list["value"][0]["url"]].map(|link| link.as_str().expect("a link").to_owned())
    }
}

const FORWARDED: [(&str, &str); 2] =
    [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "shop.example:8443")];

/// Seen to fail with headers that count whoever sends them.
#[tokio::test]
async fn a_stranger_cannot_say_how_it_reached_us() {
    for trusted in [None, Some("10.0.0.0/8,::1,127.0.0.2")] {
        let shop = Shop::open(trusted).await;
        let bad = [("X-Forwarded-Proto", "ftp"), ("X-Forwarded-Host", "a/b")];
        let rfc = [("Forwarded", "for=1.2.3.4;host=evil.example;proto=https")];
        for headers in [&[][..], &FORWARDED, &bad, &rfc] {
            for link in shop.links(headers).await {
                assert!(link.starts_with(&shop.world.shop_url("/")), "{headers:?}: {link}");
            }
        }
    }
}

/// Seen to fail with `http` guessed for a scheme that is none.
#[tokio::test]
async fn a_trusted_proxy_says_scheme_and_host() {
    let shop = Shop::open(Some("10.0.0.0/8, 127.0.0.0/8")).await;
    let own = shop.world.url().replace("http://", "");
    for (headers, origin) in [
        (&[][..], format!("http://{own}")),
        (&FORWARDED[..], "https://shop.example:8443".to_owned()),
        (&FORWARDED[..1], format!("https://{own}")),
        (&FORWARDED[1..], "http://shop.example:8443".to_owned()),
        (&[("Forwarded", "host=evil.example;proto=https")], format!("http://{own}")),
    ] {
        for link in shop.links(headers).await {
            assert!(link.starts_with(&format!("{origin}/auth/shop/api/")), "{headers:?}: {link}");
        }
    }
    // A link of another scheme or host could lead a key astray: nothing is guessed.
    for wrong in [
        ("X-Forwarded-Proto", "https, http"),
        ("X-Forwarded-Proto", "ftp"),
        ("X-Forwarded-Proto", ""),
        ("X-Forwarded-Host", "a.example, b.example"),
        ("X-Forwarded-Host", "a.example/path"),
        ("X-Forwarded-Host", "user@a.example"),
        ("X-Forwarded-Host", "a\"b"),
    ] {
        for path in ["", "/orders?$first=1"] {
            let reply = shop.get(path, &[wrong]).await;
            assert_eq!(reply.status, 400, "{wrong:?}: {reply:?}");
            assert_eq!(reply.json()["error"]["code"], "BadRequest");
            assert!(reply.body.contains(wrong.0), "{reply:?}");
        }
        // Nobody learns of it without a key, and who needs no link is served.
        assert_eq!(shop.client.get(&shop.world.shop_url(""), &[wrong]).await.status, 401);
        assert_eq!(shop.get("/orders/id/1", &[wrong]).await.status, 200);
    }
}

#[tokio::test]
async fn what_is_no_network_is_told_with_all_other_mistakes() {
    let world = World::founded_shop().await;
    let output = world
        .command()
        .args(["--trusted-proxies", "10.0.0.0/8,proxy.internal,1.2.3.4/33", "--drain-seconds", "x"])
        .output()
        .expect("the binary was built");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("text");
    for part in ["--trusted-proxies: ", "\"proxy.internal\", \"1.2.3.4/33\"", "--drain-seconds: "] {
        assert!(text.contains(part), "{text}");
    }
}
