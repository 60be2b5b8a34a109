//! What one tenant that abuses what it has takes from another: the p99 of the other's one-row GETs beside the abuse, and beside a
//! control that uses as much CPU outside Rowgate. It abuses a key (the SQL endpoint and exports), or the login of its migrations.
//! [`interleaved`] and [`report`] serve other neighbors, too.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

pub(crate) mod attack;
pub(crate) mod burner;
mod manifest;
pub(crate) mod owner;
pub(crate) mod stage;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use self::burner::Burn;
use self::stage::Stage;
use crate::rounds::median;

/// What is abused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abuser {
    /// A key, at a data plane beside which nothing is reconciled.
    Key,
    /// The tables' owner, by the login of migrations and by a key, at a standalone that reconciles and serves.
    Owner,
}

/// How often what was answered how.
type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

/// What goes on beside the neighbor, in this order in a round.
const BESIDE: [&str; 3] = ["nothing else", "the abuse", "as much CPU outside Rowgate"];

/// What the neighbor had beside one of [`BESIDE`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) n_failures: u64,
    /// Cores in use by the data plane, by those that ask or burn beside it, and by PostgreSQL, with that of the control.
    pub(crate) cores: [f64; 3],
    /// Processes of PostgreSQL that run or wait for a core, on average.
    pub(crate) n_runnable: f64,
}

pub(crate) async fn run(by: Abuser, n_rounds: usize) {
    let stage = Stage::set(by).await;
    let what = match by {
        Abuser::Key => "of SQL and exports by one key",
        Abuser::Owner => "of the migration login by one tenant",
    };
    println!("# Abuse {what}, beside one-row GETs of another tenant, {n_rounds} interleaved rounds\n");
    let mut answers = BTreeMap::new();
    let all =
        interleaved(n_rounds, async |beside, burn| stage.measure(beside, burn, &mut answers).await).await;
    report(&all);
    let answers: Vec<String> = answers.iter().map(|(what, n)| format!("{what} {n}")).collect();
    println!("What the abuser was answered: {}.", answers.join(", "));
}

/// Runs beside each of [`BESIDE`], which `measure` is told by its index, in rounds and in rotated order; the control burns what the abuse used.
pub(crate) async fn interleaved(
    n_rounds: usize,
    mut measure: impl AsyncFnMut(usize, Burn) -> Run,
) -> [Vec<Run>; 3] {
    let mut all: [Vec<Run>; 3] = Default::default();
    // the first round warms, and tells the control what to burn
    let mut burn = Burn::default();
    for round in 0..=n_rounds {
        for step in 0..BESIDE.len() {
            let i = if round == 0 { step } else { (round + step) % BESIDE.len() };
            all[i].push(measure(i, burn).await);
            if i == 1 {
                burn = burned(&all);
            }
        }
    }
    all.iter_mut().for_each(|runs| {
        runs.remove(0);
    });
    all
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

fn count(counts: &Counts, name: &str, answer: &str) {
    *counts.lock().expect("nothing panics").entry(format!("{name}: {answer}")).or_default() += 1;
}

pub(crate) fn report(all: &[Vec<Run>; 3]) {
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
        "\np99 beside the abuse: {p99:.2}x that beside the control, {low:.2} to {high:.2} in the rounds (goal 1.2); p50: {p50:.2}x."
    );
}
