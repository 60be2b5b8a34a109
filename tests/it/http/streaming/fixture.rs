//! Two tenants whose rows are made while they are read, on a server that the test can look into.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use sqlx::{PgConnection, Row as _};

/// `{tenant}` and `{timeout}` are filled in. Each row of `long` has 1 kB, of `wide` 200 kB; `broken` divides by zero in
/// its row 5,000 and `broken_at_once` in its first; a row of `slow` takes ten minutes.
const MANIFEST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {tenant}-script}
data:
  schema.sql: |
    create schema t;
    create table t.numbers (id int primary key);
    insert into t.numbers select generate_series(1, 40000);
    create view t.long as select id, repeat('x', 1000) as body from t.numbers;
    create view t.wide as select id, repeat('y', 200000) as body from t.numbers where id <= 400;
    create view t.broken as select id, 1 / (id - 5000) as inverse, repeat('x', 100) as body from t.numbers;
    create view t.broken_at_once as select id, 1 / (id - 1) as inverse from t.numbers;
    create view t.slow as select id, pg_sleep(600)::text as nap from t.numbers;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: {tenant}}
spec:
  database: {bootstrap: {configMapRef: {name: {tenant}-script, key: schema.sql}}}
  limits: {statementTimeout: {timeout}}
  entities:
    - {name: numbers, source: {schema: t, object: numbers}, rowLevelSecurity: {none: true}}
    - {name: long, source: {schema: t, object: long}, keyFields: [id], kind: View}
    - {name: wide, source: {schema: t, object: wide}, keyFields: [id], kind: View}
    - {name: broken, source: {schema: t, object: broken}, keyFields: [id], kind: View}
    - {name: broken_at_once, source: {schema: t, object: broken_at_once}, keyFields: [id], kind: View}
    - {name: slow, source: {schema: t, object: slow}, keyFields: [id], kind: View}
  shared:
    permissions:
      - {entity: numbers, actions: [read]}
      - {entity: long, actions: [read]}
      - {entity: wide, actions: [read]}
      - {entity: broken, actions: [read]}
      - {entity: broken_at_once, actions: [read]}
      - {entity: slow, actions: [read]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: {tenant}-key}
spec:
  tenantRef: {name: {tenant}}
";

/// `big` and `calm`, alike, in a process with these flags.
pub(super) struct Fixture {
    pub(super) world: World,
    /// The superuser in the database of `big`.
    pub(super) superuser: PgConnection,
    pub(super) key: String,
    pub(super) client: Client,
    server: Server,
}

impl Fixture {
    /// `timeout` is the tenants' `statementTimeout`.
    pub(super) async fn new(timeout: &str, flags: &[&str]) -> Fixture {
        let server = Server::own().await;
        let manifest = |tenant| MANIFEST.replace("{tenant}", tenant).replace("{timeout}", timeout);
        let (big, calm) = (manifest("big"), manifest("calm"));
        let mut world = World::on(&server, &[("big.yaml", &big), ("calm.yaml", &calm)]);
        world
            .start_with(|command| {
                command.args(flags);
            })
            .await;
        let superuser = server.connect("big").await;
        let key = world.key("big-key");
        Fixture { world, superuser, key, client: Client::new(), server }
    }

    /// Asks the tenant `big`; the path begins after `/api`.
    pub(super) async fn get(&self, path: &str) -> Reply {
        self.client.get(&format!("{}{}", self.world.url(), big(path)), &[("X-API-Key", &self.key)]).await
    }

    /// A transaction of somebody else's that keeps everybody from the numbers for as long as it is not dropped.
    pub(super) async fn lock(&self) -> PgConnection {
        let mut other = self.server.connect("big").await;
        execute(&mut other, "begin; lock table t.numbers").await;
        other
    }

    /// Waits until a statement of the API over this view or table runs, and gives its process.
    pub(super) async fn runs(&mut self, object: &str) -> i32 {
        let found = async || self.running(object).await;
        until(&format!("a statement over {object}"), found).await
    }

    /// Waits until no statement of the API runs any more.
    pub(super) async fn nothing_runs(&mut self) {
        let none = async || self.running("").await.is_none().then_some(());
        until("an end of all statements", none).await;
    }

    async fn running(&mut self, object: &str) -> Option<i32> {
        let sql = "select pid from pg_stat_activity where datname = current_database() and state = 'active'
            and application_name = 'rowgate' and query like '%from \"t\".\"' || $1 || '%'";
        let row = sqlx::query(sql).bind(object).fetch_optional(&mut self.superuser).await;
        row.expect("rows").map(|row| row.get(0))
    }

    /// The processes that serve the requests of `big`.
    pub(super) async fn backends(&mut self) -> Vec<i32> {
        let sql = "select pid from pg_stat_activity where datname = current_database()
            and application_name = 'rowgate' and query like '%from \"t\".%' order by pid";
        let rows = sqlx::query(sql).fetch_all(&mut self.superuser).await.expect("rows");
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// A path of the tenant `big`.
pub(super) fn big(path: &str) -> String {
    format!("/auth/big/api{path}")
}

/// The ids of rows, in the order they came.
pub(super) fn ids(reply: &Reply) -> Vec<u64> {
    reply.rows().iter().map(|row| row["id"].as_u64().expect("a number")).collect()
}
