//! A tenant whose rows of 2 kB are captured, and one replica that delivers.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rowgate_tests::client::Client;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::account;

fn manifest(tenant: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: {tenant}-script}}
data:
  schema.sql: |
    create schema b;
    create table b.orders (id bigint generated always as identity primary key, body text not null default repeat('x', 1800));
    create table b.other (id bigint primary key);
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {{name: {tenant}}}
spec:
  database: {{bootstrap: {{configMapRef: {{name: {tenant}-script}}}}}}
  webhooks: {{allowHttp: true}}
  limits: {{subscriptions: 5000}}
  entities:
    - {{name: orders, source: {{schema: b, object: orders}}, events: true, rowLevelSecurity: {{none: true}}}}
  shared:
    permissions:
      - {{entity: orders, actions: [read, create], fields: {{include: ['*']}}}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {{name: {tenant}-key}}
spec:
  tenantRef: {{name: {tenant}}}
"
    )
}

pub(super) struct Mill {
    pub(super) server: Arc<Server>,
    pub(super) replica: Arc<DataPlane>,
    tenant: &'static str,
    key: String,
    client: Client,
    _world: Arc<World>,
}

fn reaches_loopback(command: &mut Command) {
    command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
}

/// The id of a row that was just committed.
pub(super) async fn one(writer: &mut PgConnection) -> i64 {
    let insert = sqlx::query_scalar("insert into b.orders default values returning id");
    insert.fetch_one(writer).await.expect("it is inserted")
}

impl Mill {
    pub(super) async fn open() -> Mill {
        let [mill] = Mill::several(["mill"]).await;
        mill
    }

    /// Tenants that one replica delivers for.
    pub(super) async fn several<const N: usize>(tenants: [&'static str; N]) -> [Mill; N] {
        let settings = ["shared_buffers=256MB", "fsync=on", "full_page_writes=on", "max_connections=200"];
        let server = Arc::new(Server::with(&settings).await);
        let texts = tenants.map(|tenant| (format!("{tenant}.yaml"), manifest(tenant)));
        let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
        let mut world = World::on(&server, &files);
        world.start_with(reaches_loopback).await;
        let keys = tenants.map(|tenant| world.key(&format!("{tenant}-key")));
        let _ended = world.stop().await;
        let replica = Arc::new(world.replica_with(reaches_loopback).await);
        let world = Arc::new(world);
        let mut keys = keys.into_iter();
        tenants.map(|tenant| Mill {
            server: server.clone(),
            replica: replica.clone(),
            tenant,
            key: keys.next().expect("one for each tenant"),
            client: Client::new(),
            _world: world.clone(),
        })
    }

    /// The superuser in its database.
    pub(super) async fn sql(&self) -> PgConnection {
        self.server.connect(self.tenant).await
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.replica.url());
        let headers = [("X-API-Key", self.key.as_str()), ("Content-Type", "application/json")];
        let reply = match body {
            Value::Null => self.client.ask(method, &url, &headers[..1]).await,
            body => self.client.send(method, &url, &headers, &body.to_string()).await,
        };
        assert!(reply.status.is_success(), "{method} {path}: {reply:?}");
        if reply.body.is_empty() { Value::Null } else { reply.json() }
    }

    /// The id of a new subscription.
    pub(super) async fn subscribe(&self, url: &str, max_events: u32, suspend: bool) -> String {
        let body = json!({
            "name": "orders", "url": url, "filter": {"tables": ["orders"]}, "suspend": suspend,
            "batch": {"maxEvents": max_events},
        });
        let made = self.ask("POST", "/api/ddl/events/webhooks", &body).await;
        made["id"].as_str().expect("an id").to_owned()
    }

    /// As they are listed.
    pub(super) async fn subscriptions(&self) -> Value {
        self.ask("GET", "/api/ddl/events/webhooks", &Value::Null).await
    }

    pub(super) async fn resume(&self, subscription: &str) {
        self.suspend(subscription, false).await;
    }

    pub(super) async fn suspend(&self, subscription: &str, suspend: bool) {
        self.ask("PATCH", &format!("/api/ddl/events/webhooks/{subscription}"), &json!({"suspend": suspend}))
            .await;
    }

    /// All that is kept is delivered again.
    pub(super) async fn replay(&self, subscription: &str) {
        let path = format!("/api/ddl/events/webhooks/{subscription}/replay");
        self.ask("POST", &path, &json!({"fromRetentionStart": true})).await;
    }

    pub(super) async fn remove(&self, subscription: &str) {
        self.ask("DELETE", &format!("/api/ddl/events/webhooks/{subscription}"), &Value::Null).await;
    }

    /// By one statement.
    pub(super) async fn insert(&self, n: i64) {
        let mut conn = self.sql().await;
        let insert =
            sqlx::query("insert into b.orders (body) select repeat('x', 1800) from generate_series(1, $1)");
        insert.bind(n).execute(&mut conn).await.expect("they are inserted");
    }

    /// The id of a row that was made through the replica.
    pub(super) async fn post(&self) -> i64 {
        let made = self
            .ask("POST", &format!("/auth/{}/api/orders", self.tenant), &json!({"body": "x".repeat(1800)}))
            .await;
        made["value"][0]["id"].as_i64().expect("an id")
    }

    /// Returns when nothing is left to be written of it.
    pub(super) async fn is_delivered(&self, subscription: &str) {
        let mut conn = self.sql().await;
        let done = format!(
            "select 1 from dl.subscriptions where id = '{subscription}' and lease is null and batch_id is null"
        );
        until("the last position", async || (!rows(&mut conn, &done).await.is_empty()).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    /// Seconds of CPU of the replica and of PostgreSQL meanwhile.
    pub(super) async fn cpu_of(&self, work: impl AsyncFnOnce()) -> (f64, f64) {
        let (replica, postgres) = ([self.replica.pid()], account::tree(self.server.pid()));
        let before = (account::cpu(&replica), account::cpu(&postgres));
        work().await;
        let after = (account::cpu(&replica), account::cpu(&account::tree(self.server.pid())));
        (after.0 - before.0, after.1 - before.1)
    }
}
