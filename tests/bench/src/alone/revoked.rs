//! How soon a call of a revoked key ends that traps every request to cancel it.
#![expect(clippy::print_stdout, reason = "the table is what the program is for")]

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary};
use sqlx::{PgConnection, Row as _};
use tokio::time::sleep;

use crate::rounds::median;

/// Keys that are revoked, one after the other; every second one is unscoped.
const N: usize = 30;

const SCRIPT: &str = "create schema b;
    create function b.stubborn() returns integer language plpgsql as $$
    begin
        loop
            begin
                perform pg_catalog.pg_sleep(0.05);
            exception when query_canceled or others then null;
            end;
        end loop;
    end $$;";

pub(crate) async fn run() {
    let server = Server::own().await;
    let mut world = World::on(&server, &[("bench.yaml", &manifest())]);
    world.start().await;
    let mut superuser = server.connect("bench").await;
    let client = Client::new();
    let mut times = Vec::new();
    for i in 0..N {
        let name = format!("key{i}");
        let (url, key) = (format!("{}/auth/bench/api/stubborn", world.url()), world.key(&name));
        let client = client.clone();
        let call = tokio::spawn(async move { client.send("POST", &url, &[("X-API-Key", &key)], "").await });
        let pid = until("the call", async || running(&mut superuser).await).await;
        let status = world.status("ApiKey", &name);
        let id = status["apiKeyId"].as_str().expect("an id");
        let root = world.state().join("dataplane.root");
        let mut command = Command::new(binary());
        command.args(["revoke", id, "--control"]).arg(world.socket()).arg("--root-file").arg(root);
        let done = command.output().expect("it was built");
        assert!(done.status.success(), "{done:?}");
        times.push(end(&mut superuser, pid, id).await);
        let reply = call.await.expect("no panic");
        assert_eq!(reply.status, 401, "{reply:?}");
    }
    let most = times.iter().copied().fold(0.0, f64::max);
    println!("# A call of a revoked key, {N} one after the other\n");
    println!(
        "From `dl.keys.revoked_at` until its backend is gone from `pg_stat_activity`, by the database's clock; the goal is below \
         2 s.\n"
    );
    println!("| | |\n|---|---|\n| median | {:.2} s |\n| most | {most:.2} s |", median(times));
}

/// The backend in which the call runs.
async fn running(superuser: &mut PgConnection) -> Option<i32> {
    let sql = "select pid from pg_stat_activity
        where state = 'active' and query like '%\"stubborn\"(%' and pid <> pg_backend_pid()";
    sqlx::query_scalar(sql).fetch_optional(superuser).await.expect("a question")
}

/// Seconds from the revocation to the end of the backend.
async fn end(superuser: &mut PgConnection, pid: i32, id: &str) -> f64 {
    let sql = "select extract(epoch from clock_timestamp() - revoked_at)::float8 as took,
            exists (select from pg_stat_activity where pid = $1) as runs
        from dl.keys where id = $2";
    loop {
        let row = sqlx::query(sql).bind(pid).bind(id).fetch_one(&mut *superuser).await.expect("a row");
        let took: f64 = row.get("took");
        if !row.get::<bool, _>("runs") {
            return took;
        }
        assert!(took < 60.0, "the call runs on");
        sleep(Duration::from_millis(2)).await;
    }
}

fn manifest() -> String {
    let script: String = SCRIPT.lines().map(|line| format!("    {line}\n")).collect();
    let mut text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: s}}\ndata:\n  schema.sql: |\n{script}---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: bench}}\nspec:\n  \
         database: {{bootstrap: {{configMapRef: {{name: s}}}}}}\n  limits: {{statementTimeout: 10m}}\n  entities:\n    \
         - {{name: stubborn, kind: Procedure, source: {{schema: b, object: stubborn}}}}\n  \
         shared: {{permissions: [{{entity: stubborn, actions: [execute]}}]}}\n"
    );
    for i in 0..N {
        let scope = match i % 2 {
            0 => "",
            _ => "  scope: {permissions: [{entity: stubborn, actions: [execute]}]}\n",
        };
        write!(
            text,
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: key{i}}}\nspec:\n  \
             tenantRef: {{name: bench}}\n{scope}"
        )
        .expect("a String takes it");
    }
    text
}
