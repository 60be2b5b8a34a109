//! Clients that go away at any moment, between others and themselves that stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rowgate_tests::servers::postgres::Server;
use rowgate_tests::world::World;
use tokio::task::JoinSet;

use super::fixture::{keys, manifest, metric};
use super::raw::{Client, Question};
use crate::postgres::wire::encoders::Random;
use crate::reads::differential::given;

/// Clients at once, each with one connection.
const CLIENTS: u64 = 64;
/// Connections to PostgreSQL, so that what takes time is an exchange.
const MAX_CONNECTIONS: u64 = 64;
/// Each of as many aborts as were asked for.
const MOST_WAVES: u64 = 10;
const ABANDONED: &str = "rowgate_database_exchanges_abandoned_total";

/// What all clients share.
struct Load {
    /// Aborts that are still to come.
    left: AtomicU64,
    n_checked: AtomicU64,
    /// How long an answer takes at this moment, in microseconds: aborts fall before, within and behind it.
    usual: AtomicU64,
    keys: Vec<String>,
    address: std::net::SocketAddr,
}

/// Seen to fail with the exchange run in the request's own future instead of a task: 2,412 connections for 3,842 aborts
/// within an exchange, where there are about 100 now. With such a connection given back as it is, besides: at first for
/// a 500, and where these were let pass for the row of another question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_go_away_leave_nobody_their_rows() {
    let (n_aborts, seed) = (given("ROWGATE_CASES", 10_000), given("ROWGATE_SEED", 0));
    let began = Instant::now();
    let server = Server::with(&["log_connections=on"]).await;
    let mut world = World::on(&server, &[("fire.yaml", &manifest("fire"))]);
    world
        .start_with(|command| {
            command.args([
                "--connections-per-tenant",
                &MAX_CONNECTIONS.to_string(),
                "--connections-per-server",
                "90",
            ]);
        })
        .await;
    let load = Arc::new(Load {
        left: AtomicU64::new(0),
        n_checked: AtomicU64::new(0),
        usual: AtomicU64::new(5_000),
        keys: keys(&world, "fire"),
        address: world.url().trim_start_matches("http://").parse().expect("an address"),
    });
    // How many aborts fall within an exchange is the machine's affair: more are made until enough did.
    let (mut n_waves, mut n_in_flight) = (0, 0);
    while n_waves < MOST_WAVES && 10 * n_in_flight < 3 * n_aborts {
        load.left.store(n_aborts, Ordering::Relaxed);
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let random = Random(seed.wrapping_mul(1_000) + n_waves * CLIENTS + number);
            clients.spawn(client(load.clone(), number, random));
        }
        while let Some(ended) = clients.join_next().await {
            ended.expect("every answer is its question's");
        }
        n_waves += 1;
        n_in_flight = metric(&world, ABANDONED, "tenant=\"fire\"").await;
    }
    let n_made = n_waves * n_aborts;

    let n_checked = load.n_checked.load(Ordering::Relaxed);
    let n_opened = server.log().matches("application_name=rowgate").count() as u64;
    println!(
        "{n_made} aborts from seed {seed}, {n_in_flight} within an exchange; {n_checked} answers checked; \
         {n_opened} connections to PostgreSQL; {} s",
        began.elapsed().as_secs()
    );
    assert!(3 * n_aborts <= 10 * n_in_flight, "{n_in_flight} of {n_made} in flight: too few were tried");
    assert!(n_made <= 2 * n_checked, "{n_checked} answers");
    assert!(
        n_opened < 10 * MAX_CONNECTIONS + n_in_flight / 20,
        "{n_opened} connections for {n_in_flight} aborts"
    );
    assert!(world.stop().await.success());
}

async fn client(load: Arc<Load>, number: u64, mut random: Random) {
    let mut client = Client::new(load.address);
    for round in 0_u64.. {
        let question = Question::draw(format!("q{number}-{round}"), &mut random);
        let request = question.bytes("fire", &load.keys);
        if random.next().is_multiple_of(2) {
            let began = Instant::now();
            let answer = client.ask(&request).await.expect("an answer");
            question.check(&answer);
            assert_eq!(answer.status, 200, "{answer:?}");
            let took = began.elapsed().as_micros() as u64;
            let usual = load.usual.load(Ordering::Relaxed);
            load.usual.store((usual * 31 + took) / 32, Ordering::Relaxed);
            load.n_checked.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let one_less = |left: u64| left.checked_sub(1);
        if load.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
            return;
        }
        let usual = load.usual.load(Ordering::Relaxed);
        let after = Duration::from_micros(random.next() % (usual * 5 / 4));
        // Now and then only a part of the request is sent.
        let sent = match random.next() % 16 {
            0 => (random.next() % request.len() as u64) as usize,
            _ => request.len(),
        };
        let reset = random.next().is_multiple_of(2);
        client.abort(&request[..sent], after, reset).await.expect("the server takes a request");
    }
}
