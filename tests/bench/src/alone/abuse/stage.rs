//! Two tenants on one server, of which one is abused, or abuses, while the other's key reads one row at a time; and the control beside.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, status};
use serde_json::Value;
use tokio::time::sleep;

use super::burner::{Burn, Burner};
use super::{Abuser, Run, manifest, owner};
use crate::account;
use crate::alone::exports::depot::{self, exporting};
use crate::alone::steady;
use crate::load::Requests;
use crate::stage::{address, request};

/// Of each tenant's table.
const ROWS: u64 = 20_000;
/// Of a contestant in a round: about a thousand requests.
const TIME: Duration = Duration::from_secs(10);
/// From the beginning of the abuse until it counts.
const RISE: Duration = Duration::from_secs(2);
const TENANTS: [&str; 2] = ["abuser", "neighbor"];
/// As in an installation, where it is a part of 25 to 30 seconds.
const RESYNC_SECONDS: u32 = 25;

pub(super) struct Stage {
    by: Abuser,
    server: Server,
    /// Where the control burns.
    other: Server,
    world: World,
    /// What serves: one that only serves, or else the standalone that reconciles as well.
    data_plane: Option<DataPlane>,
    keys: [String; 2],
}

impl Stage {
    pub(super) async fn set(by: Abuser) -> Stage {
        let settings = ["shared_buffers=256MB", "autovacuum=off", "max_connections=200"];
        let (server, url) = Server::with_two_ways(&settings).await;
        let texts = [manifest::of("abuser", by), manifest::of("neighbor", Abuser::Key)];
        let files = [("abuser.yaml", &*texts[0]), ("neighbor.yaml", &*texts[1])];
        let mut world = World::on(&server, &files).over(&server, url);
        world.resync_seconds = RESYNC_SECONDS;
        world.start().await;
        for tenant in TENANTS {
            let mut superuser = server.connect(tenant).await;
            let insert = depot::ROWS.replace("$tenant", "t1");
            execute(&mut superuser, &format!("{insert} from generate_series(1, {ROWS}) i")).await;
            execute(&mut superuser, "vacuum (freeze, analyze) b.items").await;
        }
        let keys = TENANTS.map(|tenant| world.key(&format!("{tenant}-key")));
        let data_plane = match by {
            Abuser::Key => {
                let data_plane = exporting(&world).await;
                world.stop().await;
                Some(data_plane)
            }
            Abuser::Owner => None,
        };
        Stage { by, server, other: Server::own().await, world, data_plane, keys }
    }

    fn url(&self) -> String {
        self.data_plane.as_ref().map_or_else(|| self.world.url(), |it| it.url().to_owned())
    }

    fn pid(&self) -> u32 {
        self.data_plane.as_ref().map_or_else(|| self.world.pid(), DataPlane::pid)
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
        let url = self.url();
        let of_key = [url.trim_start_matches("http://"), &self.keys[0]];
        match self.by {
            Abuser::Key => command.arg("attack").args(of_key),
            Abuser::Owner => command.arg("own").args(of_key).env(owner::LOGIN, self.migrations()),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().expect("it is this program")
    }

    /// The address in the Secret of the abuser's migrations.
    fn migrations(&self) -> String {
        let path = self.world.state().join("secrets/default/abuser-migrations.yaml");
        let secret: Value =
            serde_yaml::from_str(&fs::read_to_string(path).expect("the Secret")).expect("YAML");
        secret["stringData"]["url"].as_str().expect("an address").to_owned()
    }

    pub(super) async fn measure(
        &self,
        beside: usize,
        burn: Burn,
        answers: &mut BTreeMap<String, u64>,
    ) -> Run {
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

    /// Ends what the abuser left, and waits until none of its statements runs and its Tenant is as declared.
    async fn calm(&self) {
        let mut control = self.server.connect("rowgate").await;
        execute(&mut control, "delete from control.exports").await;
        let mut superuser = self.server.connect("abuser").await;
        if self.by == Abuser::Owner {
            execute(&mut superuser, owner::END).await;
        }
        let busy = "select 1 from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
        until("the end of the abuse", async || rows(&mut superuser, busy).await.is_empty().then_some(()))
            .await;
        if self.by == Abuser::Owner {
            status::says(&self.world, "Tenant", "abuser", "Served").await;
        }
        // what was written costs the runs behind it nothing
        execute(&mut superuser, "checkpoint").await;
    }

    async fn steady(&self, children: &[u32]) -> Run {
        let (at, requests) = (address(&self.url()), self.neighbor());
        let servers = [self.server.pid(), self.other.pid()];
        let (asked, cores, n_runnable) = accounted(self.pid(), children, servers, async || {
            tokio::task::spawn_blocking(move || steady::ask(at, &requests, TIME)).await
        })
        .await;
        let (times, n_failures) = asked.expect("no panic").expect("a connection of the neighbor broke");
        let at = |share: f64| times[(times.len() as f64 * share) as usize];
        Run { p50: at(0.5), p99: at(0.99), n_failures, cores, n_runnable }
    }
}

/// What `work` gives; and meanwhile the cores in use by the data plane, by `children` and by both servers of PostgreSQL, and how many of
/// their processes were runnable.
pub(crate) async fn accounted<T>(
    data_plane: u32,
    children: &[u32],
    servers: [u32; 2],
    work: impl AsyncFnOnce() -> T,
) -> (T, [f64; 3], f64) {
    let used = || [&[data_plane][..], children, &servers.map(account::tree).concat()].map(account::cpu);
    let (before, began) = (used(), Instant::now());
    let is_over = Arc::new(AtomicBool::new(false));
    let counting = tokio::spawn(runnable(servers, is_over.clone()));
    let done = work().await;
    is_over.store(true, Ordering::Relaxed);
    let (after, seconds) = (used(), began.elapsed().as_secs_f64());
    let cores = [0, 1, 2].map(|i| ((after[i] - before[i]) / seconds).max(0.0));
    (done, cores, counting.await.expect("no panic"))
}

/// How many processes of PostgreSQL below these run or wait for a core, on average, until it is over.
async fn runnable(roots: [u32; 2], is_over: Arc<AtomicBool>) -> f64 {
    let (mut n_looks, mut n_runnable) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(500)).await;
        n_looks += 1;
        n_runnable += roots.map(|root| account::runnable(&account::tree(root))).iter().sum::<usize>();
    }
    n_runnable as f64 / f64::from(n_looks.max(1))
}
