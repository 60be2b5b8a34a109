//! `make bench`: how fast reads and writes are, as ratios against `pgbench`, other servers and a control, from one interleaved run.

mod account;
mod alone;
mod control;
mod load;
mod nested;
mod peer;
mod report;
mod rounds;
mod stage;
mod storm;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::Value;

use alone::abuse::Abuser;
use alone::{abuse, events, exports, reconcile, revoked, scale, schemas, unknown_tenants, webhooks};
use peer::{Ask, Peer};
use rounds::{Contestant, Work};
use stage::Stage;

/// Measures Rowgate's reads and writes beside pgbench, PostgREST, Postrust, PostGraphile and a control of our own.
#[derive(Debug, Parser)]
struct Cli {
    /// Rounds of each scene; the median counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds that each contestant runs in a round
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Only scenes whose name holds this word: row, keys, latency, page, nested, post, patch, fairness, long; or abuse, backlog, events, exports, neighbours, reconcile, revoked, scale, schemas, unknown-tenants and webhooks, each of which runs by itself only
    #[arg(long)]
    only: Option<String>,
    /// How many objects there are while reconciling is measured, and how many permission sets with schemas
    #[arg(long, default_value_t = 1000)]
    objects: usize,
    /// How many rows are exported
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How often each of them stands in the longer export whose memory is compared
    #[arg(long, default_value_t = 5)]
    times: u64,
    /// Folder with the other servers, which tests/setup/bench.sh fills
    #[arg(long, env = "ROWGATE_BENCH_TOOLS")]
    tools: Option<PathBuf>,
    /// How often each of two unknown tenants is asked for
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// A rowgate-dataplane of another build, to be measured beside this one where one row, one page or rows within rows are read
    #[arg(long)]
    before: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Be the control: what the benchmark starts as a process of its own
    #[command(hide = true)]
    Control { uri: String, port: u16 },
    /// Be the abuser of a key, until the input ends
    #[command(hide = true)]
    Attack { address: SocketAddr, key: String },
    /// Be the owner of a tenant that abuses it, until the input ends
    #[command(hide = true)]
    Own { address: SocketAddr, key: String },
    /// Be what signs and posts alone
    #[command(hide = true)]
    Sign { address: SocketAddr },
    /// Use so many cores, until the end by a signal
    #[command(hide = true)]
    Burn { cores: f64 },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cli = Cli::parse();
    match &cli.role {
        Some(Role::Control { uri, port }) => control::serve(uri, *port).await,
        None if cli.only.as_deref() == Some("reconcile") => {
            reconcile::run(cli.objects).await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("events") => {
            events::run().await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("webhooks") => {
            webhooks::run().await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("backlog") => {
            webhooks::backlog::run(cli.rounds).await;
            Ok(())
        }
        Some(Role::Sign { address }) => {
            webhooks::bare::run(*address).await;
            Ok(())
        }
        Some(Role::Attack { address, key }) => abuse::attack::run(*address, key).await,
        Some(Role::Own { address, key }) => abuse::owner::run(*address, key).await,
        Some(Role::Burn { cores }) => {
            abuse::burner::burn(*cores);
            Ok(())
        }
        None if cli.only.as_deref() == Some("abuse") => {
            abuse::run(Abuser::Key, cli.rounds).await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("neighbours") => {
            abuse::run(Abuser::Owner, cli.rounds).await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("exports") => {
            exports::run(cli.rows, cli.rounds, cli.times).await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("revoked") => {
            revoked::run().await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("scale") => {
            scale::run(cli.objects).await;
            Ok(())
        }
        None if cli.only.as_deref() == Some("schemas") => schemas::run(cli.objects).await,
        None if cli.only.as_deref() == Some("unknown-tenants") => {
            unknown_tenants::run(cli.requests).await;
            Ok(())
        }
        None => bench(&cli).await,
    }
}

async fn bench(cli: &Cli) -> Result<(), Box<dyn std::error::Error>> {
    let stage = Stage::set(cli.before.as_deref()).await;
    peer::prepare(&stage.server);
    let tools = cli.tools.clone().unwrap_or_default();
    let peers: Vec<Peer> = [
        Peer::control(&stage.server).await,
        Peer::postgrest(&stage.server, &tools).await,
        Peer::postrust(&stage.server, &tools).await,
        Peer::postgraphile(&stage.server, &tools).await,
    ]
    .into_iter()
    .flatten()
    .collect();
    same_answers(&stage, &peers).await?;
    report::header(cli.rounds, cli.seconds, &peers);

    let ours = |name: &str, requests, n_connections| Contestant {
        name: name.to_owned(),
        work: Work::Http { address: stage.address(), pid: stage.data_plane.pid(), requests, n_connections },
    };
    let before = |requests: load::Requests| {
        stage.before.as_ref().map(|it| Contestant {
            name: "Rowgate before".to_owned(),
            work: Work::Http {
                address: stage::address(it.url()),
                pid: it.pid(),
                requests,
                n_connections: 32,
            },
        })
    };
    let others = |requests: Ask| {
        peers.iter().filter_map(move |peer| {
            Some(Contestant {
                name: peer.name.to_owned(),
                work: Work::Http {
                    address: peer.address,
                    pid: peer.pid,
                    requests: requests(peer)?,
                    n_connections: 32,
                },
            })
        })
    };
    let pgbench = |n_clients| Contestant { name: "pgbench -S".to_owned(), work: Work::PgBench { n_clients } };
    let durable = |it: Contestant| Contestant {
        name: format!("{}, durable", it.name),
        work: Work::Durable(Box::new(it.work)),
    };
    let writers = |own: fn(&Stage) -> load::Requests, ask: Ask| {
        let all = || {
            let ours = ours("Rowgate", own(&stage), 32);
            [ours].into_iter().chain(others(ask)).collect::<Vec<_>>()
        };
        all().into_iter().chain(all().into_iter().map(durable)).collect::<Vec<_>>()
    };
    let scenes: [(&str, Vec<Contestant>); 8] = [
        ("row: one row by its key, 32 connections", {
            let own = [ours("Rowgate", stage.row(1), 32), pgbench(32)];
            own.into_iter().chain(before(stage.row(1))).chain(others(Peer::row)).collect()
        }),
        ("keys: one row, keys in turn, 32 connections", {
            let with = |n| ours(&format!("Rowgate, {n} keys"), stage.row(n), 32);
            vec![with(1), with(16), with(stage::KEYS)]
        }),
        ("latency: one row", {
            let with = |n| ours(&format!("Rowgate, {n} connections"), stage.row(1), n);
            vec![with(1), pgbench(1), with(64)]
        }),
        ("page: 100 rows of 10 columns, 32 connections", {
            let own = [ours("Rowgate", stage.page(), 32)];
            own.into_iter().chain(before(stage.page())).chain(others(Peer::page)).collect()
        }),
        ("nested: 50 rows, each with one row and five others, 32 connections", {
            let own =
                [ours("Rowgate", stage.nested(), 32), ours("Rowgate GraphQL", stage.nested_graphql(), 32)];
            own.into_iter().chain(before(stage.nested())).chain(others(Peer::nested)).collect()
        }),
        ("post: one row made, 32 connections", writers(Stage::post, Peer::post)),
        ("patch: one row changed, 32 connections", writers(Stage::patch, Peer::patch)),
        ("fairness: one row, 4 connections, while 200 requests of another tenant wait for a lock", {
            let calm = ours("Rowgate", stage.row(1), 4);
            let work = Box::new(ours("", stage.row(1), 4).work);
            vec![calm, Contestant { name: "Rowgate, beside them".to_owned(), work: Work::Stormed(work) }]
        }),
    ];
    let fresh = account::megabytes(&[stage.data_plane.pid()]);
    for (name, contestants) in &scenes {
        if cli.only.as_ref().is_some_and(|word| !name.contains(word.as_str())) {
            continue;
        }
        // Statements, caches and connections are warm before the clock starts.
        let run = |n_rounds, seconds| {
            let time = Duration::from_secs(seconds);
            tokio::task::block_in_place(|| rounds::run(&stage, contestants, n_rounds, time))
        };
        run(1, 1);
        let measured = run(cli.rounds, cli.seconds);
        report::scene(name, contestants, &measured);
        if name.starts_with("fairness") {
            report::growth(&measured);
        }
    }
    if cli.only.as_ref().is_none_or(|word| "long".contains(word.as_str())) {
        report::long(&long(&stage).await?);
    }
    report::memory(fresh, account::megabytes(&[stage.data_plane.pid()]), &peers);
    Ok(())
}

/// The most memory that the data plane held while pages of 10,000 and of 100,000 rows were read one after the other, in
/// megabytes.
async fn long(stage: &Stage) -> Result<[(usize, f64); 2], Box<dyn std::error::Error>> {
    let pid = stage.data_plane.pid();
    let mut most = [(10_000, 0.0), (100_000, 0.0)];
    for (n_rows, megabytes) in &mut most {
        account::forget_most(pid);
        for _ in 0..5 {
            let (status, body) = load::ask(stage.address(), &stage.lines(*n_rows)).await?;
            let n_found = serde_json::from_slice::<Value>(&body)?["value"].as_array().map_or(0, Vec::len);
            assert_eq!((status, n_found), (200, *n_rows));
        }
        *megabytes = account::most_megabytes(pid);
    }
    Ok(most)
}

/// Everybody gives the same rows; without that no rate means anything.
async fn same_answers(stage: &Stage, peers: &[Peer]) -> Result<(), Box<dyn std::error::Error>> {
    let writes: [(load::Requests, Ask, u16); 2] =
        [(stage.post(), Peer::post, 201), (stage.patch(), Peer::patch, 200)];
    for (ours, theirs, expected) in writes {
        let others = peers.iter().filter_map(|it| Some((it.name, it.address, theirs(it)?(7))));
        for (name, address, request) in [("Rowgate", stage.address(), ours(7))].into_iter().chain(others) {
            let (status, body) = load::ask(address, &request).await?;
            let told = String::from_utf8_lossy(&body);
            assert!(status == expected && told.contains("\"stock\":7"), "{name}: {status} {told}");
        }
    }
    let kinds: [(load::Requests, Ask); 2] = [(stage.row(1), Peer::row), (stage.page(), Peer::page)];
    for (ours, theirs) in kinds {
        for n in [0, 1, 77, 4_000] {
            let (status, body) = load::ask(stage.address(), &ours(n)).await?;
            let rows = serde_json::from_slice::<Value>(&body)?["value"].take();
            assert!(status == 200 && rows.as_array().is_some_and(|rows| !rows.is_empty()), "{status} {rows}");
            for peer in peers {
                let Some(theirs) = theirs(peer) else { continue };
                let (status, body) = load::ask(peer.address, &theirs(n)).await?;
                let other: Value = serde_json::from_slice(&body)?;
                let names = |rows: &Value| -> Vec<(Value, Value)> {
                    let rows = rows.as_array().cloned().unwrap_or_default();
                    rows.into_iter().map(|row| (row["id"].clone(), row["name"].clone())).collect()
                };
                assert_eq!((status, names(&other)), (200, names(&rows)), "{} answers otherwise", peer.name);
            }
        }
    }
    let (status, body) = load::ask(stage.address(), &stage.nested()(5)).await?;
    let orders = nested::orders(&body);
    let is_full = |(_, _, lines): &(Value, Value, Vec<Value>)| lines.len() == 5;
    assert!(status == 200 && orders.len() == 50 && orders.iter().all(is_full), "{status} {orders:?}");
    let (_, body) = load::ask(stage.address(), &stage.nested_graphql()(5)).await?;
    assert_eq!(nested::orders(&body), orders);
    for peer in peers {
        let Some(theirs) = peer.nested() else { continue };
        let (status, body) = load::ask(peer.address, &theirs(5)).await?;
        let found = nested::orders(&body);
        // a page behind an offset is another one
        let is_same = peer.language == peer::Language::PostGraphile || found == orders;
        let is_full = found.len() == 50 && found.iter().all(is_full);
        assert!(
            status == 200 && is_same && is_full,
            "{}: {status} {}",
            peer.name,
            String::from_utf8_lossy(&body)
        );
    }
    Ok(())
}
