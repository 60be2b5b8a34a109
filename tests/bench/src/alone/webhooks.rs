//! Goal 8: what a delivery costs beside signing and posting alone, how soon a change is at its receiver, and what many subscriptions and
//! a slow receiver do to others.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

pub(crate) mod backlog;
pub(crate) mod bare;
mod mill;
mod sink;

use std::time::{Duration, Instant};

use rowgate_tests::servers::postgres::execute;
use tokio::time::{interval, sleep};

use crate::account;
use mill::Mill;
use sink::Sink;

/// Events that wait for the single posts, and for the batches.
const SINGLE: i64 = 5_000;
const BATCHED: i64 = 50_000;
const BATCH: u32 = 50;
const ENDPOINTS: usize = 20;
/// Events for each of those.
const SHARED: i64 = 1_000;
const MANY: usize = 1_000;
/// Hosts that these are spread over: a host gets 16 requests at a time.
const HOSTS: usize = 100;
const SLOW: usize = 200;
/// For which rows are written where latency is measured.
const SECONDS: u64 = 5;

pub(crate) async fn run() {
    println!("# Webhooks, events of 2 kB\n");
    cost().await;
    latency().await;
    many().await;
    slow().await;
}

/// A line of what deliveries took.
fn line(what: &str, n: f64, (replica, postgres): (f64, f64), bare: f64) {
    let each = |seconds: f64| seconds * 1e6 / n;
    let ratio = if bare.is_nan() { "-".to_owned() } else { format!("{:.2}", each(replica) / bare) };
    println!("| {what} | {:.0} | {:.0} | {ratio} |", each(replica), each(postgres));
}

/// What waits is sent, to one receiver and to twenty.
async fn cost() {
    let mill = Mill::open().await;
    let sink = Sink::open("127.0.0.1").await;
    let bare = bare::measure(sink.address());
    println!("Signing and posting alone, 8 in flight: {bare:.0} us of CPU for each.\n");
    println!(
        "| CPU for each event | replica us | PostgreSQL us | x of signing and posting |\n|---|---|---|---|"
    );
    for (what, n, max_events) in [("a post each", SINGLE, 1), ("in batches of 50", BATCHED, BATCH)] {
        let subscription = mill.subscribe(&sink.url("/one"), max_events, true).await;
        mill.insert(n).await;
        let pid = mill.replica.pid();
        account::forget_most(pid);
        let took = mill.cpu_of(async || {
            mill.resume(&subscription).await;
            sink.got("/one", n).await;
            mill.is_delivered(&subscription).await;
        });
        line(what, n as f64, took.await, bare);
        let most = account::most_megabytes(pid);
        println!("| its memory at its highest, {n} waiting | {most:.0} MB | | |");
        mill.remove(&subscription).await;
        sink.forget();
    }
    for (what, max_events) in [
        ("20 receivers, a post each, for each delivery", 1),
        ("20 receivers, batches of 50, the same", BATCH),
    ] {
        let mut all = Vec::new();
        for i in 0..ENDPOINTS {
            let sink = Sink::open(&format!("127.0.1.{}", i + 1)).await;
            let subscription = mill.subscribe(&sink.url("/one"), max_events, true).await;
            all.push((sink, subscription));
        }
        mill.insert(SHARED).await;
        let took = mill.cpu_of(async || {
            for (_, subscription) in &all {
                mill.resume(subscription).await;
            }
            for (sink, subscription) in &all {
                sink.got("/one", SHARED).await;
                mill.is_delivered(subscription).await;
            }
        });
        line(what, SHARED as f64 * ENDPOINTS as f64, took.await, f64::NAN);
        for (_, subscription) in &all {
            mill.remove(subscription).await;
        }
    }
    println!();
}

/// From the answer to a commit to the whole request at the receiver.
async fn latency() {
    let mill = Mill::open().await;
    let sink = Sink::open("127.0.0.1").await;
    mill.subscribe(&sink.url("/one"), 100, false).await;
    println!("| From commit to receiver | p50 ms | p99 ms |\n|---|---|---|");
    let say = |what: &str, times: Vec<f64>| {
        println!("| {what} | {:.1} | {:.1} |", at(&times, 50), at(&times, 99));
    };
    let _warm = by_sql(&mill, &sink, 200, SECONDS).await;
    say("200 writes a second by SQL", by_sql(&mill, &sink, 200, SECONDS).await);
    say("1,000 writes a second by SQL", by_sql(&mill, &sink, 1_000, SECONDS).await);
    let mut foreign = mill.sql().await;
    execute(&mut foreign, "begin; insert into b.other values (1)").await;
    say("200 behind a foreign transaction that stays open", by_sql(&mill, &sink, 200, SECONDS).await);
    execute(&mut foreign, "rollback").await;
    let mut times = Vec::new();
    for _ in 0..500 {
        let id = mill.post().await;
        times.push((id, Instant::now()));
        sleep(Duration::from_millis(5)).await;
    }
    say("200 writes a second by its own replica", sink.since("/one", &times).await);
    println!();
}

