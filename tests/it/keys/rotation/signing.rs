//! One signing key follows another: published, then signing, then alone. Two data planes over one control database, whose
//! clock is moved by SQL: the times of the schedule are rows there.

use std::fs;
use std::process::{Command, Output};

use jiff::Timestamp;
use rowgate_core::derive::Root;
use rowgate_core::jwt::{Claims, Signers};
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, attempt, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary};
use serde_json::Value;

use super::fixture::{EXCHANGE, PATH, token};

/// Both data planes, and a key.
struct Two {
    server: Server,
    world: World,
    urls: [String; 2],
    key: String,
    client: Client,
}

impl Two {
    async fn open() -> Two {
        let server = Server::own().await;
        let mut world = World::shop_on(&server);
        world.start().await;
        let urls = [world.url(), world.serve().await];
        let key = world.key("north");
        Two { server, world, urls, key, client: Client::new() }
    }

    async fn control(&self, script: &str) {
        execute(&mut self.server.connect("rowgate").await, script).await;
    }

    fn rotate(&self) -> Output {
        let root = self.world.state().join("dataplane.root");
        let mut command = Command::new(binary());
        command.args(["rotate-signing-key", "--control"]).arg(self.world.socket());
        command.arg("--root-file").arg(root).output().expect("the binary was built; `make test` builds it")
    }

    /// The generations in the JWKS of each data plane.
    async fn published(&self) -> [String; 2] {
        let mut published = [String::new(), String::new()];
        for (url, generations) in self.urls.iter().zip(&mut published) {
            let reply = self.client.get(&format!("{url}/.well-known/jwks.json"), &[]).await;
            assert_eq!(reply.headers["cache-control"], "public, max-age=300");
            let body: Value = serde_json::from_str(&reply.body).expect("JSON");
            let mut kids: Vec<&str> =
                body["keys"].as_array().expect("a list").iter().map(|key| generation(&key["kid"])).collect();
            kids.sort_unstable();
            *generations = kids.join(" ");
        }
        published
    }

    async fn both_publish(&self, generations: &str) {
        until(&format!("JWKS with {generations}"), async || {
            (self.published().await == [generations; 2]).then_some(())
        })
        .await;
    }

    async fn token(&self, url: &str) -> String {
        token(self.client.ask("POST", &format!("{url}{EXCHANGE}"), &[("x-api-key", &self.key)]).await).0
    }

    /// A token of each data plane, as soon as both sign with this generation.
    async fn both_sign(&self, wanted: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        for url in &self.urls {
            let token = async || Some(self.token(url).await).filter(|token| signed_by(token) == wanted);
            tokens.push(until(&format!("a token of key {wanted}"), token).await);
        }
        tokens
    }

    async fn get(&self, url: &str, token: &str) -> Reply {
        self.client.get(&format!("{url}{PATH}"), &[("authorization", &format!("Bearer {token}"))]).await
    }

    /// Whether both data planes take each of `tokens`.
    async fn all_hold(&self, tokens: &[String]) {
        for token in tokens {
            for url in &self.urls {
                assert_eq!(self.get(url, token).await.status, 200, "{url}: a token of {}", signed_by(token));
            }
        }
    }
}

/// The generation in a `kid`.
fn generation(kid: &Value) -> &str {
    kid.as_str().and_then(|kid| kid.split_once('-')).expect("a generation and a thumbprint").0
}

fn parts(token: &str) -> [Value; 2] {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let mut parts = token.split('.').map(|part| engine.decode(part).expect("base64url"));
    [(); 2].map(|()| serde_json::from_slice(&parts.next().expect("three parts")).expect("JSON"))
}

fn signed_by(token: &str) -> String {
    generation(&parts(token)[0]["kid"]).to_owned()
}

