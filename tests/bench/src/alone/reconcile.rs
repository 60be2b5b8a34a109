//! How long a new ApiKey takes from its request to `Ready`, while many others are there: goal 10 of the design.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use rowgate_tests::servers::cluster::{Cluster, Method, Namespace, Recording};
use rowgate_tests::servers::operator::{ACCOUNT, Operator};
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::world::status::ready;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::account;

/// Tenants; the other objects are their keys.
const N_TENANTS: usize = 20;
/// How many keys are made and timed, one after the other.
const N_TIMED: usize = 200;
/// Requests that are under way at once while the objects are made.
const AT_ONCE: usize = 16;

const SCRIPT: &str = "create table items (id integer primary key, region text not null, name text not null);";

pub(crate) async fn run(n_objects: usize) {
    let cluster = Cluster::own().await;
    let namespace = cluster.namespace().await;
    let server = Server::with(&["shared_buffers=256MB", "max_connections=200"]).await;
    // the rights of the chart, and the looks of the default
    let kubeconfig = namespace.kubeconfig_for(ACCOUNT).await;
    namespace.apply(&rowgate_tests::servers::operator::rights(namespace.name())).await.ok();
    let flags = ["--resync-seconds", "30"];
    let operator = Operator::start_with(&kubeconfig, namespace.name(), &server.url(), "bench", &flags);
    operator.leads().await;
    let _data_plane = operator.data_plane(&namespace, &server).await;

    let script = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "s" }, "data": { "schema.sql": SCRIPT } });
    make(&namespace, vec![("configmaps", script)]).await;
    let mut served = Served::watch(&namespace).await;
    let began = Instant::now();
    make(&namespace, (0..N_TENANTS).map(|n| ("tenants", tenant(n))).collect()).await;
    let names: Vec<String> = (N_TENANTS..n_objects).map(|n| format!("key-{n}")).collect();
    make(&namespace, names.iter().enumerate().map(|(n, name)| ("apikeys", key(name, n))).collect()).await;
    let created = began.elapsed();
    for name in &names {
        served.when(name).await;
    }
    let all = began.elapsed();

    let mut times = Vec::new();
    let spent = account::cpu(&[operator.pid()]);
    for n in 0..N_TIMED {
        let name = format!("new-{n}");
        let asked = Timestamp::now();
        make(&namespace, vec![("apikeys", key(&name, n))]).await;
        let at = served.when(&name).await;
        times.push(at.duration_since(asked).as_secs_f64() * 1000.0);
    }
    let per_key = (account::cpu(&[operator.pid()]) - spent) / N_TIMED as f64 * 1000.0;
    let mark = cluster.audit_mark();
    let spent = account::cpu(&[operator.pid()]);
    sleep(Duration::from_secs(60)).await;
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", namespace.name());
    let requests = cluster.requests_since(&mark, &user);
    let idle = account::cpu(&[operator.pid()]) - spent;

    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!("# A new ApiKey, {n_objects} objects present in {N_TENANTS} Tenants\n");
    println!(
        "From the request that makes it to a watch that shows `Ready`, {N_TIMED} one after the other.\n"
    );
    println!("| | |\n|---|---|");
    println!(
        "| p50 | {:.0} ms |\n| p90 | {:.0} ms |\n| p99 | {:.0} ms |\n| most | {:.0} ms |",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    println!("| all {n_objects} objects made | {:.1} s |", created.as_secs_f64());
    println!("| all {n_objects} objects ready | {:.1} s |", all.as_secs_f64());
    println!("| operator's CPU for each of the {N_TIMED} | {per_key:.1} ms |");
    println!("| operator's CPU in an idle minute | {idle:.2} s |");
    println!("| operator's memory | {:.0} MB |", account::megabytes(&[operator.pid()]));
    println!(
        "| its requests to the API server in an idle minute | {} {requests:?} |",
        requests.values().sum::<usize>()
    );
}

pub(super) async fn make(namespace: &Namespace<'_>, objects: Vec<(&str, Value)>) {
    let mut objects = objects.into_iter();
    loop {
        let some: Vec<_> = objects.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            return;
        }
        let paths: Vec<String> = some.iter().map(|(resource, _)| namespace.path(resource)).collect();
        let cluster = namespace.cluster();
        let sent =
            some.iter().zip(&paths).map(|((_, object), path)| cluster.send(Method::POST, path, object));
        for (status, answer) in futures_util::future::join_all(sent).await {
            assert!(status.is_success(), "{status} {answer}");
        }
    }
}

/// When a watch has first shown of each key that it is served.
pub(super) struct Served {
    recording: Recording,
    seen: usize,
    at: HashMap<String, Timestamp>,
}

impl Served {
    /// Of the ApiKeys of this namespace, from now on.
    pub(super) async fn watch(namespace: &Namespace<'_>) -> Served {
        Served { recording: namespace.record("apikeys").await, seen: 0, at: HashMap::new() }
    }

    /// When this one was; waits for it.
    pub(super) async fn when(&mut self, name: &str) -> Timestamp {
        let deadline = Instant::now() + Duration::from_secs(600);
        loop {
            let at = &mut self.at;
            self.seen = self.recording.each_from(self.seen, |state| {
                if ready(&state.object["status"]).0 == "Served" {
                    let name = state.object["metadata"]["name"].as_str().unwrap_or_default();
                    at.entry(name.to_owned()).or_insert(state.time);
                }
            });
            if let Some(at) = self.at.get(name) {
                return *at;
            }
            assert!(Instant::now() < deadline, "{name} is not served");
            sleep(Duration::from_millis(2)).await;
        }
    }
}

fn tenant(n: usize) -> Value {
    let policy = json!({ "name": "own", "column": "region", "equals": { "claim": "region" } });
    json!({
        "apiVersion": "rowgate.dev/v1alpha1", "kind": "Tenant", "metadata": { "name": format!("tenant-{n}") },
        "spec": {
            "database": { "bootstrap": { "configMapRef": { "name": "s" } } },
            "entities": [{
                "name": "items", "source": { "object": "items" }, "keyFields": ["id"],
                "rowLevelSecurity": { "policies": [policy] },
            }],
        },
    })
}

/// A key with a role, grants and a claim of its own.
fn key(name: &str, n: usize) -> Value {
    json!({
        "apiVersion": "rowgate.dev/v1alpha1", "kind": "ApiKey", "metadata": { "name": name },
        "spec": {
            "tenantRef": { "name": format!("tenant-{}", n % N_TENANTS) },
            "claims": { "region": format!("r{n}") },
            "scope": { "permissions": [{ "entity": "items", "actions": ["read"], "fields": { "include": ["*"] } }] },
        },
    })
}
