//! A tenant whose tables are captured, and a reader of its events.

use std::process::Command;

use rowgate_tests::client::sse::EventStream;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::world::World;
use serde_json::Value;

const TENANT: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: bank-script}
data:
  schema.sql: |
    create schema bank;
    create table bank.accounts (id bigint primary key, region text not null, balance bigint not null, note text, root text, n int);
    create table bank.moves (id bigint not null, at date not null, account bigint, amount bigint, primary key (at, id)) partition by range (at);
    create table bank.moves_a partition of bank.moves for values from ('2024-01-01') to ('2025-01-01');
    create table bank.moves_b partition of bank.moves for values from ('2025-01-01') to ('2026-01-01');
    create table bank.quiet (id bigint primary key);
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: bank}
spec:
  database: {bootstrap: {configMapRef: {name: bank-script}}}
  entities:
    - name: accounts
      source: {schema: bank, object: accounts}
      events: true
      rowLevelSecurity:
        policies:
          - {name: own_region, column: region, equals: {claim: region}}
          - {name: admins, roles: [datalake_user], expression: 'true'}
    - name: moves
      source: {schema: bank, object: moves}
      events: true
      rowLevelSecurity: {none: true}
    - name: quiet
      source: {schema: bank, object: quiet}
      rowLevelSecurity: {none: true}
  shared:
    permissions:
      - {entity: accounts, actions: [read, create, update], fields: {include: ['*']}}
      - {entity: moves, actions: [read], fields: {include: ['*']}}
      - {entity: quiet, actions: [read], fields: {include: ['*']}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec: {tenantRef: {name: bank}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: north}
spec:
  tenantRef: {name: bank}
  claims: {region: north}
  scope:
    permissions:
      - {entity: accounts, actions: [read], fields: {include: [id, region, balance]}}
";

pub(super) struct Bank {
    pub(super) world: World,
    pub(super) client: Client,
}

impl Bank {
    pub(super) async fn open() -> Bank {
        Bank::open_with(|_| ()).await
    }

    /// With further flags.
    pub(super) async fn open_with(change: impl FnOnce(&mut Command)) -> Bank {
        Bank::start(World::founded(&[("bank.yaml", TENANT)]).await, change).await
    }

    /// With what passes look at by themselves: triggers, and how much the log holds.
    pub(super) async fn looked_at() -> Bank {
        Bank::start(World::founded(&[("bank.yaml", TENANT)]).await.compared_every(1), |_| ()).await
    }

    async fn start(mut world: World, change: impl FnOnce(&mut Command)) -> Bank {
        world.start_with(change).await;
        Bank { world, client: Client::new() }
    }

    /// On a server that the test can kill.
    pub(super) async fn on(server: &Server) -> Bank {
        Bank::start(World::on(server, &[("bank.yaml", TENANT)]).compared_every(1), |_| ()).await
    }

    pub(super) async fn sql(&self, script: &str) {
        execute(&mut self.world.superuser("bank").await, script).await;
    }

    pub(super) async fn ask(&self, key: &str, query: &str) -> Reply {
        let url = format!("{}/api/ddl/events{query}", self.world.url());
        self.client.get(&url, &[("X-API-Key", &self.world.key(key))]).await
    }

    pub(super) async fn page(&self, key: &str, query: &str) -> Value {
        let reply = self.ask(key, query).await;
        assert_eq!(reply.status, 200, "{key} {query}: {reply:?}");
        reply.json()
    }

    pub(super) async fn stream(&self, key: &str, query: &str, headers: &[(&str, &str)]) -> EventStream {
        self.stream_of(&self.world.url(), key, query, headers).await
    }

    /// Of another replica.
    pub(super) async fn stream_of(
        &self,
        replica: &str,
        key: &str,
        query: &str,
        headers: &[(&str, &str)],
    ) -> EventStream {
        self.try_stream_of(replica, key, query, headers).await.expect("the replica answers")
    }

    /// `None`: the replica, or PostgreSQL behind it, is away.
    pub(super) async fn try_stream_of(
        &self,
        replica: &str,
        key: &str,
        query: &str,
        headers: &[(&str, &str)],
    ) -> Option<EventStream> {
        let (url, key) = (format!("{replica}/api/ddl/events/stream{query}"), self.world.key(key));
        let headers = [&[("X-API-Key", key.as_str())], headers].concat();
        let response = self.client.try_open("GET", &url, &headers, "").await.ok()?;
        (response.status() != 503).then(|| EventStream::new(response))
    }

    /// All events of a key from a cursor on, and the cursor behind them.
    pub(super) async fn all(&self, key: &str, tables: &str, after: &str) -> (Vec<Value>, String) {
        let (mut events, mut after) = (Vec::new(), after.to_owned());
        loop {
            let page = self.page(key, &format!("?tables={tables}&after={after}&limit=37")).await;
            events.extend(page["events"].as_array().expect("events").iter().cloned());
            cursor(&page).clone_into(&mut after);
            if page["hasMore"] == false {
                return (events, after);
            }
        }
    }

    /// The cursor of now.
    pub(super) async fn now(&self, key: &str) -> String {
        cursor(&self.page(key, "").await).to_owned()
    }
}

pub(super) fn cursor(page: &Value) -> &str {
    page["cursor"].as_str().expect("a cursor")
}

/// What happened to which row, such as `insert 1`.
pub(super) fn told(events: &[Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| format!("{} {}", event["op"].as_str().expect("an op"), event["key"]["id"]))
        .collect()
}
