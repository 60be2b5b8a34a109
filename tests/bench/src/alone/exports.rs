//! How fast exports are beside PostgreSQL's COPY of the same rows to nowhere (goal 7), what they cost, and the memory they take.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

pub(crate) mod depot;

use serde_json::Value;

use self::depot::{Depot, entity, times};
use crate::account;
use crate::rounds::median;

/// Foreign load from which on a round tells little, in cores, as in [`crate::rounds`].
const NOISY: f64 = 0.4;

/// How often the memory of a short export and of a long one is compared: what the allocator holds differs from run to run.
const MEMORY_ROUNDS: usize = 3;

/// Of one run.
#[derive(Debug, Clone, Copy)]
struct Run {
    seconds: f64,
    /// CPU seconds of the data plane and of PostgreSQL.
    server: f64,
    postgres: f64,
    /// The most memory of the data plane beyond what it had before its first export, in megabytes.
    megabytes: f64,
    bytes: u64,
    /// What processes that are none of ours used meanwhile, in cores.
    foreign: f64,
}

enum Work {
    Copy(&'static str),
    Export(Value),
}

/// What runs; what it is measured against, by its number; goals for rows per second and for millions of rows per CPU second.
struct Contestant {
    name: &'static str,
    work: Work,
    against: usize,
    goals: [&'static str; 2],
}

pub(crate) async fn run(n_rows: u64, n_rounds: usize, times: u64) {
    let depot = Depot::fill(n_rows).await;
    println!("# Exports of {n_rows} rows of ten columns, {n_rounds} interleaved rounds\n");
    println!(
        "`x`: rows per second as a share of COPY's, median of the ratio within a round. CPU: seconds per million rows."
    );
    println!("Memory: the most that the data plane held beyond what it had before its first export.\n");
    let pid = depot.data_plane.pid();
    for _ in 0..20 {
        let reply = depot.send("GET", "/auth/bench/api/items?$first=100", "").await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    account::forget_most(pid);
    let fresh = account::most_megabytes(pid);
    let copy = |name, format| Contestant { name, work: Work::Copy(format), against: 0, goals: ["", ""] };
    let export = |name, body, against, goals| Contestant { name, work: Work::Export(body), against, goals };
    let contestants = [
        copy("COPY, binary", "binary"),
        copy("COPY, CSV", "csv"),
        export("export, Parquet", entity("parquet"), 0, ["0.85", "1.2"]),
        export("export, CSV", entity("csv"), 1, ["0.95", ""]),
        export("export, JSON lines", entity("jsonl"), 1, ["", ""]),
    ];
    let mut all = vec![Vec::new(); contestants.len()];
    // the first round warms
    for round in 0..=n_rounds {
        for step in 0..contestants.len() {
            let i = (round + step) % contestants.len();
            let run = measure(&depot, &contestants[i].work, n_rows, fresh).await;
            if 0 < round {
                all[i].push(run);
            }
        }
    }
    report(n_rows, &contestants, &all);
    memory(&depot, [n_rows, times * n_rows], fresh).await;
}

async fn measure(depot: &Depot, work: &Work, n_rows: u64, fresh: f64) -> Run {
    let pid = depot.data_plane.pid();
    account::forget_most(pid);
    // psql is ours once it has ended
    let used = || {
        let postgres = account::cpu(&account::tree(depot.server.pid()));
        [account::machine(), account::cpu(&[std::process::id()]), account::cpu(&[pid]), postgres]
    };
    let before = used();
    let (seconds, bytes) = match work {
        Work::Copy(format) => (tokio::task::block_in_place(|| depot.copy(format)), 0),
        Work::Export(body) => {
            let exported = depot.export(body.clone()).await;
            assert_eq!(exported.rows, n_rows, "the key reads all rows of its own and no other");
            (exported.seconds, exported.bytes)
        }
    };
    let after = used();
    let [machine, own, server, postgres] = [0, 1, 2, 3].map(|i| (after[i] - before[i]).max(0.0));
    let foreign = (machine - own - server - postgres) / seconds;
    Run { seconds, server, postgres, megabytes: account::most_megabytes(pid) - fresh, bytes, foreign }
}

/// Rounds in which nobody else was at work, or all where there are too few of them.
fn quiet(all: &[Vec<Run>]) -> Vec<usize> {
    let n_rounds = all.first().map_or(0, Vec::len);
    let is_quiet = |round: &usize| all.iter().all(|runs| runs[*round].foreign < NOISY);
    let quiet: Vec<usize> = (0..n_rounds).filter(is_quiet).collect();
    if quiet.len() < 3 { (0..n_rounds).collect() } else { quiet }
}

fn report(n_rows: u64, contestants: &[Contestant], all: &[Vec<Run>]) {
    let rounds = quiet(all);
    println!("{} of {} rounds counted; others were disturbed.\n", rounds.len(), all[0].len());
    println!(
        "| | x | range | goal | CPU of ours | of PostgreSQL | million rows per CPU second of ours | goal | memory MB (goal 64) | file MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let millions = n_rows as f64 / 1e6;
    for (contestant, runs) in contestants.iter().zip(all) {
        let copies = &all[contestant.against];
        let ratios: Vec<f64> = rounds.iter().map(|r| copies[*r].seconds / runs[*r].seconds).collect();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        let of = |value: fn(&Run) -> f64| median(rounds.iter().map(|r| value(&runs[*r])).collect());
        let most = runs.iter().map(|run| run.megabytes).fold(0.0, f64::max);
        let [goal, goal_of_cpu] = contestant.goals;
        let name = contestant.name;
        let postgres = of(|run| run.postgres) / millions;
        print!("| {name} | {:.2} | {low:.2}-{high:.2} | {goal} | ", median(ratios));
        match contestant.work {
            Work::Copy(_) => println!("- | {postgres:.2} | - | | - | - |"),
            Work::Export(_) => {
                let server = of(|run| run.server) / millions;
                let file = of(|run| run.bytes as f64) / 1e6;
                let rows = 1.0 / server;
                println!("{server:.2} | {postgres:.2} | {rows:.2} | {goal_of_cpu} | {most:.1} | {file:.1} |");
            }
        }
    }
}

/// Of an export of all rows, and of one that has each several times, in turn; the medians.
async fn memory(depot: &Depot, n_rows: [u64; 2], fresh: f64) {
    println!(
        "\n| | rows | file MB | s | most memory MB (goal 64) | more (goal 8) |\n|---|---|---|---|---|---|"
    );
    for format in ["parquet", "csv"] {
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..MEMORY_ROUNDS {
            for (runs, n) in runs.iter_mut().zip(n_rows) {
                let work = Work::Export(times(format, n / n_rows[0]));
                runs.push(measure(depot, &work, n, fresh).await);
            }
        }
        let of = |i: usize, value: fn(&Run) -> f64| median(runs[i].iter().map(value).collect());
        let megabytes = |i| of(i, |run| run.megabytes);
        for (i, n) in n_rows.iter().enumerate() {
            let (file, seconds) = (of(i, |run| run.bytes as f64) / 1e6, of(i, |run| run.seconds));
            let more = megabytes(i) - megabytes(0);
            println!("| {format} | {n} | {file:.0} | {seconds:.1} | {:.1} | {more:.1} |", megabytes(i));
        }
    }
}
