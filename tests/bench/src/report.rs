//! What a run says, as tables of Markdown: ratios first, rates never by themselves.
#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

use crate::account;
use crate::peer::Peer;
use crate::rounds::{Contestant, Measured, median, quiet};

pub(crate) fn header(n_rounds: usize, seconds: u64, peers: &[Peer]) {
    let names: Vec<&str> = peers.iter().map(|peer| peer.name).collect();
    println!("# Reads and writes, {n_rounds} interleaved rounds of {seconds} s each\n");
    println!("Beside Rowgate: pgbench, {}.", names.join(", "));
    println!(
        "`x`: the first line's requests per second divided by this line's, median of the ratio within a round."
    );
    println!(
        "CPU: microseconds per request of the server, of PostgreSQL, and both as a share of the first line's.\n"
    );
}

pub(crate) fn scene(name: &str, contestants: &[Contestant], all: &[Vec<Measured>]) {
    let rounds = quiet(all);
    let of =
        |i: usize, value: fn(&Measured) -> f64| median(rounds.iter().map(|r| value(&all[i][*r])).collect());
    println!("## {name}\n");
    println!("{} of {} rounds counted; others were disturbed.\n", rounds.len(), all[0].len());
    println!("| | x | range | p50 ms | p99 ms | server us | PostgreSQL us | CPU / first | failures |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let cpu = |it: &Measured| it.server_us + it.postgres_us;
    for (i, contestant) in contestants.iter().enumerate() {
        let ratios: Vec<f64> = rounds.iter().map(|r| all[0][*r].per_second / all[i][*r].per_second).collect();
        let (low, high) =
            ratios.iter().fold((f64::MAX, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
        let failures: u64 = all[i].iter().map(|it| it.n_failures).sum();
        println!(
            "| {} | {:.2} | {low:.2}-{high:.2} | {:.3} | {} | {} | {:.0} | {} | {failures} |",
            contestant.name,
            median(ratios),
            of(i, |it| it.p50_ms),
            known(of(i, |it| it.p99_ms), 2),
            known(of(i, |it| it.server_us), 0),
            of(i, |it| it.postgres_us),
            known(of(i, cpu) / of(0, cpu), 2),
        );
    }
    println!();
}

/// By how much the p99 of the second is longer than that of the first.
pub(crate) fn growth(all: &[Vec<Measured>]) {
    let ratios = quiet(all).into_iter().map(|r| all[1][r].p99_ms / all[0][r].p99_ms).collect();
    println!(
        "p99 grows by {:.0} % (median of the rounds; the goal is below 20).\n",
        (median(ratios) - 1.0) * 100.0
    );
}

/// pgbench tells neither its percentiles nor a server of its own.
fn known(value: f64, digits: usize) -> String {
    if value.is_nan() { "-".to_owned() } else { format!("{value:.digits$}") }
}

/// The most memory while long pages were read.
pub(crate) fn long(most: &[(usize, f64); 2]) {
    println!("## long: pages read to their end, the most memory of the data plane\n");
    println!("| rows of 130 bytes | MB |\n|---|---|");
    for (n_rows, megabytes) in most {
        println!("| {n_rows} | {megabytes:.1} |");
    }
    println!("\nThe longer one takes {:.1} MB more (the goal is below 16).\n", most[1].1 - most[0].1);
}

pub(crate) fn memory(fresh: f64, after: f64, peers: &[Peer]) {
    println!("## memory, proportional set size\n");
    println!("| | MB |\n|---|---|");
    println!("| Rowgate before the load | {fresh:.0} |\n| Rowgate after it | {after:.0} |");
    for peer in peers {
        println!("| {} after it | {:.0} |", peer.name, account::megabytes(&account::tree(peer.pid)));
    }
}
