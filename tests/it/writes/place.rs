//! A tenant of its own on a PostgreSQL of its own, and requests to it: what every fixture of writes is made of.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::postgres::{Server, execute, rows};
use rowgate_tests::world::World;
use serde_json::Value;

use super::send;

pub(super) struct Place {
    pub(super) world: World,
    pub(super) server: Server,
    pub(super) client: Client,
    /// Of the tenant, and the name of its database.
    slug: &'static str,
}

impl Place {
    /// The manifest is the file `{slug}.yaml`.
    pub(super) async fn open(slug: &'static str, manifest: &str) -> Place {
        let server = Server::own().await;
        let mut world = World::on(&server, &[(&format!("{slug}.yaml"), manifest)]);
        world.start().await;
        Place { world, server, client: Client::new(), slug }
    }

    /// `path` begins behind the tenant's address.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/auth/{}/api{path}", self.world.url(), self.slug)
    }

    /// A request of the ApiKey with this name, with a body of JSON.
    pub(super) async fn ask(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Reply {
        send(&self.client, &self.world.key(key), (method, &self.url(path)), headers, body).await
    }

    /// What the superuser sees.
    pub(super) async fn rows(&self, query: &str) -> Vec<Value> {
        rows(&mut self.server.connect(self.slug).await, query).await
    }

    /// As the superuser.
    pub(super) async fn execute(&self, script: &str) {
        execute(&mut self.server.connect(self.slug).await, script).await;
    }

    /// Every row of these tables of a schema, in one text.
    pub(super) async fn contents(&self, schema: &str, tables: &[&str]) -> String {
        let mut contents = String::new();
        for table in tables {
            let rows = self.rows(&format!("select * from {schema}.{table} t order by t")).await;
            contents += &format!("{rows:?} ");
        }
        contents
    }
}
