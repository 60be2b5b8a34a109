//! The queue without connections: who gets what.

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

use super::queue::PATIENCE as PASSES;
use super::*;
use crate::wire::budget::Server;

const LONG: Duration = Duration::from_secs(60);

/// A connection with a name, and the marks that it knows.
#[derive(Debug, PartialEq, Eq)]
struct Known(&'static str, Vec<Mark>);

impl Warm for Known {
    fn knows(&self, mark: Mark) -> bool {
        self.1.contains(&mark)
    }
}

/// Places at a server of their own.
fn places(size: usize, queue: usize) -> Places<Known> {
    Places::new(size, queue, &Share::unbounded(), Purpose::Request)
}

/// Somebody without a key.
fn who(mark: Mark) -> Who {
    of_key(mark, 0)
}

fn of_key(mark: Mark, sharer: u64) -> Who {
    Who { mark, sharer, key: None, is_read: true }
}

fn at_once(places: &Places<Known>, mark: Mark) -> Result<Place<Known>, NoPlace> {
    places.take(who(mark), LONG).now_or_never().expect("an answer at once")
}

/// Waits in the queue; returns when it stands there.
async fn waiter(places: &Places<Known>, mark: Mark) -> JoinHandle<Result<Place<Known>, NoPlace>> {
    waiter_as(places, who(mark)).await
}

async fn waiter_as(places: &Places<Known>, who: Who) -> JoinHandle<Result<Place<Known>, NoPlace>> {
    let before = places.load().2;
    let own = places.clone();
    let task = tokio::spawn(async move { own.take(who, LONG).await });
    while places.load().2 == before {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn the_idle_connection_that_knows_the_statement_is_taken_else_the_last_one_used() {
    let places = places(3, 0);
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
    let places = places(1, 64);
    let mut place = at_once(&places, 0).expect("free");
    let head = waiter(&places, 7).await;
    let far = waiter(&places, 8).await;
    let mut suited = Vec::new();
    for _ in 0..PASSES + 2 {
        suited.push(waiter(&places, 1).await);
    }
    let mut order = suited.into_iter();
    for _ in 0..PASSES {
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
    let places = places(1, 2);
    let place = at_once(&places, 0).expect("free");
    let gone = waiter(&places, 1).await;
    let next = waiter(&places, 2).await;
    assert_eq!(at_once(&places, 3).err(), Some(NoPlace::Full));
    gone.abort();
    assert!(gone.await.is_err());
    assert_eq!(places.load(), (0, 0, 1));
    assert_eq!(places.take(who(4), Duration::ZERO).await.err(), Some(NoPlace::Late));
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
    let places = places(2, 8);
    let (place, other) = (at_once(&places, 0).expect("free"), at_once(&places, 0).expect("free"));
    let waiting = waiter(&places, 1).await;
    places.close();
    assert_eq!(waiting.await.expect("no panic").err(), Some(NoPlace::Closed));
    assert_eq!(at_once(&places, 1).err(), Some(NoPlace::Closed));
    place.give_back(Known("k", vec![]));
    drop(other);
    assert_eq!(places.load(), (2, 0, 0));
}

#[tokio::test]
async fn a_freed_place_goes_to_the_key_with_fewest_and_a_full_queue_is_shared() {
    let places = places(2, 4);
    let first = places.take(of_key(0, 1), LONG).await.expect("free");
    let second = places.take(of_key(0, 1), LONG).await.expect("free");
    let mut greedy = Vec::new();
    for _ in 0..4 {
        greedy.push(waiter_as(&places, of_key(0, 1)).await);
    }
    assert_eq!(places.take(of_key(0, 1), LONG).now_or_never().expect("at once").err(), Some(NoPlace::Full));
    // The last request of the key that fills the queue makes place.
    let own = places.clone();
    let other = tokio::spawn(async move { own.take(of_key(0, 2), LONG).await });
    assert_eq!(greedy.pop().expect("four").await.expect("no panic").err(), Some(NoPlace::Full));
    drop(first);
    let other = other.await.expect("no panic").expect("its key has no place, whoever came before");
    drop((second, other));
    let mut served = Vec::new();
    for waiting in greedy {
        served.push(waiting.await.expect("no panic").expect("its turn"));
        served.clear();
    }
    assert_eq!(places.load(), (2, 0, 0));
}

#[tokio::test]
async fn clients_that_read_slowly_leave_a_place_to_other_keys_and_one_of_theirs_to_who_waits_for_long() {
    let places = places(3, 8);
    let mut slow = Vec::new();
    for _ in 0..2 {
        let place = places.take(of_key(0, 1), LONG).await.expect("free");
        place.delivers();
        slow.push(place);
    }
    // The last place is somebody else's.
    let barred = waiter_as(&places, of_key(0, 1)).await;
    let other = places.take(of_key(0, 2), LONG).now_or_never().expect("at once").expect("left for it");
    // It is not the last any more: the one that waited is not barred from what is freed.
    let waiting = waiter_as(&places, of_key(0, 3)).await;
    let stopped = slow[0].stop().expect("not asked before").await;
    assert_eq!(stopped, Ok(Stopped::Outshared), "after a second");
    drop(slow.remove(0));
    let third = waiting.await.expect("no panic").expect("the place that was freed");
    drop((other, third));
    barred.await.expect("no panic").expect("its turn at last");
}

#[tokio::test]
async fn tenants_share_a_server_and_the_one_that_was_idle_for_longest_gives_its_connection() {
    let server = Server::new(4);
    // One place of four is for look-ups.
    let [a, b, c] = [(); 3].map(|()| Places::new(8, 8, &server.share(), Purpose::Request));
    let held = [at_once(&a, 1), at_once(&a, 1), at_once(&a, 1)].map(|place| place.expect("free"));
    let more = waiter(&a, 1).await;
    let other = waiter(&b, 1).await;
    let third = waiter(&c, 1).await;
    assert_eq!((server.load().open, server.load().waiting), (3, 3));
    let [one, two, three] = held;
    one.give_back(Known("one", vec![1]));
    let mut other = other.await.expect("no panic").expect("it has none, and its tenant came first");
    assert!(other.connection().is_none(), "one of its own is to be opened");
    two.give_back(Known("two", vec![1]));
    let third = third.await.expect("no panic").expect("it has none");
    three.give_back(Known("three", vec![1]));
    let mut more = more.await.expect("no panic").expect("nobody has less");
    assert_eq!(more.connection().map(|it| it.0), Some("three"));
    more.give_back(Known("three", vec![1]));
    other.give_back(Known("other", vec![1]));
    third.give_back(Known("third", vec![1]));
    assert_eq!(server.load().open, 3);
    // Nobody waits: the idle one of `a`, the oldest, is closed for `b`.
    let held = [at_once(&b, 1), waiter(&b, 1).await.await.expect("no panic")];
    assert!(held.iter().all(Result::is_ok));
    assert_eq!((a.load().1, b.load().1, c.load().1), (0, 0, 1));
    assert_eq!(server.load().n_reclaimed, 1);
    drop((held, a, b, c));
    assert_eq!(server.load().open, 0);
}
