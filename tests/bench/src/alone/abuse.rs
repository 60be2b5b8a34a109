//! What one key that abuses the SQL endpoint and exports takes from another tenant: the p99 of its one-row GETs beside the abuse, and
//! beside a control that uses as much CPU outside Rowgate.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

pub(crate) mod attack;
pub(crate) mod burner;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use tokio::time::sleep;

use self::burner::{Burn, Burner};
use super::exports::depot::{self, exporting};
use super::steady;
use crate::account;
use crate::load::Requests;
use crate::rounds::median;
use crate::stage::{address, request};

/// Of each tenant's table.
const ROWS: u64 = 20_000;
/// Of a contestant in a round: about a thousand requests.
const TIME: Duration = Duration::from_secs(10);
/// From the beginning of the abuse until it counts.
const RISE: Duration = Duration::from_secs(2);
const TENANTS: [&str; 2] = ["abuser", "neighbor"];

/// What goes on beside the neighbor, in this order in a round.
const BESIDE: [&str; 3] = ["nothing else", "the abuse", "as much CPU outside Rowgate"];

struct Stage {
    server: Server,
    /// Where the control burns.
    other: Server,
    _world: World,
    data_plane: DataPlane,
    keys: [String; 2],
}

#[derive(Debug, Clone, Copy)]
struct Run {
    p50: f64,
    p99: f64,
    n_failures: u64,
    /// Cores in use by the data plane, by those that ask or burn beside it, and by PostgreSQL, with that of the control.
    cores: [f64; 3],
    /// Processes of PostgreSQL that run or wait for a core, on average.
    n_runnable: f64,
}

pub(crate) async fn run(n_rounds: usize) {
    let stage = Stage::set().await;
    println!(
        "# Abuse of SQL and exports by one key, beside one-row GETs of another tenant, {n_rounds} interleaved rounds\n"
    );
    let mut all: [Vec<Run>; 3] = Default::default();
    let mut answers = BTreeMap::new();
    // the first round warms, and tells the control what to burn
    let mut burn = Burn::default();
    for round in 0..=n_rounds {
        for step in 0..BESIDE.len() {
            let i = if round == 0 { step } else { (round + step) % BESIDE.len() };
            let run = stage.measure(i, burn, &mut answers).await;
            all[i].push(run);
            if i == 1 {
                burn = burned(&all);
            }
        }
    }
    all.iter_mut().for_each(|runs| {
        runs.remove(0);
    });
    report(&all, &answers);
}

/// What the abuse has used beyond what the neighbor uses alone, in the median.
fn burned(all: &[Vec<Run>; 3]) -> Burn {
    let of = |i: usize, value: fn(&Run) -> f64| median(all[i].iter().map(value).collect());
    let more = |value: fn(&Run) -> f64| (of(1, value) - of(0, value)).max(0.0);
    Burn {
        outside: more(|run| run.cores[0] + run.cores[1]),
        postgres: more(|run| run.cores[2]),
        n_sessions: (more(|run| run.n_runnable).round() as usize).max(1),
    }
}

impl Stage {
    async fn set() -> Stage {
        let server = Server::with(&["shared_buffers=256MB", "autovacuum=off", "max_connections=200"]).await;
        let texts = TENANTS.map(manifest);
        let files = [("abuser.yaml", &*texts[0]), ("neighbor.yaml", &*texts[1])];
        let mut world = World::on(&server, &files);
        world.start().await;
        for tenant in TENANTS {
            let mut superuser = server.connect(tenant).await;
            let insert = depot::ROWS.replace("$tenant", "t1");
            execute(&mut superuser, &format!("{insert} from generate_series(1, {ROWS}) i")).await;
            execute(&mut superuser, "vacuum (freeze, analyze) b.items").await;
        }
        let data_plane = exporting(&world).await;
        let keys = TENANTS.map(|tenant| world.key(&format!("{tenant}-key")));
        world.stop().await;
        Stage { server, other: Server::own().await, _world: world, data_plane, keys }
    }

    fn neighbor(&self) -> Requests {
        let key = format!("X-API-Key: {}\r\n", self.keys[1]);
        Arc::new(move |n| {
            let id = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ROWS + 1;
            request(&format!("/auth/neighbor/api/items/id/{id}"), &key)
        })
    }

