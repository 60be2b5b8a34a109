//! Tenants side by side, each with the keys `<tenant>-a`, `<tenant>-b` and `<tenant>-c`, on a server that the test can look into.

use rowgate_core::problem::Code;
use rowgate_tests::asked::Asked;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Each row of `long` has 1 kB, so that a page of it is 32 MiB; the one row of `napping` takes 20 ms.
const TENANT: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {tenant}-script}
data:
  schema.sql: |
    create schema t;
    create table t.notes (id int primary key, body text not null);
    insert into t.notes select i, 'first' from generate_series(1, 200) i;
    create view t.long as select i as id, repeat('x', 1000) as body from generate_series(1, 100000) i;
    create view t.napping as select 1 as id, pg_sleep(0.02)::text as nap;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: {tenant}}
spec:
  database: {bootstrap: {configMapRef: {name: {tenant}-script, key: schema.sql}}}
  limits: {statementTimeout: 10m}
  entities:
    - {name: notes, source: {schema: t, object: notes}, rowLevelSecurity: {none: true}}
    - {name: long, source: {schema: t, object: long}, keyFields: [id], kind: View}
    - {name: napping, source: {schema: t, object: napping}, keyFields: [id], kind: View}
  shared:
    permissions:
      - {entity: notes, actions: [read, update]}
      - {entity: long, actions: [read]}
      - {entity: napping, actions: [read]}
";

/// A manifest of the tenant with its keys.
pub(super) fn tenant(name: &str) -> String {
    let keys = ["a", "b", "c"].map(|key| {
        format!(
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {name}-{key}}}\n\
             spec: {{tenantRef: {{name: {name}}}}}\n"
        )
    });
    TENANT.replace("{tenant}", name) + &keys.concat()
}

pub(super) struct Crowd {
    pub(super) world: World,
    pub(super) server: Server,
}

impl Crowd {
    /// These tenants in a process with these flags.
    pub(super) async fn new(tenants: &[&str], flags: &[&str]) -> Crowd {
        let server = Server::own().await;
        let files: Vec<_> = tenants.iter().map(|name| (format!("{name}.yaml"), tenant(name))).collect();
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let mut world = World::on(&server, &files);
        world.resync_seconds = 3_600;
        world
            .start_with(|command| {
                command.args(flags);
            })
            .await;
        Crowd { world, server }
    }

    /// A request of the key with this name, `<tenant>-<letter>`.
    pub(super) async fn get(&self, key: &str, path: &str) -> Reply {
        let url = url(&self.world.url(), key, path);
        Client::new().get(&url, &[("X-API-Key", &self.world.key(key))]).await
    }

    /// Somebody with this key, who asks all the time.
    pub(super) fn neighbour(&self, key: &str) -> Asked {
        let url = url(&self.world.url(), key, "/notes?$first=1");
        Asked::begin(url, self.world.key(key), &[self.world.pid()])
    }

    /// What the superuser counts in a tenant's database.
    pub(super) async fn number(&self, tenant: &str, query: &str) -> i64 {
        let found =
            rows(&mut self.server.connect(tenant).await, &format!("select ({query})::bigint as n")).await;
        found[0]["n"].as_i64().expect("a number")
    }

    /// Sessions of the data plane, of all tenants.
    pub(super) async fn sessions(&self) -> i64 {
        let query = "select count(*) from pg_stat_activity where usename ~ '_(auth|sql|lookups)$' or usename ~ '^key_'";
        self.number("postgres", query).await
    }

    /// Waits until this many statements of the API over the relation run in the tenant's database.
    pub(super) async fn running(&self, tenant: &str, relation: &str, n: i64) {
        let query = format!(
            "select count(*) from pg_stat_activity where datname = current_database() and state = 'active'
             and application_name = 'rowgate' and query like '%\"t\".\"{relation}\"%'"
        );
        until(&format!("{n} statements over {relation}"), async || {
            (self.number(tenant, &query).await == n).then_some(())
        })
        .await;
    }

    pub(super) async fn revoke(&self, key: &str) {
        let id = self.world.status("ApiKey", key)["apiKeyId"].as_str().expect("an id").to_owned();
        let (tenant, _) = key.split_once('-').expect("a tenant and a letter");
        rows(&mut self.server.connect(tenant).await, &format!("select dl.revoke('{id}')::text as at")).await;
    }

    /// The value of a metric without further labels than these.
    pub(super) async fn metric(&self, sample: &str) -> u64 {
        let page = Client::new().get(&format!("{}/metrics", self.world.probes_url()), &[]).await.body;
        let value = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_else(|| panic!("no {sample} in {page}"))
    }

    /// A client that asks for a long page and reads nothing of it yet.
    pub(super) async fn slow_reader(&self, key: &str) -> Raw {
        Raw::get(&self.world, key, "/long?$first=-1").await
    }
}

/// A client of bare bytes, which reads when it likes.
pub(super) struct Raw(TcpStream);

impl Raw {
    async fn get(world: &World, key: &str, path: &str) -> Raw {
        let address = world.url().replace("http://", "").parse().expect("an address");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(16 << 10).expect("a size");
        let mut stream = socket.connect(address).await.expect("the server listens");
        let path = url("", key, path);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\n\r\n", world.key(key));
        stream.write_all(head.as_bytes()).await.expect("a request is small");
        Raw(stream)
    }

    /// Reads up to the end of the connection, whatever ends it; true: the body was whole.
    pub(super) async fn is_whole(&mut self) -> bool {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"0\r\n\r\n") {
            if !matches!(self.0.read_buf(&mut bytes).await, Ok(1..)) {
                return false;
            }
        }
        true
    }
}

/// An address of the tenant that the key belongs to.
pub(super) fn url(base: &str, key: &str, path: &str) -> String {
    let (tenant, _) = key.split_once('-').expect("a tenant and a letter");
    format!("{base}/auth/{tenant}/api{path}")
}

/// Whether it is a refusal with this code.
pub(super) fn refuses(reply: &Reply, code: Code) -> bool {
    reply.json()["error"]["code"] == json!(code)
}
