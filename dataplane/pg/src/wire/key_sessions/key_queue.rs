//! Whose statement is next: so many at once for a tenant, and never all of them for one key.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rowgate_core::name::Ulid;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::wire::pool::NoSlot;

/// A cheap handle; clones share the queue.
#[derive(Debug, Clone)]
pub(super) struct KeyQueue {
    shared: Arc<Shared>,
}

/// The right to run one, given back when it is dropped.
#[derive(Debug)]
pub struct KeyPermit {
    key: Ulid,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    size: usize,
    queue: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    n_running: usize,
    running: HashMap<Ulid, usize>,
    waiting: VecDeque<Waiter>,
    last: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    key: Ulid,
    /// Sent when it may begin.
    sender: oneshot::Sender<()>,
}

/// Somebody in the queue, who leaves it when this is dropped; a permit that comes too late goes on to the next.
struct Queued {
    number: u64,
    key: Ulid,
    shared: Arc<Shared>,
    receiver: oneshot::Receiver<()>,
}

impl KeyQueue {
    /// `size` calls at once and `queue` that wait. One key gets all but one of the first, and half of the second.
    pub(super) fn new(size: usize, queue: usize) -> KeyQueue {
        KeyQueue { shared: Arc::new(Shared { size, queue, state: Mutex::default() }) }
    }

    /// The right to a call of `key`, at once or after waiting for it.
    pub(super) async fn take(&self, key: &Ulid, wait: Duration) -> Result<KeyPermit, NoSlot> {
        let permit = || KeyPermit { key: key.clone(), shared: self.shared.clone() };
        let Some((number, receiver)) = self.shared.enter(key)? else { return Ok(permit()) };
        let mut queued = Queued { number, key: key.clone(), shared: self.shared.clone(), receiver };
        match timeout(wait, &mut queued.receiver).await {
            Ok(Ok(())) => Ok(permit()),
            Ok(Err(_)) | Err(_) => Err(NoSlot::Late),
        }
    }

    /// How many run, and how many wait.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.shared.state();
        (state.n_running, state.waiting.len())
    }
}

impl Shared {
    /// How many calls of one key may run: one place is always somebody else's.
    fn share(&self) -> usize {
        self.size.saturating_sub(1).max(1)
    }

    /// `None`: it may begin. Else its place in the queue.
    fn enter(&self, key: &Ulid) -> Result<Option<(u64, oneshot::Receiver<()>)>, NoSlot> {
        let mut state = self.state();
        if state.n_running < self.size && state.n_of(key) < self.share() {
            state.begin(key);
            return Ok(None);
        }
        let n_own = state.waiting.iter().filter(|waiter| waiter.key == *key).count();
        if self.queue <= state.waiting.len() || self.queue.div_ceil(2) <= n_own {
            return Err(NoSlot::Full);
        }
        state.last += 1;
        let (number, (sender, receiver)) = (state.last, oneshot::channel());
        state.waiting.push_back(Waiter { number, key: key.clone(), sender });
        Ok(Some((number, receiver)))
    }

    /// A call of `key` has ended; whoever waits and may, begins.
    fn end(&self, key: &Ulid) {
        let mut state = self.state();
        state.end(key);
        while let Some(waiter) = state.next(self.size, self.share()) {
            if waiter.sender.send(()).is_ok() {
                state.begin(&waiter.key);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way.
        self.state.lock()
    }
}

impl State {
    fn n_of(&self, key: &Ulid) -> usize {
        self.running.get(key).copied().unwrap_or_default()
    }

    fn begin(&mut self, key: &Ulid) {
        self.n_running += 1;
        *self.running.entry(key.clone()).or_default() += 1;
    }

    fn end(&mut self, key: &Ulid) {
        self.n_running -= 1;
        match self.n_of(key) {
            0 | 1 => self.running.remove(key),
            n => self.running.insert(key.clone(), n - 1),
        };
    }

    /// Of those that may begin the one whose key has the fewest calls running; of equals who has waited longest.
    fn next(&mut self, size: usize, share: usize) -> Option<Waiter> {
        if size <= self.n_running {
            return None;
        }
        let waiting = self.waiting.iter().enumerate();
        let may = waiting.map(|(at, waiter)| (self.n_of(&waiter.key), at)).filter(|(n, _)| *n < share);
        let (_, at) = may.min()?;
        self.waiting.remove(at)
    }
}

impl Drop for KeyPermit {
    fn drop(&mut self) {
        self.shared.end(&self.key);
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.shared.state().waiting.retain(|waiter| waiter.number != self.number);
        self.receiver.close();
        if self.receiver.try_recv().is_ok() {
            self.shared.end(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u64) -> Ulid {
        Ulid::from_parts(i, [0; 10])
    }

    const MAX_WAIT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn one_key_never_holds_all_permits_and_fills_half_of_the_queue() {
        let queue = KeyQueue::new(3, 4);
        let first = queue.take(&key(1), MAX_WAIT).await.expect("free");
        let second = queue.take(&key(1), MAX_WAIT).await.expect("free");
        assert!(
            matches!(queue.take(&key(1), MAX_WAIT).await, Err(NoSlot::Late)),
            "two of three are its share"
        );
        let other = queue.take(&key(2), MAX_WAIT).await.expect("there is always one for another key");
        assert_eq!(queue.load(), (3, 0));

        let waits = |i: u64| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take(&key(i), Duration::from_secs(60)).await })
        };
        let (one, two) = (waits(1), waits(1));
        while queue.load().1 < 2 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(queue.take(&key(1), MAX_WAIT).await, Err(NoSlot::Full)), "its half of the queue");
        let three = waits(3);
        while queue.load().1 < 3 {
            tokio::task::yield_now().await;
        }
        drop(first);
        let third = three.await.expect("no panic").expect("its key has the fewest calls");
        drop((second, third, other));
        let (one, two) = (one.await.expect("no panic"), two.await.expect("no panic"));
        assert!(one.is_ok() && two.is_ok());
        drop((one, two));
        assert_eq!(queue.load(), (0, 0));
    }

    #[tokio::test]
    async fn a_permit_for_a_caller_who_has_gone_goes_to_the_next() {
        let queue = KeyQueue::new(1, 8);
        let held = queue.take(&key(1), MAX_WAIT).await.expect("free");
        let second = key(2);
        let mut gone = Box::pin(queue.take(&second, Duration::from_secs(60)));
        assert!(futures_util::poll!(&mut gone).is_pending());
        // It may begin, and no one takes the permit.
        drop(held);
        drop(gone);
        assert_eq!(queue.load(), (0, 0));
        queue.take(&key(3), MAX_WAIT).await.expect("free again");
    }
}
