//! Who waits for a slot, and who is next: the key with fewest slots, and of its requests the first, or one near the first whom
//! the freed connection suits.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

use super::{StatementHash, Stopped, Who};

/// How far from the head the one is looked for whom a freed connection suits.
const NEAR: usize = 16;
/// How often the head lets others pass.
pub(super) const MAX_PASSES: u32 = 16;

pub(super) struct Queue<G> {
    size: usize,
    waiting: VecDeque<Waiter<G>>,
    /// How many wait, by sharer.
    n_waiting: HashMap<u64, usize>,
}

pub(super) struct Waiter<G> {
    pub(super) number: u64,
    pub(super) who: Who,
    pub(super) n_passed: u32,
    /// Goes along with the slot.
    pub(super) stop: oneshot::Sender<Stopped>,
    pub(super) sender: oneshot::Sender<G>,
}

impl<G> Queue<G> {
    pub(super) fn new(size: usize) -> Queue<G> {
        Queue { size, waiting: VecDeque::new(), n_waiting: HashMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether anybody but this sharer waits.
    pub(super) fn has_but(&self, barred: Option<u64>) -> bool {
        self.n_waiting.keys().any(|sharer| Some(*sharer) != barred)
    }

    pub(super) fn sharer(&self, number: u64) -> Option<u64> {
        self.waiting.iter().find(|waiter| waiter.number == number).map(|waiter| waiter.who.sharer)
    }

    /// Adds one at the end. Where the queue is full the last request of the key that fills it goes out for a key with fewer, and
    /// comes back; the error is the newcomer.
    pub(super) fn push(&mut self, waiter: Waiter<G>) -> Result<Option<Waiter<G>>, Waiter<G>> {
        let mut pushed_out = None;
        if self.size <= self.waiting.len() {
            let n_own = self.n_waiting.get(&waiter.who.sharer).copied().unwrap_or_default();
            let most = self.n_waiting.iter().max_by_key(|(_, n)| **n);
            let Some((most, _)) = most.filter(|(_, n)| n_own + 1 < **n) else { return Err(waiter) };
            let last = self.waiting.iter().rposition(|waiter| waiter.who.sharer == *most);
            pushed_out = last.and_then(|at| self.remove_at(at));
        }
        *self.n_waiting.entry(waiter.who.sharer).or_default() += 1;
        self.waiting.push_back(waiter);
        Ok(pushed_out)
    }

    pub(super) fn remove(&mut self, number: u64) {
        if let Some(at) = self.waiting.iter().position(|waiter| waiter.number == number) {
            let _gone = self.remove_at(at);
        }
    }

    pub(super) fn clear(&mut self) -> VecDeque<Waiter<G>> {
        self.n_waiting.clear();
        std::mem::take(&mut self.waiting)
    }

    /// `held`: how many slots a sharer has; `knows`: whether the statement with this hash is prepared on what was freed.
    pub(super) fn next(
        &mut self,
        barred: Option<u64>,
        held: impl Fn(u64) -> usize,
        knows: impl Fn(StatementHash) -> bool,
    ) -> Option<Waiter<G>> {
        let sharers = self.n_waiting.keys().filter(|sharer| Some(**sharer) != barred);
        let least = sharers.map(|sharer| held(*sharer)).min()?;
        let may = |waiter: &Waiter<G>| Some(waiter.who.sharer) != barred && held(waiter.who.sharer) == least;
        let head = self.waiting.iter().position(&may)?;
        let suited = (self.waiting[head].n_passed < MAX_PASSES).then(|| {
            let near =
                self.waiting.iter().enumerate().skip(head).filter(|(_, waiter)| may(waiter)).take(NEAR);
            near.into_iter().find(|(_, waiter)| knows(waiter.who.hash)).map(|(at, _)| at)
        });
        let at = suited.flatten().unwrap_or(head);
        if at != head {
            self.waiting[head].n_passed += 1;
        }
        self.remove_at(at)
    }

    fn remove_at(&mut self, at: usize) -> Option<Waiter<G>> {
        let waiter = self.waiting.remove(at)?;
        if let Some(n) = self.n_waiting.get_mut(&waiter.who.sharer) {
            *n -= 1;
            if *n == 0 {
                self.n_waiting.remove(&waiter.who.sharer);
            }
        }
        Some(waiter)
    }
}
