//! The budget alone: who may open a connection, in which order, and that none waits for itself.

use futures_util::FutureExt as _;

use super::*;
use crate::wire::pool::{Pool, Slot, StatementHash, Warm, Who};

const LONG: Duration = Duration::from_secs(60);

struct NoConnection;

impl Warm for NoConnection {
    fn knows(&self, _: StatementHash) -> bool {
        false
    }
}

fn now(pool: &Pool<NoConnection>) -> Option<Slot<NoConnection>> {
    pool.take(Who::default(), LONG).now_or_never().and_then(Result::ok)
}

#[tokio::test]
async fn calls_leave_places_to_requests_and_both_to_look_ups() {
    let (server, mut held) = (Server::new(8), Vec::new());
    let share = server.share();
    for (purpose, n_open) in [(Purpose::Call, 6), (Purpose::Request, 7), (Purpose::LookUp, 8)] {
        let pool = Pool::new(100, 100, &share, purpose);
        while let Some(slot) = now(&pool) {
            held.push(slot);
        }
        assert_eq!(server.load().open, n_open);
    }
    drop(held);
    assert_eq!((server.load().open, server.load().waiting), (0, 0));
}

/// More tenants than connections, each with more requests than it gets: all of them are served, about as often.
#[tokio::test]
async fn each_tenant_gets_one_in_turn() {
    let server = Server::new(4);
    let served = Arc::new([const { AtomicUsize::new(0) }; 12]);
    let all: Vec<_> = (0..12).map(|_| Pool::new(8, 100, &server.share(), Purpose::Request)).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for (i, pool) in all.iter().enumerate() {
        // The first has ten times as many callers as the others.
        for _ in 0..(if i == 0 { 40 } else { 4 }) {
            let (pool, served) = (pool.clone(), served.clone());
            tasks.spawn(async move {
                while served.iter().any(|n| n.load(Ordering::Relaxed) < 2) {
                    let slot = pool.take(Who::default(), LONG).await.expect("its turn");
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    served[i].fetch_add(1, Ordering::Relaxed);
                    slot.give_back(NoConnection);
                }
            });
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no panic");
    }
    let load = server.load();
    assert!(load.open <= 3 && load.waiting == 0, "{load:?}");
    drop(all);
    assert_eq!(server.load().open, 0);
}
