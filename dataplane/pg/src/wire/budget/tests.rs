//! The budget alone: who may open a connection, in which order, and that none waits for itself.

use futures_util::FutureExt as _;

use super::*;
use crate::wire::request_pool::places::{Mark, Place, Places, Warm, Who};

const LONG: Duration = Duration::from_secs(60);

struct Nothing;

impl Warm for Nothing {
    fn knows(&self, _: Mark) -> bool {
        false
    }
}

fn now(places: &Places<Nothing>) -> Option<Place<Nothing>> {
    places.take(Who::default(), LONG).now_or_never().and_then(Result::ok)
}

#[tokio::test]
async fn calls_leave_places_to_requests_and_both_to_look_ups() {
    let (server, mut held) = (Server::new(8), Vec::new());
    let share = server.share();
    for (purpose, n_open) in [(Purpose::Call, 6), (Purpose::Request, 7), (Purpose::LookUp, 8)] {
        let places = Places::new(100, 100, &share, purpose);
        while let Some(place) = now(&places) {
            held.push(place);
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
    let all: Vec<_> = (0..12).map(|_| Places::new(8, 100, &server.share(), Purpose::Request)).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for (i, places) in all.iter().enumerate() {
        // The first has ten times as many callers as the others.
        for _ in 0..(if i == 0 { 40 } else { 4 }) {
            let (places, served) = (places.clone(), served.clone());
            tasks.spawn(async move {
                while served.iter().any(|n| n.load(Ordering::Relaxed) < 2) {
                    let place = places.take(Who::default(), LONG).await.expect("its turn");
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    served[i].fetch_add(1, Ordering::Relaxed);
                    place.give_back(Nothing);
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
