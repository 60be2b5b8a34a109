//! A tenant whose requests pile up, and its neighbor on the same process and the same PostgreSQL.

use std::sync::Arc;

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use sqlx::{PgConnection, Row as _};
use tokio::task::JoinSet;

use super::fixture::{keys, manifest};
use super::raw::{Client, Question};
use crate::postgres::wire::encoders::Random;

const WAITING: u64 = 200;
const CALM_CLIENTS: u64 = 8;
const CALM_REQUESTS: u64 = 504;

/// How much slower the neighbor is belongs to `make bench`, scene `fairness`.
///
/// Seen to fail with one semaphore for the connections of all tenants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_requests_that_wait_for_a_lock_keep_nobody_else_waiting() {
    let server = Server::with(&["max_connections=300"]).await;
    let (storm, calm) = (manifest("storm"), manifest("calm"));
    let mut world = World::on(&server, &[("storm.yaml", &storm), ("calm.yaml", &calm)]);
    world.resync_seconds = 3_600;
    world
        .start_with(|command| {
            command.args(["--connections-per-tenant", &WAITING.to_string()]);
            command.args(["--connections-per-server", "280"]);
        })
        .await;
    let address = world.url().trim_start_matches("http://").parse().expect("an address");
    let mut random = Random(5);
    let storm_keys = Arc::new(keys(&world, "storm"));
    for owner in super::fixture::OWNERS {
        // A key that nobody has seen yet would be looked up first.
        let question = Question::draw(format!("known-{owner}"), &mut random).of(owner);
        let answer = Client::new(address).ask(&question.bytes("storm", &storm_keys)).await;
        question.check(&answer.expect("an answer"));
    }

    let mut lock = server.connect("storm").await;
    execute(&mut lock, "begin; lock table f.notes").await;
    let mut waiting = JoinSet::new();
    for number in 0..WAITING {
        let question = Question::draw(format!("storm-{number}"), &mut random);
        let keys = storm_keys.clone();
        waiting.spawn(async move {
            let answer = Client::new(address).ask(&question.bytes("storm", &keys)).await.expect("an answer");
            question.check(&answer);
            answer.status
        });
    }
    let mut superuser = server.connect("storm").await;
    until("200 who wait", async || (n_waiting(&mut superuser).await == WAITING as i64).then_some(())).await;

    let calm_keys = Arc::new(keys(&world, "calm"));
    let mut asking = JoinSet::new();
    for number in 0..CALM_CLIENTS {
        let (keys, mut random) = (calm_keys.clone(), Random(number));
        asking.spawn(async move {
            let mut client = Client::new(address);
            for round in 0..CALM_REQUESTS / CALM_CLIENTS {
                let question = Question::draw(format!("calm-{number}-{round}"), &mut random);
                let answer = client.ask(&question.bytes("calm", &keys)).await.expect("an answer");
                question.check(&answer);
                assert_eq!(answer.status, 200, "{answer:?}");
            }
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("every request of the neighbor is answered");
    }

    assert_eq!(n_waiting(&mut superuser).await, WAITING as i64, "they waited all the while");
    drop(lock);
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.expect("its own answer"), 200);
    }
    assert!(world.stop().await.success());
}

async fn n_waiting(superuser: &mut PgConnection) -> i64 {
    let sql = "select count(*) from pg_stat_activity where datname = current_database()
        and application_name = 'rowgate' and wait_event_type = 'Lock'";
    sqlx::query(sql).fetch_one(superuser).await.expect("a row").get(0)
}
