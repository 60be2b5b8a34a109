//! Rounds: everybody runs for a moment, one after the other, again and again in rotated order, so that what else the
//! machine does hits all alike. What counts is the median over rounds of the ratio within a round.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::account;
use crate::load::{self, Requests};
use crate::peer;
use crate::stage::Stage;
use crate::storm::Storm;

/// Foreign load from which on a round tells little, in cores.
const NOISY: f64 = 0.4;

pub(crate) struct Contestant {
    pub(crate) name: String,
    pub(crate) work: Work,
}

pub(crate) enum Work {
    PgBench {
        n_clients: usize,
    },
    Http {
        address: SocketAddr,
        pid: u32,
        requests: Requests,
        n_connections: usize,
    },
    /// As `Http`, while requests of another tenant wait.
    Stormed(Box<Work>),
    /// As `Http`, while PostgreSQL answers a commit only once the disk has it.
    Durable(Box<Work>),
}

/// One contestant in one round.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    /// Of pgbench the mean.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// CPU of the server and of PostgreSQL, microseconds per request.
    pub(crate) server_us: f64,
    pub(crate) postgres_us: f64,
    /// What processes that are none of ours used meanwhile, in cores.
    pub(crate) foreign: f64,
    pub(crate) n_failures: u64,
}

/// By contestant and round.
pub(crate) fn run(
    stage: &Stage,
    contestants: &[Contestant],
    n_rounds: usize,
    time: Duration,
) -> Vec<Vec<Measured>> {
    let mut all = vec![Vec::new(); contestants.len()];
    for round in 0..n_rounds {
        for step in 0..contestants.len() {
            let i = (round + step) % contestants.len();
            progress(&format!("round {} of {n_rounds}: {}", round + 1, contestants[i].name));
            all[i].push(measure(stage, &contestants[i].work, time));
        }
    }
    progress("");
    all
}

/// Rounds in which nobody else was at work, or all where there are too few of them.
pub(crate) fn quiet(all: &[Vec<Measured>]) -> Vec<usize> {
    let n_rounds = all.first().map_or(0, Vec::len);
    let quiet: Vec<usize> =
        (0..n_rounds).filter(|round| all.iter().all(|it| it[*round].foreign < NOISY)).collect();
    if quiet.len() < 3 { (0..n_rounds).collect() } else { quiet }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn measure(stage: &Stage, work: &Work, time: Duration) -> Measured {
    if let Work::Stormed(work) = work {
        let rising = Storm::rise(&stage.server, stage.address(), &stage.storm_key);
        let storm = Handle::current().block_on(rising);
        let _storm = storm.unwrap_or_else(|error| panic!("no storm: {error}"));
        return measure(stage, work, time);
    }
    if let Work::Durable(work) = work {
        // The first moment of new sessions does not count.
        let keep = |on| {
            Handle::current().block_on(stage.keep_commits(on));
            measure(stage, work, Duration::from_millis(500));
        };
        keep(true);
        let measured = measure(stage, work, time);
        keep(false);
        return measured;
    }
    let postgres = account::tree(stage.server.pid());
    let own = std::process::id();
    let server: Vec<u32> = match work {
        Work::Http { pid, .. } => vec![*pid],
        Work::PgBench { .. } | Work::Stormed(_) | Work::Durable(_) => Vec::new(),
    };
    let before = (account::machine(), account::cpu(&[own]), account::cpu(&server), account::cpu(&postgres));
    let began = std::time::Instant::now();
    let mut measured = match work {
        Work::PgBench { n_clients } => {
            let said = peer::measure(&stage.server, *n_clients, time);
            Measured {
                per_second: said.per_second,
                p50_ms: said.latency_ms,
                p99_ms: f64::NAN,
                ..Measured::default()
            }
        }
        Work::Stormed(_) | Work::Durable(_) => unreachable!("measured above"),
        Work::Http { address, requests, n_connections, .. } => {
            let outcome = load::run(*address, requests, *n_connections, time)
                .unwrap_or_else(|error| panic!("a connection broke under load: {error}"));
            let at = |share: f64| {
                let i = (outcome.latencies.len() as f64 * share) as usize;
                outcome.latencies.get(i).map_or(f64::NAN, |us| f64::from(*us) / 1000.0)
            };
            Measured {
                per_second: outcome.n_answers as f64 / outcome.seconds,
                p50_ms: at(0.5),
                p99_ms: at(0.99),
                n_failures: outcome.n_failures,
                ..Measured::default()
            }
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    // Connections that were opened meanwhile have processes of their own now.
    let postgres = account::tree(stage.server.pid());
    let spent = (
        account::machine() - before.0,
        account::cpu(&[own]) - before.1,
        account::cpu(&server) - before.2,
        (account::cpu(&postgres) - before.3).max(0.0),
    );
    let n_requests = (measured.per_second * seconds).max(1.0);
    measured.server_us = if server.is_empty() { f64::NAN } else { spent.2 * 1e6 / n_requests };
    measured.postgres_us = spent.3 * 1e6 / n_requests;
    measured.foreign = (spent.0 - spent.1 - spent.2 - spent.3).max(0.0) / seconds;
    measured
}

#[expect(clippy::print_stderr, reason = "a line for whoever waits, which is no result")]
fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}
