//! What a pool has: idle connections, slots that are taken, and who waits for one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::queue::{Queue, Waiter};
use super::{MIN_DELIVERY, Permit, StatementHash, Stopped, Warm, Who};
use crate::tenant::keys::Found;

pub(super) struct State<C> {
    /// At most one for each slot that is not taken, the one that was idle for longest first. The last one used is the first
    /// taken, so that a quiet pool keeps few warm.
    pub(super) idle: Vec<(Instant, C, Permit)>,
    pub(super) taken: HashMap<u64, Taken>,
    pub(super) queue: Queue<(Option<C>, Permit)>,
    pub(super) last: u64,
    /// The server knows that a permit is wanted.
    pub(super) wants: bool,
    pub(super) is_closed: bool,
}

/// A slot that is taken.
pub(super) struct Taken {
    who: Who,
    since: Instant,
    /// Since when its answer is being delivered.
    pub(super) delivering: Option<Instant>,
    /// `None`: it was told to stop.
    stop: Option<oneshot::Sender<Stopped>>,
}

impl Taken {
    /// `None`: it was told before.
    fn stop(&mut self, why: Stopped) -> Option<()> {
        // Who does not listen any more has ended.
        self.stop.take().map(|stop| stop.send(why).unwrap_or_default())
    }
}

impl<C: Warm> State<C> {
    pub(super) fn new(queue: usize) -> State<C> {
        State {
            idle: Vec::new(),
            taken: HashMap::new(),
            queue: Queue::new(queue),
            last: 0,
            wants: false,
            is_closed: false,
        }
    }

    /// The keys whose slots have been taken since then or longer, as often as they have some.
    pub(super) fn keys(&self, before: Instant) -> Vec<Arc<Found>> {
        let old = self.taken.values().filter(|taken| taken.since <= before && taken.stop.is_some());
        old.filter_map(|taken| taken.who.key.clone()).collect()
    }

    /// Ends what runs for these keys, and says how many exchanges that were.
    pub(super) fn stop(&mut self, is_dead: impl Fn(&Found) -> bool) -> usize {
        let of_key = |taken: &&mut Taken| taken.who.key.as_ref().is_some_and(|key| is_dead(key));
        self.taken.values_mut().filter(of_key).filter_map(|taken| taken.stop(Stopped::Dead)).count()
    }

    /// An idle connection, best one that has the statement prepared, else the last one used.
    pub(super) fn idle_for(&mut self, hash: StatementHash) -> Option<(C, Permit)> {
        let knowing = self.idle.iter().rposition(|(_, connection, _)| connection.knows(hash));
        let found = match knowing {
            Some(i) => Some(self.idle.remove(i)),
            None => self.idle.pop(),
        };
        found.map(|(_, connection, permit)| (connection, permit))
    }

    /// The key that may not take the last slot, where all others deliver its answers: a client that reads slowly keeps its slot
    /// for long.
    pub(super) fn barred(&self, size: usize) -> Option<u64> {
        if size < 2 || self.taken.len() + 1 != size {
            return None;
        }
        let sharer = self.taken.values().next()?.who.sharer;
        let is_all =
            self.taken.values().all(|taken| taken.who.sharer == sharer && taken.delivering.is_some());
        is_all.then_some(sharer)
    }

    /// Gives a connection, or the permit to open one, to whoever is next. What nobody takes comes back.
    pub(super) fn give(
        &mut self,
        size: usize,
        connection: Option<C>,
        permit: Permit,
    ) -> Option<(Option<C>, Permit)> {
        let mut given = (connection, permit);
        loop {
            if self.queue.is_empty() {
                return Some(given);
            }
            let (barred, held) = (self.barred(size), held(&self.taken));
            let knows = |hash| given.0.as_ref().is_some_and(|connection| connection.knows(hash));
            let Some(waiter) = self.queue.next(barred, held, knows) else { return Some(given) };
            let Waiter { number, who, stop, sender, .. } = waiter;
            match sender.send(given) {
                Ok(()) => {
                    self.taken.insert(number, Taken::new(who, stop));
                    return None;
                }
                Err(back) => given = back,
            }
        }
    }

    /// Ends the answer that is being delivered for longest, among those of the key with most slots, more than `least`; or else,
    /// where `any`, a read that runs for long. False: there is none. One at a time.
    pub(super) fn cut(&mut self, any: bool, least: impl Fn(&dyn Fn(u64) -> usize) -> usize) -> bool {
        if self.taken.values().any(|taken| taken.stop.is_none()) {
            return true;
        }
        let held = held(&self.taken);
        let least = least(&held);
        let of = |(number, taken): (&u64, &Taken)| {
            let since = taken.delivering.or_else(|| (any && taken.who.is_read).then_some(taken.since))?;
            let n_held = held(taken.who.sharer);
            let is_due = MIN_DELIVERY <= since.elapsed() && least < n_held;
            is_due.then_some((taken.delivering.is_none(), Reverse(n_held), since, *number))
        };
        let found = self.taken.iter().filter_map(of).min().map(|(.., number)| number);
        drop(held);
        let Some(taken) = found.and_then(|number| self.taken.get_mut(&number)) else { return false };
        taken.stop(Stopped::Outshared).is_some()
    }
}

impl Taken {
    pub(super) fn new(who: Who, stop: oneshot::Sender<Stopped>) -> Taken {
        Taken { who, since: Instant::now(), delivering: None, stop: Some(stop) }
    }
}

/// How many slots a sharer has.
fn held(taken: &HashMap<u64, Taken>) -> impl Fn(u64) -> usize {
    let mut n_held: HashMap<u64, usize> = HashMap::new();
    for taken in taken.values() {
        *n_held.entry(taken.who.sharer).or_default() += 1;
    }
    move |sharer| n_held.get(&sharer).copied().unwrap_or_default()
}
