//! The example shop on a server of the test's own, with a key `turning` that rotates.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::Value;

pub(super) const PATH: &str = "/auth/shop/api/orders?$first=1";
pub(super) const EXCHANGE: &str = "/api/auth/apikeys/exchange";

/// What stands in `turning.yaml`: annotations, and fields of the spec, in braces of YAML.
pub(super) fn turning(annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: turning, annotations: {{{annotations}}}}}\n\
         spec: {{tenantRef: {{name: shop}}, {spec}}}\n"
    )
}

pub(super) const MONTHLY: &str = "rotation: {every: 30d, overlap: 1d}";

pub(super) struct Shop {
    pub(super) server: Server,
    pub(super) world: World,
    client: Client,
}

impl Shop {
    pub(super) async fn open() -> Shop {
        let server = Server::own().await;
        let mut world = World::shop_on(&server).await;
        world.write("turning.yaml", &turning("", MONTHLY));
        world.start().await;
        Shop { server, world, client: Client::new() }
    }

    /// Runs SQL in the shop's database as a superuser, with `{id}` for the id of the key `turning`.
    pub(super) async fn sql(&self, script: &str) {
        let id = self.status()["apiKeyId"].as_str().expect("it has one").to_owned();
        execute(&mut self.server.connect("shop").await, &script.replace("{id}", &id)).await;
    }

    /// The secrets of the key `turning`, the newest first, with `live` for those that work.
    pub(super) async fn secrets(&self) -> Vec<Value> {
        let query = "select s.*, s.revoked_at is null and coalesce(s.expires_at > now(), true) as live \
                     from dl.key_secrets s join dl.keys k on k.id = s.key_id where k.name = 'turning' order by s.created_at desc";
        rows(&mut self.server.connect("shop").await, query).await
    }

    pub(super) fn status(&self) -> Value {
        self.world.status("ApiKey", "turning")
    }

    pub(super) fn key(&self) -> String {
        self.world.secret("turning").expect("it was written")
    }

    /// Waits until the Secret holds another key than `old` and that one opens the shop.
    pub(super) async fn key_after(&self, old: &str) -> String {
        let new = until("another key", async || self.world.secret("turning").filter(|key| key != old)).await;
        until("the new key to work", async || self.opens(&new).await.then_some(())).await;
        new
    }

    pub(super) async fn opens(&self, key: &str) -> bool {
        self.is_open(&[("x-api-key", key)]).await
    }

    pub(super) async fn token_opens(&self, token: &str) -> bool {
        self.is_open(&[("authorization", &format!("Bearer {token}"))]).await
    }

    async fn is_open(&self, headers: &[(&str, &str)]) -> bool {
        let reply = self.client.get(&format!("{}{PATH}", self.world.url()), headers).await;
        assert!([200, 401].contains(&reply.status.as_u16()), "{reply:?}");
        reply.status == 200
    }

    /// A token for a key, and its `expiresIn`.
    pub(super) async fn exchange(&self, key: &str) -> (String, i64) {
        token(
            self.client.ask("POST", &format!("{}{EXCHANGE}", self.world.url()), &[("x-api-key", key)]).await,
        )
    }
}

/// The token in an answer, and its `expiresIn`.
pub(super) fn token(reply: Reply) -> (String, i64) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let body: Value = serde_json::from_str(&reply.body).expect("JSON");
    (body["token"].as_str().expect("a text").to_owned(), body["expiresIn"].as_i64().expect("a number"))
}
