//! Two servers: `home`, with the control database and the Tenant `here`, and `other`, which a Secret names, with the Tenant `there`.

use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::World;
use rowgate_tests::world::status::says;
use serde_json::{Value, json};
use sqlx::PgConnection;

/// One table with rows of two regions, in a database on the server that `database` leads to.
const TENANT: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-script}
data:
  schema.sql: |
    create table public.notes (id int generated always as identity primary key, region text not null, body text not null);
    insert into public.notes (region, body) values ('north', 'NAME 1'), ('south', 'NAME 2');
    create function public.shout(word text) returns text language sql stable as 'select upper(word)';
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: NAME}
spec:
  database: {DATABASE bootstrap: {configMapRef: {name: NAME-script}}}
  entities:
    - name: notes
      source: {object: notes}
      events: true
      rowLevelSecurity:
        policies: [{name: own_region, column: region, equals: {claim: region}}]
    - {name: shout, kind: Procedure, source: {object: shout}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: NAME-key}
spec:
  tenantRef: {name: NAME}
  scope:
    permissions:
      - {entity: notes, actions: [read, create, update], fields: {include: ['*']}}
      - {entity: shout, actions: [execute]}
  claims: {region: north}
---
";

/// The administrator that Secrets name. Its password stands in them, and beside the manifests.
pub(crate) const DBA: &str = "create role dba login superuser password 'dba'";

/// A server of a cluster of its own, and its address for a Secret.
pub(super) async fn other() -> (Server, String) {
    let (server, _) = Server::of_its_own_cluster().await;
    execute(&mut server.connect("postgres").await, DBA).await;
    let url = format!("postgresql://dba:dba@127.0.0.1:{}/postgres?sslmode=disable", server.port());
    (server, url)
}

/// The manifest of a Tenant; `database`: fields of `spec.database`, each with a comma behind it.
pub(crate) fn tenant(name: &str, database: &str) -> String {
    TENANT.replace("NAME", name).replace("DATABASE", database)
}

/// A Secret that holds these entries.
pub(crate) fn secret(name: &str, entries: &[(&str, &str)]) -> String {
    let entries: serde_json::Map<String, Value> =
        entries.iter().map(|(name, text)| ((*name).to_owned(), (*text).into())).collect();
    let data = Value::Object(entries);
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {data}\n")
}

pub(super) struct Servers {
    pub(super) world: World,
    pub(super) home: Server,
    pub(super) other: Server,
}

impl Servers {
    /// Both Tenants are served. `other` is named by `url`, with the authority `authority` where it has one.
    pub(super) async fn new(home: Server, other: Server, entries: &[(&str, &str)]) -> Servers {
        Servers::with(home, other, entries, &tenant("there", "serverSecretRef: {name: other},")).await
    }

    /// `there`: the manifest of the Tenant on the other server.
    pub(super) async fn with(home: Server, other: Server, entries: &[(&str, &str)], there: &str) -> Servers {
        let world = World::on(
            &home,
            &[
                ("here.yaml", &tenant("here", "")),
                ("there.yaml", there),
                ("secret.yaml", &secret("other", entries)),
            ],
        );
        let world = world.compared_every(1);
        let mut servers = Servers { world, home, other };
        servers.world.spawn(|_| ());
        for name in ["here", "there"] {
            servers.is_served(name).await;
        }
        servers
    }

    /// The same, by TCP without TLS.
    pub(super) async fn plain() -> Servers {
        let (other, url) = other().await;
        Servers::new(Server::own().await, other, &[("url", &url)]).await
    }

    pub(super) async fn is_served(&self, name: &str) {
        until_ok(&format!("the rows of {name}"), async || {
            let Some(key) = self.world.secret(&format!("{name}-key")) else {
                return Err(self.world.status("Tenant", name));
            };
            let answer = self.world.get(&key, &format!("/auth/{name}/api/notes")).await;
            let is_right = answer.status == 200 && answer.body["value"][0]["body"] == format!("{name} 1");
            if is_right { Ok(()) } else { Err(answer.body) }
        })
        .await;
    }

    pub(super) fn key(&self, name: &str) -> String {
        self.world.secret(&format!("{name}-key")).expect("it is served")
    }

    /// Reason and message of `Ready` of a Tenant, once it has this reason.
    pub(super) async fn says(&self, tenant: &str, reason: &str) -> String {
        says(&self.world, "Tenant", tenant, reason).await
    }

    /// Returns when the data planes are told that these authorities vouch for the other server.
    pub(super) async fn is_written_down(&self, authorities: &str) {
        let mut conn = self.home.connect("rowgate").await;
        until_ok("the authorities in the control database", async || {
            let there = rows(&mut conn, "select authorities from control.servers").await;
            if there == [json!({"authorities": authorities})] { Ok(()) } else { Err(json!(there)) }
        })
        .await;
    }
}

/// Ends every session of requests on a server, and returns when new ones stand. Requests are on their way meanwhile.
pub(crate) async fn connects_anew(server: &Server) {
    let mut conn = server.connect("postgres").await;
    let now = rows(&mut conn, "select clock_timestamp()::text as now").await[0]["now"].clone();
    let now = now.as_str().expect("a text").to_owned();
    let anew = format!(
        "select 1 from pg_stat_activity where usename ~ '^t[0-9a-z]{{26}}_auth$' and '{now}'::timestamptz < backend_start limit 1"
    );
    let ends = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename ~ '^t[0-9a-z]{{26}}_auth$' and backend_start < '{now}'::timestamptz"
    );
    let is_new = async |conn: &mut PgConnection| !rows(conn, &anew).await.is_empty();
    // with the old way gone they come by the new one
    if !is_new(&mut conn).await {
        rows(&mut conn, &ends).await;
    }
    until("a new session of requests", async || is_new(&mut conn).await.then_some(())).await;
}