/// Milliseconds from commit to receiver, sorted, of so many writes a second for so many seconds.
async fn by_sql(mill: &Mill, sink: &Sink, rate: u64, seconds: u64) -> Vec<f64> {
    let mut writer = mill.sql().await;
    execute(&mut writer, "set synchronous_commit = off").await;
    let (mut turn, mut times) = (interval(Duration::from_micros(1_000_000 / rate)), Vec::new());
    for _ in 0..rate * seconds {
        turn.tick().await;
        let id = mill::one(&mut writer).await;
        times.push((id, Instant::now()));
    }
    sink.since("/one", &times).await
}

fn at(sorted: &[f64], percent: usize) -> f64 {
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

/// A thousand subscriptions of one key, over a hundred hosts.
async fn many() {
    let mill = Mill::open().await;
    let mut sinks = Vec::new();
    for i in 0..HOSTS {
        sinks.push(Sink::open(&format!("127.0.2.{}", i + 1)).await);
    }
    let begun = Instant::now();
    for i in 0..MANY {
        mill.subscribe(&sinks[i % HOSTS].url(&format!("/{i}")), 100, false).await;
    }
    println!("| {MANY} subscriptions of one tenant | |\n|---|---|");
    println!("| to make them, each | {:.1} ms |", begun.elapsed().as_secs_f64() * 1e3 / MANY as f64);
    sleep(Duration::from_secs(5)).await;
    let seconds = 20.0;
    let (replica, postgres) = mill.cpu_of(async || sleep(Duration::from_secs_f64(seconds)).await).await;
    let share = |cpu: f64| cpu / seconds * 100.0;
    println!(
        "| CPU while nothing happens, replica and PostgreSQL | {:.1} %, {:.1} % |",
        share(replica),
        share(postgres)
    );
    let n_events = 10;
    let mut times = Vec::new();
    let mut deliver = async |n_events: usize| {
        times.clear();
        for _ in 0..n_events {
            let mut writer = mill.sql().await;
            let id = mill::one(&mut writer).await;
            let committed = (id, Instant::now());
            for i in 0..MANY {
                times.extend(sinks[i % HOSTS].since(&format!("/{i}"), &[committed]).await);
            }
        }
    };
    // for the first one after a quiet time a look comes up to a second later
    deliver(1).await;
    let took = mill.cpu_of(async || deliver(n_events).await);
    let (replica, postgres) = took.await;
    times.sort_by(f64::total_cmp);
    println!("| from commit to receiver, p50 and p99 | {:.0} ms, {:.0} ms |", at(&times, 50), at(&times, 99));
    let each = |cpu: f64| cpu * 1e6 / (n_events * MANY) as f64;
    println!(
        "| CPU for each delivery, replica and PostgreSQL | {:.0} us, {:.0} us |\n",
        each(replica),
        each(postgres)
    );
}

/// Beside two hundred subscriptions to a host that takes a second for each answer.
async fn slow() {
    let mill = Mill::open().await;
    let (sink, slow) = (Sink::open("127.0.0.1").await, Sink::slow("127.0.0.2", Duration::from_secs(1)).await);
    mill.subscribe(&sink.url("/one"), 100, false).await;
    println!("| From commit to receiver, 50 writes a second | p50 ms | p99 ms |\n|---|---|---|");
    let times = by_sql(&mill, &sink, 50, SECONDS).await;
    println!("| alone | {:.1} | {:.1} |", at(&times, 50), at(&times, 99));
    for i in 0..SLOW {
        mill.subscribe(&slow.url(&format!("/{i}")), 100, false).await;
    }
    let times = by_sql(&mill, &sink, 50, SECONDS).await;
    println!(
        "| beside {SLOW} subscriptions to a slow host | {:.1} | {:.1} |",
        at(&times, 50),
        at(&times, 99)
    );
}
