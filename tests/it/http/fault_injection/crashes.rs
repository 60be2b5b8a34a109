//! PostgreSQL dies under load, and comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use tokio::task::JoinSet;

use super::fixture::{OWNERS, keys, manifest, metric};
use super::raw::{Client, Question};
use crate::postgres::wire::encoders::Random;

const CLIENTS: u64 = 16;
/// Refusals that are waited for before the server is started again.
const REFUSALS: u64 = 2_000;
const CONNECTS: &str = "rowgate_database_connects_total";

struct Load {
    keys: Vec<String>,
    address: SocketAddr,
    ends: AtomicBool,
    n_answered: AtomicU64,
    n_refused: AtomicU64,
}

/// Seen to fail with every request trying a connection of its own while none can be made: 2,314 tries in 0.6 s. With
/// pauses that grow to 8 s, answers came 5.5 to 7.5 s late, beyond what is allowed here; with the real ones it is 0.1 to
/// 0.4 s on a busy machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgresql_that_is_killed_under_load_five_times_is_used_again_within_a_second() {
    // What is committed is there after a crash.
    let mut server = Server::with(&["synchronous_commit=on"]).await;
    let mut world = World::on(&server, &[("fire.yaml", &manifest("fire"))]);
    world.start().await;
    // Looked up now: a pass that finds no database has no more to say of a key than that.
    let dana = world.status("ApiKey", "fire-dana")["apiKeyId"].as_str().expect("it has one").to_owned();
    let load = Arc::new(Load {
        keys: keys(&world, "fire"),
        address: world.url().trim_start_matches("http://").parse().expect("an address"),
        ends: AtomicBool::new(false),
        n_answered: AtomicU64::new(0),
        n_refused: AtomicU64::new(0),
    });
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(client(load.clone(), number));
    }
    let mut random = Random(99);
    for round in 0..5 {
        more(&load.n_answered, 200, "answers").await;
        let failed = async || metric(&world, CONNECTS, "tenant=\"fire\",result=\"failed\"").await;
        let before = failed().await;
        let killed = Instant::now();
        server.kill().await;
        more(&load.n_refused, REFUSALS, "refusals").await;
        let n_tries = failed().await - before;
        let down = killed.elapsed();
        // One for each connection at first, then growing pauses up to 300 ms and more.
        let most = 8 + 6 + down.as_millis() as u64 / 300;
        assert!(n_tries <= most, "{n_tries} tries in {down:?}");

        server.start_again().await;
        let ready = Instant::now();
        let mut client = Client::new(load.address);
        let question = Question::draw(format!("back-{round}"), &mut random);
        let request = question.bytes("fire", &load.keys);
        until("an answer", async || {
            let answer = client.ask(&request).await.ok()?;
            question.check(&answer);
            (answer.status == 200).then_some(())
        })
        .await;
        let took = ready.elapsed();
        println!(
            "down for {down:?}, {n_tries} tries to connect; answers {took:?} after PostgreSQL was ready"
        );
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    // Whatever was remembered of a key from before: its word is the database's.
    server.kill().await;
    server.start_again().await;
    let mut superuser = server.connect("fire").await;
    execute(&mut superuser, &format!("update dl.keys set revoked_at = now() where id = '{dana}'")).await;
    let mut client = Client::new(load.address);
    until("an end of the refusals", async || {
        let question = Question::draw("dead".to_owned(), &mut random).of("dana");
        let answer = client.ask(&question.bytes("fire", &load.keys)).await.ok()?;
        assert!([401, 503].contains(&answer.status), "{answer:?}");
        (answer.status == 401).then_some(())
    })
    .await;
    load.ends.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        if ended.is_err() {
            // why the replica gave another answer
            let log = world.log();
            log.lines().filter(|line| line.contains("fault")).for_each(|line| println!("{line}"));
        }
        ended.expect("every answer is its question's, or a refusal that says when to come again");
    }
    assert!(world.stop().await.success());
}

async fn more(count: &AtomicU64, n: u64, what: &str) {
    let before = count.load(Ordering::Relaxed);
    until(what, async || (before + n <= count.load(Ordering::Relaxed)).then_some(())).await;
}

async fn client(load: Arc<Load>, number: u64) {
    let (mut client, mut random) = (Client::new(load.address), Random(number));
    for round in 0_u64.. {
        if load.ends.load(Ordering::Relaxed) {
            return;
        }
        // One key is revoked while this runs.
        let owner = OWNERS[round as usize % 3];
        let question = Question::draw(format!("q{number}-{round}"), &mut random).of(owner);
        let answer = match client.ask(&question.bytes("fire", &load.keys)).await {
            Ok(answer) => answer,
            // What was begun can only be broken off.
            Err(_) if question.many => continue,
            Err(error) => panic!("{question:?}: {error}"),
        };
        question.check(&answer);
        match answer.status {
            200 => load.n_answered.fetch_add(1, Ordering::Relaxed),
            503 => {
                assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
                load.n_refused.fetch_add(1, Ordering::Relaxed)
            }
            _ => panic!("{question:?} got {answer:?}"),
        };
    }
}
