//! What somebody does to the tables by hand, and what requests see of it.

mod alone;
mod batch;
mod wake;
mod warnings;

use std::time::Duration;

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::world::World;
use sqlx::PgConnection;
use tokio::time::Instant;

/// Rows of owner `b` are nobody's to see.
const MANIFEST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: script}
data:
  schema.sql: |
    create schema app;
    create type app.mood as enum ('sad', 'ok');
    create table app.items (id int primary key, owner text not null, label text, n int, amount numeric(12,2), mood app.mood);
    insert into app.items select i, case when i % 2 = 0 then 'a' else 'b' end, 'label', i, i, 'ok' from generate_series(1, 10) i;
    create view app.shown as select id, owner from app.items;
    create table app.others (id int primary key, owner text not null);
    create table app.wide (id int primary key, twice int generated always as (id * 2) stored);
    do $$ begin for i in 1..300 loop execute format('alter table app.wide add c%s int', i); end loop; end $$;
    insert into app.others values (1, 'b'), (2, 'a');
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: hand}
spec:
  database: {bootstrap: {configMapRef: {name: script, key: schema.sql}}}
  entities:
    - name: items
      source: {schema: app, object: items}
      rowLevelSecurity: {policies: [{name: own, column: owner, equals: {literal: a}}]}
    - name: others
      source: {schema: app, object: others}
      rowLevelSecurity: {policies: [{name: own, column: owner, equals: {literal: a}}]}
    - {name: shown, source: {schema: app, object: shown}, kind: View, keyFields: [id]}
    - {name: wide, source: {schema: app, object: wide}, rowLevelSecurity: {none: true}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: reader}
spec:
  tenantRef: {name: hand}
  scope:
    permissions:
      - {entity: items, actions: [read], fields: {include: ['*']}}
      - {entity: others, actions: [read], fields: {include: ['*']}}
      - {entity: shown, actions: [read], fields: {include: ['*']}}
";

struct Hand {
    world: World,
    server: Server,
    client: Client,
    key: String,
}

/// What a request must be answered 2 s after a change.
enum Now {
    /// 200 and this first row.
    Row(&'static str),
    /// Status and code.
    Refused(u16, &'static str),
}

impl Hand {
    /// The tenant, served, on a server with these further settings; everything is compared after `resync_seconds` seconds.
    async fn new(settings: &[&str], resync_seconds: u32) -> Hand {
        let server = Server::with(settings).await;
        let mut world = World::on(&server, &[("hand.yaml", MANIFEST)]);
        world.resync_seconds = resync_seconds;
        world.start().await;
        let key = world.key("reader");
        Hand { world, server, client: Client::new(), key }
    }

    /// A connection as the owner of the tables.
    async fn owner(&self) -> PgConnection {
        let mut conn = self.server.connect("hand").await;
        let id = self.world.status("Tenant", "hand")["tenantId"].as_str().expect("it has one").to_owned();
        execute(&mut conn, &format!("set role t{}_owner", id.to_ascii_lowercase())).await;
        conn
    }

    /// `GET` below `/auth/hand/api/`. Whatever happens, rows are those of owner `a`, and no key is refused for a change.
    async fn get(&self, origin: &str, path: &str) -> Reply {
        let url = format!("{origin}/auth/hand/api/{path}");
        self.client.get(&url, &[("X-API-Key", &self.key)]).await
    }

    /// Asks without pause until 2 s after `since`.
    async fn load(&self, origin: &str, path: &str, since: Instant, judge: impl Fn(&Reply)) {
        while since.elapsed() < Duration::from_secs(2) {
            let four = tokio::join!(
                self.get(origin, path),
                self.get(origin, path),
                self.get(origin, path),
                self.get(origin, path)
            );
            [four.0, four.1, four.2, four.3].iter().for_each(&judge);
        }
    }
}

/// Whether that is the first row.
fn begins(reply: &Reply, row: &str) -> bool {
    reply.body.strip_prefix("{\"value\":[").is_some_and(|rows| rows.starts_with(row))
}

impl Now {
    fn check(&self, reply: &Reply, told: &str) {
        match self {
            Now::Row(row) => {
                assert_eq!(reply.status, 200, "{told}: {reply:?}");
                assert!(begins(reply, row), "{told}: {reply:?}");
            }
            Now::Refused(status, code) => {
                assert_eq!(reply.status.as_u16(), *status, "{told}: {reply:?}");
                assert_eq!(reply.json()["error"]["code"], *code, "{told}: {reply:?}");
            }
        }
    }
}
