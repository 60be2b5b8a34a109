//! A tenant with one long table under a policy, a scoped key, and both ways to its rows: COPY as the key's role, and an export.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::world::World;
use serde_json::{Value, json};
use tokio::time::sleep;

/// The ten columns of [`crate::stage`], wider where a larger number of rows needs it.
pub(crate) const TABLE: &str = "(id bigint not null primary key, tenant text not null, sku uuid not null, name text not null, \
     price numeric(12,2) not null, stock integer not null, active boolean not null, weight double precision not null, \
     made timestamptz not null, note text)";
/// Rows of tenant `$tenant`, numbered by `i`.
pub(crate) const ROWS: &str = "insert into b.items select i, '$tenant', md5(i::text)::uuid, 'item number ' || i, (i % 9999) / 100.0, \
     i % 500, i % 3 = 0, i / 7.0, timestamptz '2026-01-01 00:00:00+00' + i * interval '1 second', \
     case when i % 5 > 0 then repeat('n', (i % 40)::int) end";
const COPY: &str =
    "copy (select id, tenant, sku, name, price, stock, active, weight, made, note from b.items) to stdout";
/// Between two looks at an export, which so take about 1 % of the data plane's CPU.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) struct Depot {
    pub(crate) server: Server,
    pub(crate) data_plane: DataPlane,
    _world: World,
    key: String,
    database: String,
    role: String,
    client: Client,
}

/// An export that has succeeded.
pub(crate) struct Exported {
    pub(crate) seconds: f64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Depot {
    /// With so many rows that the key reads, and one that it does not.
    pub(crate) async fn fill(n_rows: u64) -> Depot {
        let server = Server::with(&["shared_buffers=256MB", "autovacuum=off"]).await;
        let mut world = World::on(&server, &[("bench.yaml", &manifest())]);
        world.start().await;
        let mut superuser = server.connect("bench").await;
        for (tenant, first, last) in [("t1", 1, n_rows), ("t2", 0, 0)] {
            let insert = ROWS.replace("$tenant", tenant);
            let series = format!("generate_series({first}::bigint, {last})");
            execute(&mut superuser, &format!("{insert} from {series} i")).await;
        }
        execute(&mut superuser, "vacuum (freeze, analyze) b.items").await;
        let found = rows(&mut superuser, "select current_database() as database, role from dl.keys").await;
        let text = |name: &str| found[0][name].as_str().expect("one key").to_owned();
        let data_plane = exporting(&world).await;
        let key = world.key("all");
        // standalone is a data plane too, and would take every second export
        world.stop().await;
        Depot {
            server,
            data_plane,
            _world: world,
            key,
            database: text("database"),
            role: text("role"),
            client: Client::new(),
        }
    }

    /// How long psql reads all rows for, as the key's role, in seconds; where they go is nowhere.
    pub(crate) fn copy(&self, format: &str) -> f64 {
        let login = self.server.superuser(&self.database);
        let role = format!("set session authorization \"{}\"", self.role);
        let copy = format!("{COPY} (format {format})");
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--no-password", "-v", "ON_ERROR_STOP=1", "-c", &role]);
        psql.args(["-c", "\\o /dev/null", "-c", "\\timing on", "-c", &copy]);
        psql.env("PGHOST", self.server.socket()).env("PGPORT", self.server.port().to_string());
        psql.env("PGDATABASE", &self.database).env("PGUSER", &login.role);
        psql.env("PGPASSWORD", login.password.reveal());
        let output = psql.output().expect("psql runs");
        let told = String::from_utf8_lossy(&output.stdout);
        let milliseconds = told.lines().find_map(|line| line.strip_prefix("Time: ")?.split(' ').next());
        let milliseconds: Option<f64> = milliseconds.and_then(|it| it.parse().ok());
        milliseconds.unwrap_or_else(|| panic!("psql did not copy: {output:?}")) / 1000.0
    }

    /// Has the rows exported, from POST to `succeeded`, and removes the file.
    pub(crate) async fn export(&self, body: Value) -> Exported {
        let began = Instant::now();
        let reply = self.send("POST", "/api/ddl/exports", &body.to_string()).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        let id = reply.json()["id"].as_str().expect("an id").to_owned();
        let path = format!("/api/ddl/exports/{id}");
        loop {
            sleep(LOOK).await;
            let job = self.send("GET", &path, "").await.json();
            match job["status"].as_str() {
                Some("queued" | "running") => {}
                Some("succeeded") => {
                    let seconds = began.elapsed().as_secs_f64();
                    let number = |name: &str| job[name].as_u64().expect("a number");
                    let exported = Exported { seconds, rows: number("rows"), bytes: number("bytes") };
                    assert_eq!(job["capped"], false, "{job}");
                    let reply = self.send("DELETE", &path, "").await;
                    assert_eq!(reply.status, 204, "{reply:?}");
                    return exported;
                }
                _ => panic!("{job}"),
            }
        }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        let headers = [("X-API-Key", self.key.as_str()), ("Content-Type", "application/json")];
        self.client.send(method, &format!("{}{path}", self.data_plane.url()), &headers, body).await
    }
}

/// A data plane of its own that makes exports.
pub(crate) async fn exporting(world: &World) -> DataPlane {
    let folder: PathBuf = world.state().join("exports");
    let data_plane = world.replica_with(|command| {
        command.arg("--exports-dir").arg(folder);
    });
    data_plane.await
}

pub(crate) fn entity(format: &str) -> Value {
    json!({"entity": "items", "format": format})
}

/// Every row so many times.
pub(crate) fn times(format: &str, n: u64) -> Value {
    let query = format!("select i.* from b.items i cross join generate_series(1, {n})");
    json!({"query": query, "format": format})
}

fn manifest() -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: s}}\ndata:\n  schema.sql: |\n    create schema b; create table b.items {TABLE};\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: bench}}\nspec:\n  database: {{bootstrap: {{configMapRef: {{name: s}}}}}}\n  \
         entities:\n    - name: items\n      source: {{schema: b, object: items}}\n      events: false\n      \
         rowLevelSecurity: {{policies: [{{name: own, column: tenant, equals: {{claim: tenant}}}}]}}\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: all}}\nspec:\n  tenantRef: {{name: bench}}\n  \
         claims: {{tenant: t1}}\n  scope: {{permissions: [{{entity: items, actions: [read], fields: {{include: ['*']}}}}]}}\n"
    )
}
