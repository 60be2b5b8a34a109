//! What a tenant with a backlog of a million events takes from the deliveries of another one: the time from commit to receiver beside it, and
//! beside a control that uses as much CPU outside Rowgate.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::process::{self, Child};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use tokio::net::TcpListener;

use super::mill::Mill;
use super::sink::Sink;
use super::{at, by_sql};
use crate::alone::abuse::burner::{Burn, Burner};
use crate::alone::abuse::stage::accounted;
use crate::alone::abuse::{Run, interleaved, report};

/// Of each subscription, in rows of 100 bytes.
const EVENTS: i64 = 1_000_000;
const INSERTED: i64 = 50_000;
const SUBSCRIPTIONS: usize = 4;
/// Writes of the neighbor, and for how long.
const RATE: u64 = 100;
const SECONDS: u64 = 10;
/// Seconds from the beginning of the deliveries until they count.
const RISE: u64 = 2;

struct Stage {
    loaded: Mill,
    neighbor: Mill,
    sink: Sink,
    subscriptions: Vec<String>,
    /// Batches that came of the backlog.
    n_requests: Arc<AtomicU64>,
    other: Server,
}

pub(crate) async fn run(n_rounds: usize) {
    println!(
        "# {SUBSCRIPTIONS} subscriptions of a tenant with {EVENTS} events to deliver each, beside deliveries of another tenant, {n_rounds} interleaved rounds\n"
    );
    let stage = Stage::set().await;
    let all = interleaved(n_rounds, async |beside, burn| stage.measure(beside, burn).await).await;
    report(&all);
    let n = stage.n_requests.load(Ordering::Relaxed);
    println!("Of the backlog {n} batches of up to 100 events were delivered.");
}

impl Stage {
    async fn set() -> Stage {
        let [loaded, neighbor] = Mill::several(["loaded", "neighbor"]).await;
        let sink = Sink::open("127.0.0.1").await;
        neighbor.subscribe(&sink.url("/one"), 100, false).await;
        let (mut subscriptions, n_requests) = (Vec::new(), Arc::new(AtomicU64::default()));
        for i in 0..SUBSCRIPTIONS {
            let url = unread(&format!("127.0.3.{}", i + 1), n_requests.clone()).await;
            subscriptions.push(loaded.subscribe(&url, 100, true).await);
        }
        let mut conn = loaded.sql().await;
        for _ in 0..EVENTS / INSERTED {
            let insert = sqlx::query(
                "insert into b.orders (body) select repeat('x', 100) from generate_series(1, $1)",
            );
            insert.bind(INSERTED).execute(&mut conn).await.expect("they are inserted");
        }
        for tenant in [&loaded, &neighbor] {
            // what follows a million inserts is not to be measured
            execute(&mut tenant.sql().await, "vacuum (freeze, analyze)").await;
        }
        let stage = Stage { loaded, neighbor, sink, subscriptions, n_requests, other: Server::own().await };
        until("the events", async || stage.is_waiting().await.then_some(())).await;
        stage
    }

    /// Whether each subscription of the loaded tenant has something to deliver.
    async fn is_waiting(&self) -> bool {
        let listed = self.loaded.subscriptions().await;
        let all = listed["subscriptions"].as_array().expect("a list");
        all.iter().all(|it| it["lagEvents"].as_i64().is_some_and(|lag| 0 < lag))
    }

    async fn suspend(&self, suspend: bool) {
        for subscription in &self.subscriptions {
            self.loaded.suspend(subscription, suspend).await;
        }
        if suspend {
            let mut conn = self.loaded.sql().await;
            let held = "select 1 from dl.subscriptions where lease is not null";
            until("the last delivery", async || rows(&mut conn, held).await.is_empty().then_some(())).await;
        }
    }

    async fn measure(&self, beside: usize, burn: Burn) -> Run {
        execute(&mut self.loaded.sql().await, "checkpoint").await;
        if beside == 1 {
            for subscription in &self.subscriptions {
                self.loaded.replay(subscription).await;
            }
            self.suspend(false).await;
        }
        let burner = match beside {
            2 => Some(Burner::light(&self.other, burn).await),
            _ => None,
        };
        // the first write after a quiet time is seen later, which is not to be measured here
        let _rise = by_sql(&self.neighbor, &self.sink, RATE, RISE).await;
        let servers = [self.loaded.server.pid(), self.other.pid()];
        let children: Vec<u32> =
            burner.iter().map(|it| Child::id(&it.threads)).chain([process::id()]).collect();
        let (times, cores, n_runnable) =
            accounted(self.loaded.replica.pid(), &children, servers, async || {
                by_sql(&self.neighbor, &self.sink, RATE, SECONDS).await
            })
            .await;
        drop(burner);
        if beside == 1 {
            assert!(self.is_waiting().await, "the backlog has to last");
            self.suspend(true).await;
        }
        self.sink.forget();
        Run { p50: at(&times, 50), p99: at(&times, 99), n_failures: 0, cores, n_runnable }
    }
}

/// The address of a receiver that takes everything and reads nothing of it.
async fn unread(host: &str, n_requests: Arc<AtomicU64>) -> String {
    let listener = TcpListener::bind((host, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let app = Router::new().fallback(async move |_body: axum::body::Bytes| {
        n_requests.fetch_add(1, Ordering::Relaxed);
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/")
}
