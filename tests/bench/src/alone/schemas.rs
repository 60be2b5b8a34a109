//! What the schemas of GraphQL cost: the first request after a change of the catalog beside those after it, for 50 and for 500
//! entities, and the memory of many permission sets.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::json;
use tokio::time::Instant;

use crate::rounds::median;
use crate::stage::{address, request, sent};
use crate::{account, load};

/// Changes of the catalog that are measured.
const N_SWAPS: usize = 7;
const N_WARM: usize = 200;
/// Entities of the tenant with many permission sets: each is in every second one, but the first, which is in all.
const N_OF_SETS: usize = 11;

pub(crate) async fn run(n_sets: usize) -> Result<(), Box<dyn std::error::Error>> {
    println!("# Schemas of GraphQL\n");
    println!(
        "Each entity has ten fields and a relationship to the one before it. Median of {N_SWAPS} changes of the catalog.\n"
    );
    println!(
        "| entities | first request ms | request after it ms | REST beside the first: most ms | schema MB |\n|---|---|---|---|---|"
    );
    let few = swaps(50).await?;
    let many = swaps(500).await?;
    println!(
        "\nThe first request takes {:.1}x as long with ten times the entities (the goal is 15x).\n",
        many / few
    );
    sets(n_sets).await
}

/// The time of the first request after a change, in milliseconds.
async fn swaps(n_entities: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let server = Server::with(&["max_connections=200"]).await;
    let mut world = World::on(&server, &[("wide.yaml", &(tenant(n_entities) + &key("all", 0, n_entities)))]);
    world.start().await;
    let plane = world.replica().await;
    let (at, key) = (address(plane.url()), format!("X-API-Key: {}\r\n", world.key("all")));
    let of_graphql = || timed(at, sent("POST", "/auth/wide/graphql", &key, QUERY));
    let fresh = account::megabytes(&[plane.pid()]);
    of_graphql().await?;
    let grown = account::megabytes(&[plane.pid()]) - fresh;
    let (mut first, mut warm, mut most) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..N_SWAPS {
        let (old, new) = (1000 + n, 1001 + n);
        world.edit("wide.yaml", &format!("maxPageSize: {old}"), &format!("maxPageSize: {new}"));
        let with_new = request(&format!("/auth/wide/api/t0?$first={new}"), &key);
        until("the new catalog", async || {
            let status = load::ask(at, &with_new).await.map_or(0, |(status, _)| status);
            (status == 200).then_some(())
        })
        .await;
        let is_over = Arc::new(AtomicBool::new(false));
        let beside =
            tokio::spawn(rest_until(at, request("/auth/wide/api/t0?$first=1", &key), is_over.clone()));
        first.push(of_graphql().await?);
        is_over.store(true, Ordering::Relaxed);
        most.push(beside.await??);
        let mut times = Vec::with_capacity(N_WARM);
        for _ in 0..N_WARM {
            times.push(of_graphql().await?);
        }
        warm.push(median(times));
    }
    let first = median(first);
    println!("| {n_entities} | {first:.1} | {:.2} | {:.1} | {grown:.1} |", median(warm), median(most));
    Ok(first)
}

/// The longest that a request takes, in milliseconds.
async fn rest_until(at: SocketAddr, request: Vec<u8>, is_over: Arc<AtomicBool>) -> std::io::Result<f64> {
    let mut most: f64 = 0.0;
    while !is_over.load(Ordering::Relaxed) {
        most = most.max(timed(at, request.clone()).await?);
    }
    Ok(most)
}

/// Memory of a replica once each of so many keys, no two of equal rights, has asked.
async fn sets(n_sets: usize) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::with(&["max_connections=200"]).await;
    let mut text = tenant(N_OF_SETS);
    for n in 0..n_sets {
        text += &key(&format!("set{n}"), n, N_OF_SETS);
    }
    let mut world = World::on(&server, &[("wide.yaml", &text)]);
    world.start().await;
    let plane = world.replica().await;
    let at = address(plane.url());
    let mut ask = Vec::new();
    for n in 0..n_sets {
        let key = format!("X-API-Key: {}\r\n", world.key(&format!("set{n}")));
        timed(at, request("/auth/wide/api/t0?$first=1", &key)).await?;
        ask.push(sent("POST", "/auth/wide/graphql", &key, QUERY));
    }
    let before = account::megabytes(&[plane.pid()]);
    for request in ask {
        timed(at, request).await?;
    }
    let grown = account::megabytes(&[plane.pid()]) - before;
    println!(
        "{n_sets} permission sets of 6 entities on average: {before:.0} MB before, {grown:.0} MB more for their schemas, {:.0} kB each.",
        grown * 1000.0 / n_sets as f64
    );
    Ok(())
}

const QUERY: &str = r#"{"query": "{ t0(first: 1) { items { id a } } }"}"#;

/// How long a request takes that is answered with 200, in milliseconds.
async fn timed(at: SocketAddr, request: Vec<u8>) -> std::io::Result<f64> {
    let began = Instant::now();
    let (status, body) = load::ask(at, &request).await?;
    let took: Duration = began.elapsed();
    assert!(
        status == 200 && !body.starts_with(br#"{"errors"#),
        "{status} {}",
        String::from_utf8_lossy(&body)
    );
    Ok(took.as_secs_f64() * 1000.0)
}

fn tenant(n_entities: usize) -> String {
    let (mut script, mut entities, mut relationships) = (String::new(), String::new(), String::new());
    for n in 0..n_entities {
        let _ = writeln!(
            script,
            "    create table w.t{n} (id int primary key, before int, a text, b text, c numeric, d timestamptz, e bool, f uuid, g date, h float8);"
        );
        let _ = writeln!(script, "    create index on w.t{n} (before);");
        let _ = writeln!(
            entities,
            "    - {{name: t{n}, source: {{schema: w, object: t{n}}}, rowLevelSecurity: {{none: true}}}}"
        );
        if 0 < n {
            let _ = write!(
                relationships,
                "---\napiVersion: rowgate.dev/v1alpha1\nkind: Relationship\nmetadata: {{name: r{n}}}\nspec:\n  tenantRef: {{name: wide}}\n  \
                 name: earlier\n  from: {{entity: t{n}, fields: [before]}}\n  to: {{entity: t{}, fields: [id]}}\n  cardinality: One\n  inverse: later\n",
                n - 1
            );
        }
    }
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: wide-script}}\ndata:\n  schema.sql: |\n    create schema w;\n{script}---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: wide}}\nspec:\n  limits: {{maxPageSize: 1000}}\n  \
         database: {{bootstrap: {{configMapRef: {{name: wide-script}}}}}}\n  entities:\n{entities}{relationships}"
    )
}

/// A key that reads the first entity, and of the others those that `set` does not leave out: bit by bit.
fn key(name: &str, set: usize, n_entities: usize) -> String {
    let mut text = format!(
        "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {name}}}\nspec:\n  tenantRef: {{name: wide}}\n  \
         scope:\n    permissions:\n"
    );
    let is_in = |n: usize| n == 0 || 10 < n || set >> (n - 1) & 1 == 0;
    for n in (0..n_entities).filter(|n| is_in(*n)) {
        let _ = writeln!(
            text,
            "      - {}",
            json!({"entity": format!("t{n}"), "actions": ["read", "create", "update"], "fields": {"include": ["*"]}})
        );
    }
    text
}
