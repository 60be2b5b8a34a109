//! What many idle tenants on several servers cost: sessions, memory and CPU, under one operator and two data planes.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::sync::Arc;
use std::time::Duration;

use rowgate_tests::servers::cluster::{Cluster, Namespace};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::operator::{ACCOUNT, Operator};
use rowgate_tests::servers::postgres::{Server, execute, rows};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::reconcile::{Served, make};
use super::steady;
use crate::account;
use crate::load::Requests;

/// Servers, with that of the control database.
const N_SERVERS: usize = 5;
/// The default.
const LOOK_SECONDS: u64 = 25;
/// How often a server is killed.
const ROUNDS: usize = 5;
/// How long requests are made in each state of it.
const ASKED: Duration = Duration::from_secs(10);
/// What is measured at a time: every tenant is looked at twice.
const MEASURED: Duration = Duration::from_secs(2 * LOOK_SECONDS);

const SCRIPT: &str = "create table items (id integer primary key, region text not null, name text not null);";

struct Scene<'a> {
    namespace: Namespace<'a>,
    operator: Operator,
    planes: Vec<DataPlane>,
    servers: Vec<Server>,
    n_tenants: usize,
}

/// The times of all requests, sorted, and how many were not answered with 200.
struct Asked {
    milliseconds: Vec<f64>,
    n_failures: u64,
}

impl Asked {
    fn n_answers(&self) -> u64 {
        self.milliseconds.len() as u64 - self.n_failures
    }

    fn at(&self, share: f64) -> f64 {
        self.milliseconds[((self.milliseconds.len() - 1) as f64 * share) as usize]
    }
}

/// CPU seconds so far.
struct Spent {
    operator: f64,
    planes: f64,
    servers: f64,
    passes: f64,
}

pub(crate) async fn run(n_tenants: usize) {
    let cluster = Cluster::own().await;
    let namespace = cluster.namespace().await;
    let home = Server::with(&["shared_buffers=128MB", "max_connections=200"]).await;
    let mut servers = vec![home];
    for n in 1..N_SERVERS {
        let (server, url) = Server::of_its_own_cluster().await;
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("server-{n}") }, "stringData": { "url": url } });
        make(&namespace, vec![("secrets", secret)]).await;
        servers.push(server);
    }
    let kubeconfig = namespace.kubeconfig_for(ACCOUNT).await;
    namespace.apply(&rowgate_tests::servers::operator::rights(namespace.name())).await.ok();
    let operator = Operator::start_with(
        &kubeconfig,
        namespace.name(),
        &servers[0].url(),
        "bench",
        &["--server-namespaces=*", "--resync-seconds", &LOOK_SECONDS.to_string()],
    );
    operator.leads().await;
    let planes = vec![
        operator.data_plane(&namespace, &servers[0]).await,
        operator.data_plane(&namespace, &servers[0]).await,
    ];
    let mut scene = Scene { namespace, operator, planes, servers, n_tenants };

    let script = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "s" }, "data": { "schema.sql": SCRIPT } });
    make(&scene.namespace, vec![("configmaps", script)]).await;
    let mut keys = Served::watch(&scene.namespace).await;
    let began = Instant::now();
    make(&scene.namespace, (0..n_tenants).map(|n| ("tenants", tenant(n))).collect()).await;
    make(&scene.namespace, (0..n_tenants).map(|n| ("apikeys", key(n))).collect()).await;
    for n in 0..n_tenants {
        keys.when(&format!("key-{n}")).await;
    }
    let served = began.elapsed().as_secs_f64();
    // every tenant has been looked at since it was served, and its counters have come to rest
    scene.rests().await;
    let idle = scene.spends(false).await;
    let awake = scene.spends(true).await;
    scene.print(served, &idle, &awake).await;
    scene.killed().await;
}

