//! `limits.requestsPerSecond`: what one key gets in a time, whatever it shows of itself and whatever happens meanwhile.

use std::time::{Duration, Instant};

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::world::World;

const ROWS: &str = "/auth/shop/api/orders?$first=1&$select=id";

/// A shop whose keys may make so many requests in a second.
struct Shop {
    server: Server,
    world: World,
    client: Client,
}

/// What one caller was answered.
#[derive(Default)]
struct Tally {
    admitted: u32,
    refused: u32,
}

impl Shop {
    async fn open(per_second: u32) -> Shop {
        let server = Server::own().await;
        let mut world = World::shop_on(&server);
        let limit = format!("  limits:\n    requestsPerSecond: {per_second}\n");
        world.edit("tenant.yaml", "  limits:\n", &limit);
        world.start().await;
        Shop { server, world, client: Client::new() }
    }

    async fn ask(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.client.get(&format!("{}{path}", self.world.url()), headers).await
    }

    /// Asks with each of `headers` in turn until `n` were refused, and holds every answer against the promise; calls
    /// `between` before each request.
    async fn ask_until_refused(
        &self,
        n: u32,
        per_second: u32,
        headers: &[(&str, &str)],
        mut between: impl AsyncFnMut(u32),
    ) -> Tally {
        let (began, mut tally) = (Instant::now(), Tally::default());
        for header in headers.iter().cycle() {
            if n <= tally.refused {
                break;
            }
            between(tally.refused).await;
            let reply = self.ask(ROWS, &[*header]).await;
            match reply.status.as_u16() {
                200 => {
                    tally.admitted += 1;
                    tally.keeps_to(per_second, began.elapsed());
                }
                429 => {
                    is_told_when(&reply);
                    tally.refused += 1;
                }
                _ => panic!("{reply:?}"),
            }
        }
        tally
    }
}

impl Tally {
    /// The promise: rate times time and one second's worth. A slow machine makes the time longer, never shorter.
    fn keeps_to(&self, per_second: u32, took: Duration) {
        let allowed = f64::from(per_second) * (took.as_secs_f64() + 1.0);
        assert!(f64::from(self.admitted) <= allowed, "{} admitted in {took:?}", self.admitted);
    }
}

fn is_told_when(reply: &Reply) {
    let seconds = reply.header("retry-after").and_then(|text| text.parse::<u32>().ok());
    assert!(seconds.is_some_and(|seconds| 0 < seconds), "{reply:?}");
    let error = &reply.json()["error"];
    assert_eq!((&error["code"], &error["status"]), (&"RateLimited".into(), &429.into()), "{reply:?}");
}

/// Every new generation makes the replica load its catalog and forget its key records, on the very next request. Seen to
/// fail with buckets that live in the key record, which a new catalog fills again.
#[tokio::test]
async fn a_key_gets_its_rate_and_no_more_however_often_the_catalog_changes() {
    const RATE: u32 = 20;
    let shop = Shop::open(RATE).await;
    let mut superuser = shop.server.connect("shop").await;
    let key = shop.world.key("shop-admin");
    let mut changed_at = 0;
    let tally = shop
        .ask_until_refused(200, RATE, &[("X-API-Key", &key)], async |refused| {
            // once: a load takes as long as the next request needs to be admitted
            if refused % 20 == 10 && changed_at != refused {
                changed_at = refused;
                execute(&mut superuser, "update dl.state set generation = generation + 1").await;
            }
        })
        .await;
    assert!(RATE <= tally.admitted, "the burst is one second's worth, not {}", tally.admitted);
}

/// Seen to fail with a bucket for each credential instead of one for the key.
#[tokio::test]
async fn a_key_and_its_token_share_one_rate_and_another_key_has_its_own() {
    const RATE: u32 = 20;
    let shop = Shop::open(RATE).await;
    let (north, south) = (shop.world.key("north"), shop.world.key("south"));
    let exchange = format!("{}/api/auth/apikeys/exchange", shop.world.url());
    let reply = shop.client.ask("POST", &exchange, &[("X-API-Key", &north)]).await;
    let token = format!("Bearer {}", reply.json()["token"].as_str().expect("a token"));
    let both = [("X-API-Key", north.as_str()), ("Authorization", token.as_str())];
    shop.ask_until_refused(100, RATE, &both, async |_| ()).await;
    assert_eq!(shop.ask(ROWS, &[("X-API-Key", &south)]).await.status, 200, "it has used nothing yet");
}

/// All routes that need a key count. Seen to fail with buckets that live in the key record: the list of entities looks
/// it up each time.
#[tokio::test]
async fn every_route_of_a_key_draws_from_its_bucket() {
    let shop = Shop::open(1).await;
    let key = shop.world.key("shop-admin");
    for (method, path) in [
        ("GET", "/auth/shop/api"),
        ("GET", "/auth/shop/api/orders"),
        ("GET", "/auth/shop/api/orders/id/1"),
        ("GET", "/auth/shop/api/absentee"),
        ("POST", "/api/auth/apikeys/exchange"),
    ] {
        let url = format!("{}{path}", shop.world.url());
        let (began, mut admitted) = (Instant::now(), 0);
        let refused = loop {
            let reply = shop.client.ask(method, &url, &[("X-API-Key", &key)]).await;
            if reply.status == 429 {
                break reply;
            }
            admitted += 1;
            let allowed = began.elapsed().as_secs_f64() + 1.0;
            assert!(f64::from(admitted) <= allowed, "{method} {path} does not count: {reply:?}");
        };
        is_told_when(&refused);
    }
}

/// Whoever holds a dead key learns nothing of it, not even that it asked too often while it lived. Seen to fail with a 429
/// that rests on a remembered record alone.
#[tokio::test]
async fn a_dead_key_is_never_told_that_it_asks_too_often() {
    let shop = Shop::open(1).await;
    let mut superuser = shop.server.connect("shop").await;
    let key = shop.world.key("north");
    let headers = [("X-API-Key", key.as_str()), ("X-Request-Id", "same")];
    let invented = shop.world.key("shop-admin").replacen("shop:", "nobody:", 1);
    let stranger = shop.ask(ROWS, &[("X-API-Key", &invented), ("X-Request-Id", "same")]).await.tellable();
    assert_eq!(stranger.status, 401);
    for _ in 0..3 {
        shop.ask_until_refused(3, 1, &headers[..1], async |_| ()).await;
        execute(&mut superuser, "update dl.keys set revoked_at = now() where name = 'north'").await;
        for path in [ROWS, ROWS, "/auth/shop/api", ROWS] {
            assert_eq!(shop.ask(path, &headers).await.tellable(), stranger, "{path}");
        }
        execute(&mut superuser, "update dl.keys set revoked_at = null where name = 'north'").await;
    }
}

/// Without the limit in the manifest there is none, and taking it out of the manifest ends it.
#[tokio::test]
async fn no_limit_is_the_default_and_an_edit_is_enough() {
    let shop = Shop::open(1).await;
    let key = shop.world.key("shop-admin");
    shop.ask_until_refused(1, 1, &[("X-API-Key", &key)], async |_| ()).await;
    shop.world.edit("tenant.yaml", "    requestsPerSecond: 1\n", "");
    let (mut n, mut refused) = (0, 0);
    // 100 in a row are more than one in a second, even where each takes as long as a slow machine needs.
    while n < 100 {
        match shop.ask(ROWS, &[("X-API-Key", &key)]).await.status.as_u16() {
            200 => n += 1,
            _ => {
                (n, refused) = (0, refused + 1);
                assert!(refused < 100_000, "the limit stays");
            }
        }
    }
}
