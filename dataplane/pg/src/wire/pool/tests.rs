//! The queue without connections: who gets what.

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

use super::queue::MAX_PASSES;
use super::*;
use crate::wire::budget::Server;

const LONG: Duration = Duration::from_secs(60);

/// A connection with a name, and the hashes of the statements that are prepared on it.
#[derive(Debug, PartialEq, Eq)]
struct Named(&'static str, Vec<StatementHash>);

impl Warm for Named {
    fn knows(&self, hash: StatementHash) -> bool {
        self.1.contains(&hash)
    }
}

/// A pool at a server of its own.
fn pool(size: usize, queue: usize) -> Pool<Named> {
    Pool::new(size, queue, &Share::unbounded(), Purpose::Request)
}

/// Somebody without a key.
fn who(hash: StatementHash) -> Who {
    of_key(hash, 0)
}

fn of_key(hash: StatementHash, sharer: u64) -> Who {
    Who { hash, sharer, key: None, is_read: true }
}

fn at_once(pool: &Pool<Named>, hash: StatementHash) -> Result<Slot<Named>, NoSlot> {
    pool.take(who(hash), LONG).now_or_never().expect("an answer at once")
}

/// Waits in the queue; returns when it stands there.
async fn waiter(pool: &Pool<Named>, hash: StatementHash) -> JoinHandle<Result<Slot<Named>, NoSlot>> {
    waiter_as(pool, who(hash)).await
}

async fn waiter_as(pool: &Pool<Named>, who: Who) -> JoinHandle<Result<Slot<Named>, NoSlot>> {
    let before = pool.load().2;
    let own = pool.clone();
    let task = tokio::spawn(async move { own.take(who, LONG).await });
    while pool.load().2 == before {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn the_idle_connection_that_knows_the_statement_is_taken_else_the_last_one_used() {
    let pool = pool(3, 0);
    let [a, b, c] = [(); 3].map(|()| at_once(&pool, 0).expect("free"));
    assert_eq!(at_once(&pool, 0).err(), Some(NoSlot::Full));
    a.give_back(Named("a", vec![1]));
    b.give_back(Named("b", vec![2]));
    c.give_back(Named("c", vec![3]));
    assert_eq!(pool.load(), (3, 3, 0));
    let mut first = at_once(&pool, 2).expect("free");
    assert_eq!(first.connection().map(|it| it.0), Some("b"));
    let mut second = at_once(&pool, 9).expect("free");
    assert_eq!(second.connection().map(|it| it.0), Some("c"));
    drop((first, second));
    assert_eq!(pool.load(), (3, 1, 0), "their connections were closed");
}

#[tokio::test]
async fn a_freed_connection_goes_to_whom_it_suits_but_the_head_is_passed_only_so_often() {
    let pool = pool(1, 64);
    let mut slot = at_once(&pool, 0).expect("free");
    let head = waiter(&pool, 7).await;
    let far = waiter(&pool, 8).await;
    let mut suited = Vec::new();
    for _ in 0..MAX_PASSES + 2 {
        suited.push(waiter(&pool, 1).await);
    }
    let mut order = suited.into_iter();
    for _ in 0..MAX_PASSES {
        slot.give_back(Named("k", vec![1]));
        slot = order.next().expect("more").await.expect("no panic").expect("a slot");
        assert_eq!(slot.connection().map(|it| it.0), Some("k"));
    }
    slot.give_back(Named("k", vec![1]));
    slot = head.await.expect("no panic").expect("the head's turn");
    assert!(slot.connection().is_some());
    // without a connection they come one after the other
    drop(slot);
    slot = far.await.expect("no panic").expect("a slot");
    assert!(slot.connection().is_none());
    drop(slot);
    drop(order.next().expect("more").await.expect("no panic").expect("a slot"));
    drop(order.next().expect("the last").await.expect("no panic").expect("a slot"));
    assert_eq!(pool.load(), (1, 0, 0));
}

#[tokio::test]
async fn who_goes_away_or_waits_too_long_leaves_its_turn_to_the_next() {
    let pool = pool(1, 2);
    let slot = at_once(&pool, 0).expect("free");
    let gone = waiter(&pool, 1).await;
    let next = waiter(&pool, 2).await;
    assert_eq!(at_once(&pool, 3).err(), Some(NoSlot::Full));
    gone.abort();
    assert!(gone.await.is_err());
    assert_eq!(pool.load(), (0, 0, 1));
    assert_eq!(pool.take(who(4), Duration::ZERO).await.err(), Some(NoSlot::Late));
    assert_eq!(pool.load(), (0, 0, 1));

    // Given, and never fetched: the waiter is dropped before it runs again.
    slot.give_back(Named("k", vec![]));
    assert_eq!(pool.load(), (0, 0, 0));
    next.abort();
    let _aborted = next.await;
    assert_eq!(pool.load(), (1, 1, 0), "the connection is idle again");
}

#[tokio::test]
async fn a_closed_pool_gives_nothing_and_keeps_nothing() {
    let pool = pool(2, 8);
    let (slot, other) = (at_once(&pool, 0).expect("free"), at_once(&pool, 0).expect("free"));
    let waiting = waiter(&pool, 1).await;
    pool.close();
    assert_eq!(waiting.await.expect("no panic").err(), Some(NoSlot::Closed));
    assert_eq!(at_once(&pool, 1).err(), Some(NoSlot::Closed));
    slot.give_back(Named("k", vec![]));
    drop(other);
    assert_eq!(pool.load(), (2, 0, 0));
}

#[tokio::test]
async fn a_freed_slot_goes_to_the_key_with_fewest_and_a_full_queue_is_shared() {
    let pool = pool(2, 4);
    let first = pool.take(of_key(0, 1), LONG).await.expect("free");
    let second = pool.take(of_key(0, 1), LONG).await.expect("free");
    let mut greedy = Vec::new();
    for _ in 0..4 {
        greedy.push(waiter_as(&pool, of_key(0, 1)).await);
    }
    assert_eq!(pool.take(of_key(0, 1), LONG).now_or_never().expect("at once").err(), Some(NoSlot::Full));
    // The last request of the key that fills the queue makes room.
    let own = pool.clone();
    let other = tokio::spawn(async move { own.take(of_key(0, 2), LONG).await });
    assert_eq!(greedy.pop().expect("four").await.expect("no panic").err(), Some(NoSlot::Full));
    drop(first);
    let other = other.await.expect("no panic").expect("its key has no slot, whoever came before");
    drop((second, other));
    let mut served = Vec::new();
    for waiting in greedy {
        served.push(waiting.await.expect("no panic").expect("its turn"));
        served.clear();
    }
    assert_eq!(pool.load(), (2, 0, 0));
}

#[tokio::test]
async fn clients_that_read_slowly_leave_a_slot_to_other_keys_and_one_of_theirs_to_who_waits_for_long() {
    let pool = pool(3, 8);
    let mut slow = Vec::new();
    for _ in 0..2 {
        let slot = pool.take(of_key(0, 1), LONG).await.expect("free");
        slot.delivers();
        slow.push(slot);
    }
    // The last slot is somebody else's.
    let barred = waiter_as(&pool, of_key(0, 1)).await;
    let other = pool.take(of_key(0, 2), LONG).now_or_never().expect("at once").expect("left for it");
    // It is not the last any more: the one that waited is not barred from what is freed.
    let waiting = waiter_as(&pool, of_key(0, 3)).await;
    let stopped = slow[0].stop().expect("not asked before").await;
    assert_eq!(stopped, Ok(Stopped::Outshared), "after a second");
    drop(slow.remove(0));
    let third = waiting.await.expect("no panic").expect("the slot that was freed");
    drop((other, third));
    barred.await.expect("no panic").expect("its turn at last");
}

#[tokio::test]
async fn tenants_share_a_server_and_the_one_that_was_idle_for_longest_gives_its_connection() {
    let server = Server::new(4);
    // One slot of four is for look-ups.
    let [a, b, c] = [(); 3].map(|()| Pool::new(8, 8, &server.share(), Purpose::Request));
    let held = [at_once(&a, 1), at_once(&a, 1), at_once(&a, 1)].map(|slot| slot.expect("free"));
    let more = waiter(&a, 1).await;
    let other = waiter(&b, 1).await;
    let third = waiter(&c, 1).await;
    assert_eq!((server.load().open, server.load().waiting), (3, 3));
    let [one, two, three] = held;
    one.give_back(Named("one", vec![1]));
    let mut other = other.await.expect("no panic").expect("it has none, and its tenant came first");
    assert!(other.connection().is_none(), "one of its own is to be opened");
    two.give_back(Named("two", vec![1]));
    let third = third.await.expect("no panic").expect("it has none");
    three.give_back(Named("three", vec![1]));
    let mut more = more.await.expect("no panic").expect("nobody has less");
    assert_eq!(more.connection().map(|it| it.0), Some("three"));
    more.give_back(Named("three", vec![1]));
    other.give_back(Named("other", vec![1]));
    third.give_back(Named("third", vec![1]));
    assert_eq!(server.load().open, 3);
    // Nobody waits: the idle one of `a`, the oldest, is closed for `b`.
    let held = [at_once(&b, 1), waiter(&b, 1).await.await.expect("no panic")];
    assert!(held.iter().all(Result::is_ok));
    assert_eq!((a.load().1, b.load().1, c.load().1), (0, 0, 1));
    assert_eq!(server.load().n_reclaimed, 1);
    drop((held, a, b, c));
    assert_eq!(server.load().open, 0);
}
