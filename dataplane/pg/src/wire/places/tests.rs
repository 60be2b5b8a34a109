//! The queue without connections: who gets what.

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// A connection with a name, and the marks that it knows.
#[derive(Debug, PartialEq, Eq)]
struct Known(&'static str, Vec<Mark>);

impl Warm for Known {
    fn knows(&self, mark: Mark) -> bool {
        self.1.contains(&mark)
    }
}

fn at_once(places: &Places<Known>, mark: Mark) -> Result<Place<Known>, NoPlace> {
    places.take(mark, LONG).now_or_never().expect("an answer at once")
}

/// Waits in the queue; returns when it stands there.
async fn waiter(places: &Places<Known>, mark: Mark) -> JoinHandle<Result<Place<Known>, NoPlace>> {
    let before = places.load().2;
    let own = Places { shared: places.shared.clone() };
    let task = tokio::spawn(async move { own.take(mark, LONG).await });
    while places.load().2 == before {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn the_idle_connection_that_knows_the_statement_is_taken_else_the_last_one_used() {
    let places = Places::new(3, 0);
    let [a, b, c] = [(); 3].map(|()| at_once(&places, 0).expect("free"));
    assert_eq!(at_once(&places, 0).err(), Some(NoPlace::Full));
    a.give_back(Known("a", vec![1]));
    b.give_back(Known("b", vec![2]));
    c.give_back(Known("c", vec![3]));
    assert_eq!(places.load(), (3, 3, 0));
    let mut first = at_once(&places, 2).expect("free");
    assert_eq!(first.connection().map(|it| it.0), Some("b"));
    let mut second = at_once(&places, 9).expect("free");
    assert_eq!(second.connection().map(|it| it.0), Some("c"));
    drop((first, second));
    assert_eq!(places.load(), (3, 1, 0), "their connections were closed");
}

#[tokio::test]
async fn a_freed_connection_goes_to_whom_it_suits_but_the_head_is_passed_only_so_often() {
    let places = Places::new(1, 64);
    let mut place = at_once(&places, 0).expect("free");
    let head = waiter(&places, 7).await;
    let far = waiter(&places, 8).await;
    let mut suited = Vec::new();
    for _ in 0..PATIENCE + 2 {
        suited.push(waiter(&places, 1).await);
    }
    let mut order = suited.into_iter();
    for _ in 0..PATIENCE {
        place.give_back(Known("k", vec![1]));
        place = order.next().expect("more").await.expect("no panic").expect("a place");
        assert_eq!(place.connection().map(|it| it.0), Some("k"));
    }
    place.give_back(Known("k", vec![1]));
    place = head.await.expect("no panic").expect("the head's turn");
    assert!(place.connection().is_some());
    // without a connection they come one after the other
    drop(place);
    place = far.await.expect("no panic").expect("a place");
    assert!(place.connection().is_none());
    drop(place);
    drop(order.next().expect("more").await.expect("no panic").expect("a place"));
    drop(order.next().expect("the last").await.expect("no panic").expect("a place"));
    assert_eq!(places.load(), (1, 0, 0));
}

#[tokio::test]
async fn who_goes_away_or_waits_too_long_leaves_its_place_to_the_next() {
    let places = Places::new(1, 2);
    let place = at_once(&places, 0).expect("free");
    let gone = waiter(&places, 1).await;
    let next = waiter(&places, 2).await;
    assert_eq!(at_once(&places, 3).err(), Some(NoPlace::Full));
    gone.abort();
    assert!(gone.await.is_err());
    assert_eq!(places.load(), (0, 0, 1));
    assert_eq!(places.take(4, Duration::ZERO).await.err(), Some(NoPlace::Late));
    assert_eq!(places.load(), (0, 0, 1));

    // Given, and never fetched: the waiter is dropped before it runs again.
    place.give_back(Known("k", vec![]));
    assert_eq!(places.load(), (0, 0, 0));
    next.abort();
    let _aborted = next.await;
    assert_eq!(places.load(), (1, 1, 0), "the connection is idle again");
}

#[tokio::test]
async fn a_closed_lane_gives_nothing_and_keeps_nothing() {
    let places = Places::new(2, 8);
    let (place, other) = (at_once(&places, 0).expect("free"), at_once(&places, 0).expect("free"));
    let waiting = waiter(&places, 1).await;
    places.close();
    assert_eq!(waiting.await.expect("no panic").err(), Some(NoPlace::Closed));
    assert_eq!(at_once(&places, 1).err(), Some(NoPlace::Closed));
    place.give_back(Known("k", vec![]));
    drop(other);
    assert_eq!(places.load(), (2, 0, 0));
}