    fn attack(&self) -> Child {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut command = Command::new(program);
        command.args(["attack", self.data_plane.url().trim_start_matches("http://"), &self.keys[0]]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().expect("it is this program")
    }

    async fn measure(&self, beside: usize, burn: Burn, answers: &mut BTreeMap<String, u64>) -> Run {
        let mut attack = (beside == 1).then(|| self.attack());
        let burner = match beside {
            2 => Some(Burner::light(&self.other, burn).await),
            _ => None,
        };
        sleep(RISE).await;
        let children = attack.iter().chain(burner.iter().map(|burner| &burner.threads));
        let children: Vec<u32> = children.map(Child::id).collect();
        let run = self.steady(&children).await;
        drop(burner);
        if let Some(attack) = &mut attack {
            drop(attack.stdin.take());
            let mut counts = String::new();
            let read = attack.stdout.take().expect("it is piped").read_to_string(&mut counts);
            read.expect("a pipe");
            attack.wait().expect("it is our child");
            let counts: BTreeMap<String, u64> = serde_json::from_str(&counts).expect("counts");
            for (what, n) in counts {
                *answers.entry(what).or_default() += n;
            }
            self.calm().await;
        }
        run
    }

    /// Ends the exports of the abuser, and waits until none of its statements runs.
    async fn calm(&self) {
        let mut control = self.server.connect("rowgate").await;
        execute(&mut control, "delete from control.exports").await;
        let mut superuser = self.server.connect("abuser").await;
        let busy = "select 1 from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
        until("the end of the abuse", async || rows(&mut superuser, busy).await.is_empty().then_some(()))
            .await;
    }

    async fn steady(&self, children: &[u32]) -> Run {
        let servers = || [account::tree(self.server.pid()), account::tree(self.other.pid())].concat();
        let used = || [&[self.data_plane.pid()], children, &servers()].map(account::cpu);
        let (before, began) = (used(), Instant::now());
        let is_over = Arc::new(AtomicBool::new(false));
        let roots = [self.server.pid(), self.other.pid()];
        let counting = tokio::spawn(runnable(roots, is_over.clone()));
        let (at, requests) = (address(self.data_plane.url()), self.neighbor());
        let asked = tokio::task::spawn_blocking(move || steady::ask(at, &requests, TIME)).await;
        let (times, n_failures) = asked.expect("no panic").expect("a connection of the neighbor broke");
        is_over.store(true, Ordering::Relaxed);
        let (after, seconds) = (used(), began.elapsed().as_secs_f64());
        let cores = [0, 1, 2].map(|i| ((after[i] - before[i]) / seconds).max(0.0));
        let at = |share: f64| times[(times.len() as f64 * share) as usize];
        Run { p50: at(0.5), p99: at(0.99), n_failures, cores, n_runnable: counting.await.expect("no panic") }
    }
}

async fn runnable(roots: [u32; 2], is_over: Arc<AtomicBool>) -> f64 {
    let (mut n_looks, mut n_runnable) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(500)).await;
        n_looks += 1;
        n_runnable += roots.map(|root| account::runnable(&account::tree(root))).iter().sum::<usize>();
    }
    n_runnable as f64 / f64::from(n_looks.max(1))
}

fn report(all: &[Vec<Run>; 3], answers: &BTreeMap<String, u64>) {
    println!(
        "| beside | p50 ms | p99 ms | data plane, cores | clients or burner | PostgreSQL | busy sessions | failures |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, runs) in BESIDE.iter().zip(all) {
        let of = |value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        let n_failures: u64 = runs.iter().map(|run| run.n_failures).sum();
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {n_failures} |",
            of(|run| run.p50),
            of(|run| run.p99),
            of(|run| run.cores[0]),
            of(|run| run.cores[1]),
            of(|run| run.cores[2]),
            of(|run| run.n_runnable),
        );
    }
    let ratio = |value: fn(&Run) -> f64| {
        let mut ratios: Vec<f64> =
            all[1].iter().zip(&all[2]).map(|(abuse, burn)| value(abuse) / value(burn)).collect();
        ratios.sort_by(f64::total_cmp);
        (median(ratios.clone()), ratios[0], ratios[ratios.len() - 1])
    };
    let (p99, low, high) = ratio(|run| run.p99);
    let (p50, ..) = ratio(|run| run.p50);
    println!(
        "\np99 beside the abuse: {p99:.2}x that beside the control, {low:.2} to {high:.2} in the rounds (goal 1.2); p50: {p50:.2}x.\n"
    );
    let answers: Vec<String> = answers.iter().map(|(what, n)| format!("{what} {n}")).collect();
    println!("What the abuser was answered: {}.", answers.join(", "));
}

fn manifest(tenant: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {tenant}-script}}\ndata:\n  schema.sql: |\n    create schema b; create table b.items {};\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {tenant}}}\nspec:\n  database: {{bootstrap: {{configMapRef: {{name: {tenant}-script}}}}}}\n  \
         limits: {{statementTimeout: 5s}}\n  entities:\n    - name: items\n      source: {{schema: b, object: items}}\n      events: false\n      \
         rowLevelSecurity: {{policies: [{{name: own, column: tenant, equals: {{claim: tenant}}}}]}}\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {tenant}-key}}\nspec:\n  tenantRef: {{name: {tenant}}}\n  \
         claims: {{tenant: t1}}\n  scope: {{permissions: [{{entity: items, actions: [read], fields: {{include: ['*']}}}}]}}\n",
        depot::TABLE
    )
}