/// Seen to fail with a key that is published only when it signs, and with an old key that leaves when the new one signs.
#[tokio::test]
async fn the_signing_key_is_replaced_without_a_good_token_being_refused() {
    let two = Two::open().await;
    two.both_publish("1").await;
    let first = two.both_sign("1").await;

    let output = two.rotate();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("signing key 2"), "{output:?}");
    two.both_publish("1 2").await;
    let mut before = two.both_sign("1").await;
    before.extend(first);
    two.all_hold(&before).await;
    let output = two.rotate();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("the last rotation, to signing key 2,") && said.contains("rotate again after that"),
        "{said}"
    );

    // an hour later: the moment one of them signs with it, the other knows it
    two.control("update control.signing_keys set signs_from = now() where generation = 2").await;
    let mut after = two.both_sign("2").await;
    two.all_hold(&after).await;
    two.all_hold(&before).await;
    assert_eq!(two.published().await, ["1 2"; 2]);
    assert_eq!(two.rotate().status.code(), Some(1), "tokens of two keys are about");

    // the last token of the old key is about to expire, then has
    two.control(
        "update control.signing_keys set signs_from = now() - interval '3630 s' where generation = 2",
    )
    .await;
    after.extend(two.both_sign("2").await);
    two.all_hold(&before).await;
    two.control(
        "update control.signing_keys set signs_from = now() - interval '3721 s' where generation = 2",
    )
    .await;
    two.both_publish("2").await;
    for url in &two.urls {
        let stranger = two.get(url, "no.token.atall").await;
        for token in &before {
            let reply = two.get(url, token).await;
            assert_eq!(reply.status, 401);
            assert_eq!(reply.headers.get("www-authenticate"), stranger.headers.get("www-authenticate"));
        }
    }
    two.all_hold(&after).await;

    let output = two.rotate();
    assert!(String::from_utf8_lossy(&output.stdout).contains("signing key 3"), "{output:?}");
    two.both_publish("2 3").await;
    two.all_hold(&after).await;
}

/// A replica that is ahead signs with a key of which this one has not read: it takes it, and no later one. Seen
/// to fail with verification of published keys only.
#[tokio::test]
async fn a_token_of_a_replica_that_is_ahead_holds_on_one_that_is_behind() {
    let two = Two::open().await;
    let [_, claims] = parts(&two.token(&two.urls[0]).await);
    let text = |name: &str| claims[name].as_str().expect("a text").to_owned();
    let claims = Claims::new(
        text("sub").parse().expect("a ULID"),
        text("sid").parse().expect("a ULID"),
        text("tenant").parse().expect("a slug"),
        Timestamp::now().as_second(),
        3600,
    );
    let hex = fs::read_to_string(two.world.state().join("dataplane.root")).expect("it was made");
    let root = Root::from_hex(&hex).expect("a root");
    two.both_publish("1").await;
    for (generation, status) in [(1, 200), (2, 200), (3, 401), (0, 401)] {
        let token = Signers::new(root.signing_key(generation), Vec::new()).sign(&claims);
        for url in &two.urls {
            assert_eq!(two.get(url, &token).await.status, status, "generation {generation}");
        }
    }
    assert_eq!(two.published().await, ["1"; 2], "nobody was told of a key that nobody asked for");
}

/// A data plane may ask for the next key; when it signs, and what stands there, is not its to say.
#[tokio::test]
async fn the_data_planes_login_cannot_bend_the_schedule() {
    let two = Two::open().await;
    let mut conn = two.server.connect("rowgate").await;
    execute(&mut conn, "set role rowgate_dataplane").await;
    for forbidden in [
        "insert into control.signing_keys (generation, signs_from) values (2, now())",
        "update control.signing_keys set signs_from = now()",
        "delete from control.signing_keys",
        "truncate control.signing_keys",
    ] {
        let refused = attempt(&mut conn, forbidden).await.expect_err(forbidden);
        assert!(refused.to_string().contains("permission denied"), "{forbidden}: {refused}");
    }
    execute(&mut conn, "insert into control.signing_keys (generation) values (2)").await;
}
