//! Receivers that are slow or dead hold up nobody else.

use futures_util::future::join_all;
use rowgate_tests::servers::receiver::{Answer, Receiver};
use rowgate_tests::wait::until;
use tokio::sync::watch;

use crate::webhooks::crash::works::{N_REPLICAS, Works, changed};

/// At one host, over all replicas.
const MAX_OPEN: usize = 16;
const N_SLOW: usize = 200;
const N_CHANGES: i64 = 50;

/// Seen to fail without a limit for each host.
#[tokio::test]
async fn two_hundred_subscriptions_to_a_slow_host_hold_up_no_other_one() {
    let works = Works::open().await;
    let (gate, opened) = watch::channel(false);
    let slow = Receiver::at("127.0.0.1", move |_| {
        let mut opened = opened.clone();
        Box::pin(async move {
            let _gone = opened.wait_for(|is_open| *is_open).await;
            Answer::Status(200)
        })
    })
    .await;
    let quick = Receiver::at("127.0.0.2", |_| Box::pin(async { Answer::Status(200) })).await;
    works.subscribe("orders", &quick.url("/quick"), None).await;
    // nothing listens there
    works.subscribe("orders", "http://127.0.0.3:9/", None).await;
    for tenth in 0..10 {
        let url = slow.url(&format!("/slow/{tenth}"));
        join_all((0..N_SLOW / 10).map(|_| works.subscribe("orders", &url, None))).await;
    }
    changed(&works, 1).await;
    // one replica may have claimed all of them, and sends what its share of the host allows
    let is_full = || MAX_OPEN / N_REPLICAS <= slow.open().0;
    until("a slow host with as much as it may get", async || is_full().then_some(())).await;

    for n in 2..=N_CHANGES {
        changed(&works, n).await;
    }
    until("all that is for the quick one", async || {
        let n: usize = quick.requests().iter().map(|request| request.events().len()).sum();
        (n == usize::try_from(N_CHANGES).expect("small")).then_some(())
    })
    .await;
    assert!(is_full(), "the slow host is still held: {:?}", slow.open());
    gate.send_replace(true);
    until("what waited", async || (N_SLOW <= slow.n_requests()).then_some(())).await;
    assert!(slow.open().1 <= MAX_OPEN, "{N_REPLICAS} replicas share what a host gets: {:?}", slow.open());
}
