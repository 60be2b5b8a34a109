//! A tenant with a migration login, on a server that is reached by TCP: Java finds no Unix socket.

use std::process::{Command, Output};

use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::sweep;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::openapi::fixture::run;

const TENANT: &str = include_str!("tenant.yaml");

pub(super) struct Trade {
    pub(super) world: World,
    server: Server,
    secret: Value,
}

impl Trade {
    pub(super) async fn open() -> Trade {
        let (server, url) = Server::with_two_ways(&[]).await;
        let mut world = World::on(&server, &[("trade.yaml", TENANT)]).over(&server, url);
        // as in an installation: what a tool changes must not be noticed only because everything is looked at each second
        world.resync_seconds = 25;
        world.start().await;
        let path = world.state().join("secrets/default/trade-migrations.yaml");
        let secret: Value =
            until("the Secret", async || serde_yaml::from_str(&std::fs::read_to_string(&path).ok()?).ok())
                .await;
        let secret = secret["stringData"].clone();
        sweep::remember(secret["password"].as_str().expect("a password"));
        until("the whole tenant", async || {
            (world.get(&world.key("all"), "/auth/trade/api/open_orders?$first=1").await.status == 200)
                .then_some(())
        })
        .await;
        Trade { world, server, secret }
    }

    /// An entry of the Secret.
    pub(super) fn entry(&self, name: &str) -> &str {
        self.secret[name].as_str().unwrap_or_else(|| panic!("no {name} in the Secret"))
    }

    /// Runs a tool to its end, beside what else the test does.
    pub(super) async fn run(&self, mut command: Command) -> Output {
        spawn_blocking(move || run(&mut command, "")).await.expect("the tool ends well")
    }

    /// As the superuser, whom no policy keeps from a row.
    pub(super) async fn sql(&self, script: &str) {
        execute(&mut self.server.connect("trade").await, script).await;
    }

    /// As [`Trade::sql`].
    pub(super) async fn rows(&self, query: &str) -> Vec<Value> {
        rows(&mut self.server.connect("trade").await, query).await
    }

    /// The first row of an entity, for a key; `None`: it is not served now.
    pub(super) async fn first(&self, key: &str, entity: &str) -> Option<Value> {
        let path = format!("/auth/trade/api/{entity}?$first=1");
        let answer = self.world.get(&self.world.key(key), &path).await;
        (answer.status == 200).then(|| answer.body["value"][0].clone())
    }

    /// Which fields an entity has for a key, once it is served.
    pub(super) async fn fields(&self, key: &str, entity: &str) -> Vec<String> {
        let row = until(entity, async || self.first(key, entity).await).await;
        row.as_object().expect("a row").keys().cloned().collect()
    }

    /// Waits until every entity is served again.
    pub(super) async fn is_whole(&self) {
        for entity in ["customers", "orders", "products", "regions", "open_orders"] {
            until(entity, async || self.first("all", entity).await).await;
        }
        until("the view for a scoped key", async || self.first("north", "open_orders").await).await;
    }
}
