//! The shop over GraphQL.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Value, json};

pub(super) struct Shop {
    pub(super) world: World,
    pub(super) client: Client,
}

impl Shop {
    /// Returns when the relationships of the shop are served.
    pub(super) async fn open() -> Shop {
        let mut world = World::founded_shop().await;
        world.start().await;
        let shop = Shop { world, client: Client::new() };
        until("the relationships of the shop", async || {
            let answer = shop.ask(
                "shop-admin",
                json!({"query": "{ orders(first: 1) { items { products { totalCount } } } }"}),
            );
            answer.await["errors"].is_null().then_some(())
        })
        .await;
        shop
    }

    pub(super) fn url(&self) -> String {
        format!("{}/auth/shop/graphql", self.world.url())
    }

    pub(super) async fn post(&self, key: &str, body: &str, headers: &[(&str, &str)]) -> Reply {
        let key = self.world.key(key);
        let own = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        let headers: Vec<_> = own.into_iter().chain(headers.iter().copied()).collect();
        self.client.send("POST", &self.url(), &headers, body).await
    }

    /// The whole answer to a request, which is 200.
    pub(super) async fn ask(&self, key: &str, request: Value) -> Value {
        let reply = self.post(key, &request.to_string(), &[]).await;
        assert_eq!(reply.status, 200, "{request}: {reply:?}");
        reply.json()
    }

    /// The data of a query without errors.
    pub(super) async fn data(&self, key: &str, query: &str) -> Value {
        let answer = self.ask(key, json!({"query": query})).await;
        assert!(answer["errors"].is_null(), "{query}: {answer}");
        answer["data"].clone()
    }

    /// The code and the message of the one error of a query.
    pub(super) async fn error(&self, key: &str, query: &str) -> (String, String) {
        let answer = self.ask(key, json!({"query": query})).await;
        let error = &answer["errors"][0];
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{query}: {answer}")).to_owned();
        (text(&error["extensions"]["code"]), text(&error["message"]))
    }
}
