//! A tenant, two replicas that the test kills, and writers.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rowgate_pg::connect::login::Login;
use rowgate_tests::client::Client;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, attempt, connect, connect_to, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Value, json};
use sqlx::PgConnection;

const TENANT: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: works-script}
data:
  schema.sql: |
    create schema works;
    create table works.orders (id bigint primary key, n int not null);
    create table works.probes (id bigint primary key, n int not null);
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: works}
spec:
  database: {bootstrap: {configMapRef: {name: works-script}}}
  webhooks: {allowHttp: true}
  limits: {subscriptions: 300}
  entities:
    - name: orders
      source: {schema: works, object: orders}
      events: true
      rowLevelSecurity: {policies: [{name: all, expression: 'id is not null'}]}
    - name: probes
      source: {schema: works, object: probes}
      events: true
      rowLevelSecurity: {policies: [{name: all, expression: 'id is not null'}]}
  shared:
    permissions:
      - {entity: orders, actions: [read], fields: {include: ['*']}}
      - {entity: probes, actions: [read], fields: {include: ['*']}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec: {tenantRef: {name: works}}
";

pub(in crate::webhooks) const N_REPLICAS: usize = 2;
/// Rows that writers insert and update.
const ROWS: i64 = 40;

pub(in crate::webhooks) struct Works {
    pub(in crate::webhooks) server: Server,
    world: World,
    key: String,
    replicas: Vec<Option<DataPlane>>,
}

fn reaches_loopback(command: &mut Command) {
    command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
}

impl Works {
    /// What reconciles has ended; only the replicas deliver.
    pub(in crate::webhooks) async fn open() -> Works {
        let server = Server::own().await;
        let mut world = World::on(&server, &[("works.yaml", TENANT)]);
        world.start_with(reaches_loopback).await;
        let key = world.key("all");
        let _ended = world.stop().await;
        let replicas = (0..N_REPLICAS).map(|_| None).collect();
        let mut works = Works { server, world, key, replicas };
        works.start().await;
        works
    }

    /// Starts the replicas that are not there.
    pub(in crate::webhooks) async fn start(&mut self) {
        for replica in &mut self.replicas {
            if replica.is_none() {
                *replica = Some(self.world.replica_with(reaches_loopback).await);
            }
        }
    }

    /// SIGKILL for some of them.
    pub(in crate::webhooks) async fn kill(&mut self, which: &[usize]) {
        for i in which {
            if let Some(replica) = self.replicas[*i].take() {
                let _killed = replica.end(Signal::SIGKILL).await;
            }
        }
    }

    /// One that is there stands still from now on.
    pub(in crate::webhooks) async fn pause(&self, which: usize) {
        self.replicas[which].as_ref().expect("it was started").pause().await;
    }

    /// A signal for one that is there.
    pub(in crate::webhooks) fn signal(&self, which: usize, signal: Signal) {
        self.replicas[which].as_ref().expect("it was started").signal(signal);
    }

    /// The id of a new subscription.
    pub(in crate::webhooks) async fn subscribe(
        &self,
        table: &str,
        url: &str,
        payload_query: Option<&str>,
    ) -> String {
        let body = json!({
            "name": table, "url": url, "filter": {"tables": [table]}, "payloadQuery": payload_query,
            "retry": {"maxAttempts": 20, "initialDelay": 1, "maxDelay": 1},
        });
        let replica = self.replicas[0].as_ref().expect("it was started");
        let address = format!("{}/api/ddl/events/webhooks", replica.url());
        let headers = [("X-API-Key", self.key.as_str()), ("Content-Type", "application/json")];
        let reply = Client::new().send("POST", &address, &headers, &body.to_string()).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        let made: Value = reply.json();
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until nothing of a subscription is to be delivered, or to be written of what was.
    pub(in crate::webhooks) async fn is_settled(&self, id: &str) {
        let mut look = self.sql().await;
        let settled = format!(
            "select 1 as n from dl.subscriptions where id = '{id}' and lease is null and batch_id is null and rels is not null
             and not exists (select from dl.pending(id, cursor_tick, cursor_seq, rels, ops, 1) e where e.op is not null)"
        );
        until("the subscription at rest", async || {
            (!rows(&mut look, &settled).await.is_empty()).then_some(())
        })
        .await;
    }

    /// How a superuser reaches the tenant's database.
    pub(in crate::webhooks) async fn login(&self) -> Login {
        let found = rows(&mut self.sql().await, "select current_database() as name").await;
        self.server.superuser(found[0]["name"].as_str().expect("a name"))
    }

    pub(in crate::webhooks) async fn sql(&self) -> PgConnection {
        connect_to(&self.server.superuser("works")).await
    }
}

/// How far the writers may go, and how far they are.
#[derive(Default)]
pub(in crate::webhooks) struct Load {
    pub(in crate::webhooks) allowed: AtomicUsize,
    written: AtomicUsize,
}

impl Load {
    /// Waits until everything is written that may be.
    pub(in crate::webhooks) async fn is_written(&self) {
        let all = || self.allowed.load(Ordering::Acquire) <= self.written.load(Ordering::Acquire);
        until("the writers", async || all().then_some(())).await;
    }

    /// Inserts and updates rows one by one, until it is dropped. What was committed, the database knows.
    pub(in crate::webhooks) async fn write(&self, login: &Login, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        loop {
            let mut conn = until("a connection", async || connect(login).await.ok()).await;
            loop {
                let may = || self.written.load(Ordering::Acquire) < self.allowed.load(Ordering::Acquire);
                until("more to write", async || may().then_some(())).await;
                let id = random.random_range(0..ROWS);
                let change = format!(
                    "insert into works.orders values ({id}, 0) on conflict (id) do update set n = orders.n + 1"
                );
                if attempt(&mut conn, &change).await.is_err() {
                    break;
                }
                self.written.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}

pub(in crate::webhooks) async fn probe(conn: &mut PgConnection, id: usize) {
    execute(conn, &format!("insert into works.probes values ({id}, 0)")).await;
}

/// One change of a row.
pub(in crate::webhooks) async fn changed(works: &Works, n: i64) {
    execute(&mut works.sql().await, &format!("insert into works.orders values ({n}, 0)")).await;
}
