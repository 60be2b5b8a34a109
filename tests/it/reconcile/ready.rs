//! `Ready` needs a data plane that serves what the database holds; `scenarios/serving.rs` has several of them.

use std::fs;

use nix::sys::signal::Signal;
use rowgate_pg::connect::login::Endpoint;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::servers::reconciler::{DONE, Reconciler};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use rowgate_tests::world::status::ready;

const TENANT: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: shop}
spec:
  database: {bootstrap: {configMapRef: {name: start, key: schema.sql}}}
  shared: {claims: {look: first}, permissions: [{entity: orders, actions: [read]}]}
  entities:
    - {name: orders, source: {schema: public, object: orders}, rowLevelSecurity: {none: true}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: start}
data: {schema.sql: create table public.orders (id bigint primary key)}
";

async fn data_plane(reconciler: &Reconciler) -> DataPlane {
    let root = reconciler.state().join("dataplane.root");
    fs::write(&root, reconciler.installation.roots().dataplane.reveal_hex()).expect("the folder is ours");
    let Endpoint::Unix { directory, .. } = reconciler.server.endpoint() else { panic!("tests use a socket") };
    DataPlane::start(directory, &root).await
}

/// Waits for a reason of `Ready`, and gives the message and how many replicas the status counts.
async fn told(reconciler: &Reconciler, reason: &str) -> (String, i64) {
    let status = until(&format!("Ready with reason {reason}"), async || {
        let status = reconciler.file("tenant", "shop")?["status"].clone();
        (ready(&status).0 == reason).then_some(status)
    })
    .await;
    (ready(&status).1.to_owned(), status["replicas"].as_i64().expect("a number"))
}

#[tokio::test]
async fn nothing_is_ready_without_a_data_plane() {
    let reconciler = Reconciler::new(&[("shop.yaml", TENANT)]).await;
    let (message, replicas) = told(&reconciler, DONE).await;
    assert!(message.contains("start one") && replicas == 0, "{message}");
    let first = data_plane(&reconciler).await;
    assert_eq!(told(&reconciler, "Served").await, ("served by 1 live replica".to_owned(), 1));
    assert!(first.end(Signal::SIGTERM).await.success());
    told(&reconciler, DONE).await;
}

const EMPTY: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: NAME}
spec: {cors: {origins: ['*']}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: NAME-key}
spec: {tenantRef: {name: NAME}}
";

/// What standalone has said that somebody has to mend.
fn stalled(world: &World) -> Vec<String> {
    world.log().lines().filter(|line| line.contains(": stalled: ")).map(str::to_owned).collect()
}

/// Passes run side by side, and grant rights on the one control database.
///
/// Seen to fail with transactions of the operator's login that do not wait for each other: a Tenant was told that somebody
/// has to help (`tuple concurrently updated`), and standalone greeted before it was served.
#[tokio::test]
async fn tenants_that_are_made_at_once_are_all_served_when_standalone_greets() {
    let names: Vec<String> = (0..8).map(|n| format!("tenant-{n}")).collect();
    let text: String = names.iter().map(|name| format!("{}---\n", EMPTY.replace("NAME", name))).collect();
    let mut world = World::new(&[("all.yaml", &text)]).await.compared_every(1);
    world.start().await;
    for name in &names {
        let url = format!("{}/auth/{name}/api", world.url());
        let asked = reqwest::Client::new().request(reqwest::Method::OPTIONS, url);
        let asked =
            asked.header("Origin", "https://a.example").header("Access-Control-Request-Method", "GET");
        assert_eq!(asked.send().await.expect("it listens").status(), 204, "{name}: {}", world.log());
    }
    assert_eq!(stalled(&world), Vec::<String>::new());
}

/// Seen to fail with `tuple concurrently updated` taken for a statement that PostgreSQL refuses.
#[tokio::test]
async fn whoever_works_on_the_same_at_that_moment_is_waited_for_and_nobody_is_called() {
    let mut world = World::new(&[("first.yaml", &EMPTY.replace("NAME", "first"))]).await.compared_every(1);
    world.start().await;
    let mut conn = world.superuser("postgres").await;
    execute(&mut conn, "begin; alter database rowgate connection limit -1").await;
    world.write("second.yaml", &EMPTY.replace("NAME", "second"));
    let mut other = world.superuser("postgres").await;
    until("the operator behind the change", async || {
        let text =
            "select exists (select from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0)";
        let blocked = sqlx::query_scalar::<_, bool>(text).fetch_one(&mut other).await.expect("it answers");
        blocked.then_some(())
    })
    .await;
    execute(&mut conn, "commit").await;
    until("the second tenant", async || {
        (ready(&world.status("Tenant", "second")).0 == "Served").then_some(())
    })
    .await;
    assert_eq!(stalled(&world), Vec::<String>::new());
}
