//! Every event at least once and in the order of its row, while replicas are killed at each point, PostgreSQL is, and receivers
//! fail, close, hang and answer byte by byte.

mod deliveries;
mod paused;
mod points;
pub(super) mod works;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rowgate_tests::servers::receiver::{Answer, Receiver};
use rowgate_tests::wait::until_ok;

use deliveries::{Deliveries, captured};
use points::{ALL, Probe};
use works::{Load, N_REPLICAS, Works};

/// Changes of rows in a round.
const CHANGES: usize = 120;

/// Fails about two of five requests, each in one of several ways.
async fn flapping(seed: u64) -> Receiver {
    let random = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
    Receiver::at("127.0.0.1", move |_| {
        let drawn = random.lock().random_range(0..10);
        Box::pin(async move {
            match drawn {
                0 => Answer::Status(500),
                1 => Answer::Close,
                2 => Answer::Full(503, "Retry-After: 1".to_owned(), "busy".to_owned()),
                3 => Answer::Full(302, "Location: /elsewhere".to_owned(), String::new()),
                _ => Answer::Status(200),
            }
        })
    })
    .await
}

/// Never answers the first request.
async fn hanging() -> Receiver {
    let is_first = Arc::new(Mutex::new(true));
    Receiver::at("127.0.0.1", move |_| {
        let hangs = std::mem::take(&mut *is_first.lock());
        Box::pin(async move { if hangs { Answer::Hang } else { Answer::Status(204) } })
    })
    .await
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Seen to fail where replicas learn of a subscription from the control database alone, in which a replica that is killed has not
/// written it.
///
/// `ROWGATE_CASES`: for each 2,000 of them a round, which `make soak` asks for.
#[tokio::test]
async fn every_event_is_delivered_and_in_the_order_of_its_row_whatever_is_killed() {
    let seed = number("ROWGATE_SEED", 1);
    let rounds = number("ROWGATE_CASES", 16_000).div_ceil(2_000);
    let mut random = StdRng::seed_from_u64(seed);
    let mut works = Works::open().await;
    let slow = Receiver::at("127.0.0.1", |_| Box::pin(async { Answer::Slowly(200) })).await;
    let receivers = [
        ("good", Receiver::good().await),
        ("flapping", flapping(seed).await),
        ("slow", slow),
        ("hanging", hanging().await),
    ];
    for (name, receiver) in &receivers {
        works.subscribe("orders", &receiver.url(&format!("/{name}")), None).await;
    }
    let mut probe = Probe::of(&works).await;

    let load = Load::default();
    let login = works.login().await;
    let writers = join_all((0..2).map(|writer| load.write(&login, seed * 10 + writer)));
    let disturb = async {
        let mut order = ALL;
        order.shuffle(&mut random);
        let mut hits = BTreeSet::new();
        for round in 0..usize::try_from(rounds).expect("a small number") {
            load.allowed.fetch_add(CHANGES, Ordering::AcqRel);
            let point = *order.get(round).unwrap_or(&ALL[random.random_range(0..ALL.len())]);
            let one = random.random_range(0..N_REPLICAS);
            // each point with all replicas first, so that it was the killed one that stood there
            let killed = match round < ALL.len() || random.random_bool(0.5) {
                true => vec![0, 1],
                false => vec![one],
            };
            probe.reach(point, &mut works, &killed).await;
            if killed.len() == N_REPLICAS {
                hits.insert(point);
            }
        }
        load.is_written().await;
        hits
    };
    let hits = tokio::select! {
        hits = disturb => hits,
        _ = writers => unreachable!("they write until they are dropped"),
    };
    assert_eq!(hits, BTreeSet::from(ALL), "seed {seed}");

    let mut conn = works.sql().await;
    let all = captured(&mut conn, "orders").await;
    for (name, receiver) in &receivers {
        until_ok(&format!("all events at the receiver {name}, seed {seed}"), async || {
            let first = Deliveries::of(&receiver.requests()).first;
            match first == all {
                true => Ok(()),
                false => Err(format!("{first:?} of {all:?}")),
            }
        })
        .await;
    }
    let probes = Deliveries::of(&probe.receiver.requests());
    assert_eq!(probes.first, captured(&mut conn, "probes").await);
    assert!(0 < probes.n_repeated, "a delivery that was not written down is repeated");
}
