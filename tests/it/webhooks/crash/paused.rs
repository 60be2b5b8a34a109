//! A replica that stands still for longer than its lease, and then goes on.

use nix::sys::signal::Signal;
use rowgate_tests::servers::receiver::Receiver;
use rowgate_tests::wait::until;

use super::works::{Works, changed};

/// Seen to fail where what became of a batch is written without a look at the lease: both later events came twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lost_its_lease_while_it_stood_still_moves_nothing_back() {
    stands_still(&[]).await;
}

/// As above, of batches that are written with those of other subscriptions, and seen to fail likewise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn and_so_where_it_delivered_before() {
    stands_still(&[10, 11]).await;
}

/// While it delivers event 1, once it has delivered `before`.
async fn stands_still(before: &[i64]) {
    let mut works = Works::open().await;
    works.kill(&[1]).await;
    let (receiver, gate) = Receiver::gated(true, || 200).await;
    let id = works.subscribe("orders", &receiver.url("/orders"), None).await;
    let requested = async |n: usize| {
        until(&format!("request {n}"), async || (receiver.n_requests() == n).then_some(())).await;
    };
    for (i, n) in before.iter().enumerate() {
        changed(&works, *n).await;
        requested(i + 1).await;
        works.is_settled(&id).await;
    }
    gate.send_replace(false);
    changed(&works, 1).await;
    requested(before.len() + 1).await;
    works.pause(0).await;
    // its answer waits for it
    gate.send_replace(true);
    works.start().await;
    let came = |n: i64| {
        let requests = receiver.requests();
        let events = requests.iter().flat_map(|request| request.events());
        events.filter(|event| event["data"]["id"] == n).count()
    };
    let arrives = async |n: i64, times: usize| {
        until(&format!("event {n}"), async || (came(n) == times).then_some(())).await;
    };
    arrives(1, 2).await;
    for n in [2, 3] {
        changed(&works, n).await;
        arrives(n, 1).await;
    }
    works.is_settled(&id).await;
    works.signal(0, Signal::SIGCONT);
    // what it delivers alone is behind what it had to write of before
    works.kill(&[1]).await;
    for n in [4, 5] {
        changed(&works, n).await;
        arrives(n, 1).await;
    }
    works.is_settled(&id).await;
    assert_eq!([1, 2, 3, 4, 5].map(came), [2, 1, 1, 1, 1]);
}