impl Scene<'_> {
    async fn passes(&self) -> f64 {
        self.operator.metric("rowgate_operator_pass_duration_seconds_count").await.unwrap_or_default()
    }

    /// Returns when hardly a pass is made any more.
    async fn rests(&self) {
        let deadline = Instant::now() + Duration::from_secs(600);
        loop {
            let before = self.passes().await;
            sleep(Duration::from_secs(LOOK_SECONDS)).await;
            let n = self.passes().await - before;
            println!("{n} passes in {LOOK_SECONDS} s");
            if n < self.n_tenants as f64 / 20.0 || deadline < Instant::now() {
                return;
            }
        }
    }

    async fn spent(&self) -> Spent {
        let servers = self.servers.iter().map(|server| account::cpu(&account::tree(server.pid()))).sum();
        let planes: Vec<u32> = self.planes.iter().map(DataPlane::pid).collect();
        let (operator, planes) = (account::cpu(&[self.operator.pid()]), account::cpu(&planes));
        Spent { operator, planes, servers, passes: self.passes().await }
    }

    /// What a time of [`MEASURED`] costs. `changes`: a role comes and goes on each server meanwhile, so that every look compares everything, as all
    /// looks did before.
    async fn spends(&self, changes: bool) -> Spent {
        let change = async {
            loop {
                if changes {
                    for server in &self.servers {
                        let mut conn = server.connect("postgres").await;
                        execute(&mut conn, "create role bench_change; drop role bench_change").await;
                    }
                }
                sleep(Duration::from_secs(3)).await;
            }
        };
        let measured = async {
            if changes {
                sleep(Duration::from_secs(LOOK_SECONDS)).await;
            }
            let before = self.spent().await;
            sleep(MEASURED).await;
            let after = self.spent().await;
            Spent {
                operator: after.operator - before.operator,
                planes: after.planes - before.planes,
                servers: after.servers - before.servers,
                passes: after.passes - before.passes,
            }
        };
        tokio::select! { () = change => unreachable!("it goes on"), spent = measured => spent }
    }

    /// The requests of a tenant of one server, while another server answers and while it is killed. Both tenants are asked by way of one data
    /// plane, a hundred times a second each, whatever is answered.
    async fn killed(&mut self) {
        println!("\n| Requests of a tenant on another server | | p50 | p99 |\n|---|---|---|---|");
        for _ in 0..ROUNDS {
            self.asked("its neighbour answers").await;
            self.servers[1].kill().await;
            self.asked("its neighbour is killed").await;
            self.servers[1].start_again().await;
            let deadline = Instant::now() + Duration::from_secs(60);
            while self.ask("tenant-1", Duration::from_millis(200)).await.n_answers() == 0 {
                assert!(Instant::now() < deadline, "a server that was started again is not used");
            }
        }
    }

    async fn asked(&self, what: &str) {
        let (here, there) = tokio::join!(self.ask("tenant-0", ASKED), self.ask("tenant-1", ASKED));
        println!(
            "| {} answers, {} failures; the neighbour {} and {} | {what} | {:.2} ms | {:.2} ms |",
            here.n_answers(),
            here.n_failures,
            there.n_answers(),
            there.n_failures,
            here.at(0.5),
            here.at(0.99)
        );
    }

    async fn ask(&self, tenant: &str, time: Duration) -> Asked {
        let name = tenant.replace("tenant", "key");
        let key = self.namespace.secret(&name).await.expect("it is served")["apiKey"].clone();
        let address = self.planes[0].url().trim_start_matches("http://").parse().expect("an address");
        let text =
            format!("GET /auth/{tenant}/api/items HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\n\r\n");
        let requests: Requests = Arc::new(move |_| text.clone().into_bytes());
        let run = move || steady::ask(address, &requests, time);
        let asked = tokio::task::spawn_blocking(run).await.expect("it does not panic");
        let (milliseconds, n_failures) = asked.expect("the data plane listens");
        Asked { milliseconds, n_failures }
    }

    async fn print(&self, served: f64, idle: &Spent, awake: &Spent) {
        let n = self.n_tenants as f64;
        let n_looks = n * MEASURED.as_secs_f64() / LOOK_SECONDS as f64;
        println!("# {} idle tenants on {N_SERVERS} servers, one operator, two data planes\n", self.n_tenants);
        println!(
            "All served after {served:.0} s.\n\n| | nothing changes | a role changes on each server |\n|---|---|---|"
        );
        let row = |name: &str, value: fn(&Spent) -> f64| {
            let per_look = |spent: &Spent| value(spent) / n_looks * 1000.0;
            println!(
                "| CPU of {name} per tenant and look | {:.2} ms | {:.2} ms |",
                per_look(idle),
                per_look(awake)
            );
        };
        row("the operator", |spent| spent.operator);
        row("PostgreSQL", |spent| spent.servers);
        row("both data planes", |spent| spent.planes);
        println!("| passes | {:.0} | {:.0} |", idle.passes, awake.passes);
        println!("\n| | |\n|---|---|");
        println!("| operator's memory | {:.0} MB |", account::megabytes(&[self.operator.pid()]));
        for plane in &self.planes {
            println!("| a data plane's memory | {:.0} MB |", account::megabytes(&[plane.pid()]));
        }
        for resource in ["tenants", "apikeys", "secrets"] {
            let list = self.namespace.cluster().get(&self.namespace.path(resource)).await.unwrap_or_default();
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let bytes: usize = items.iter().map(|item| item.to_string().len()).sum();
            println!("| {resource} at the API server, each | {} bytes of JSON |", bytes / items.len().max(1));
        }
        let disk = "select (avg(pg_database_size(oid)) / 1000000)::float8 as mb from pg_database where datname ~ '^t_'";
        let disk = rows(&mut self.servers[0].connect("postgres").await, disk).await;
        println!("| a tenant's database on disk | {:.1} MB |", disk[0]["mb"].as_f64().unwrap_or_default());
        for server in &self.servers {
            let text = "select count(*) as n from pg_stat_activity where backend_type = 'client backend'";
            let n =
                rows(&mut server.connect("postgres").await, text).await[0]["n"].as_i64().unwrap_or_default()
                    - 1;
            let memory = account::megabytes(&account::tree(server.pid()));
            println!("| a server's sessions, memory | {n}, {memory:.0} MB |");
        }
    }
}

fn tenant(n: usize) -> Value {
    let policy = json!({ "name": "own", "column": "region", "equals": { "claim": "region" } });
    let mut database = json!({ "bootstrap": { "configMapRef": { "name": "s" } } });
    if !n.is_multiple_of(N_SERVERS) {
        database["serverSecretRef"] = json!({ "name": format!("server-{}", n % N_SERVERS) });
    }
    json!({
        "apiVersion": "rowgate.dev/v1alpha1", "kind": "Tenant", "metadata": { "name": format!("tenant-{n}") },
        "spec": {
            "database": database,
            "entities": [{
                "name": "items", "source": { "object": "items" }, "keyFields": ["id"],
                "rowLevelSecurity": { "policies": [policy] },
            }],
        },
    })
}

fn key(n: usize) -> Value {
    json!({
        "apiVersion": "rowgate.dev/v1alpha1", "kind": "ApiKey", "metadata": { "name": format!("key-{n}") },
        "spec": {
            "tenantRef": { "name": format!("tenant-{n}") },
            "claims": { "region": "north" },
            "scope": { "permissions": [{ "entity": "items", "actions": ["read"], "fields": { "include": ["*"] } }] },
        },
    })
}
