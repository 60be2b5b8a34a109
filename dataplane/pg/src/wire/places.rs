//! The places of a lane and the queue before them. A place is the right to use one of its connections, mostly with a
//! warm one at hand.
//!
//! A freed connection goes to somebody near the head of the queue whose statement it has prepared, so that many keys
//! share few connections without pushing each other's statements out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// How far from the head the one is looked for whom a freed connection suits.
const NEAR: usize = 16;
/// How often the head of the queue lets others pass.
const PATIENCE: u32 = 16;

/// Role and text of a statement, as one number.
pub(super) type Mark = u64;

/// What a place may hold.
pub(super) trait Warm {
    /// Whether the statement with this mark is prepared.
    fn knows(&self, mark: Mark) -> bool;
}

/// A cheap handle; clones share the places.
#[derive(Debug)]
pub(super) struct Places<C: Warm> {
    shared: Arc<Shared<C>>,
}

/// Given back when it is dropped, with the connection that is left in it.
#[derive(Debug)]
pub(super) struct Place<C: Warm> {
    connection: Option<C>,
    shared: Arc<Shared<C>>,
}

/// Why there was no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// As many wait as may.
    Full,
    /// None became free in time.
    Late,
    Closed,
}

#[derive(Debug)]
struct Shared<C> {
    size: usize,
    queue: usize,
    state: Mutex<State<C>>,
}

#[derive(Debug)]
struct State<C> {
    n_free: usize,
    /// At most one for each free place. The last one used is the first taken, so that a quiet lane keeps few warm.
    idle: Vec<(Instant, C)>,
    waiting: VecDeque<Waiter<C>>,
    last_waiter: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Waiter<C> {
    number: u64,
    mark: Mark,
    n_passed: u32,
    /// A place, perhaps with a connection.
    sender: oneshot::Sender<Option<C>>,
}

/// Somebody in the queue, who leaves it when this is dropped; a place that comes too late goes on to the next.
struct Queued<C: Warm> {
    number: u64,
    shared: Arc<Shared<C>>,
    receiver: oneshot::Receiver<Option<C>>,
}

impl<C: Warm> Places<C> {
    pub(super) fn new(size: usize, queue: usize) -> Places<C> {
        let state = State {
            n_free: size,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            last_waiter: 0,
            is_closed: false,
        };
        Places { shared: Arc::new(Shared { size, queue, state: Mutex::new(state) }) }
    }

    /// A place at once, or after waiting for one in the queue.
    pub(super) async fn take(&self, mark: Mark, wait: Duration) -> Result<Place<C>, NoPlace> {
        let mut queued = match self.shared.enter(mark)? {
            Entered::Place(connection) => return Ok(self.place(connection)),
            Entered::Queue(number, receiver) => Queued { number, shared: self.shared.clone(), receiver },
        };
        match timeout(wait, &mut queued.receiver).await {
            Ok(Ok(connection)) => Ok(self.place(connection)),
            Ok(Err(_)) => Err(NoPlace::Closed),
            Err(_) => Err(NoPlace::Late),
        }
    }

    /// A place, if one is free; its connection may be the only one.
    pub(super) fn try_take(&self) -> Option<Place<C>> {
        let mut state = self.shared.state();
        if state.is_closed || state.n_free == 0 {
            return None;
        }
        state.n_free -= 1;
        // those that are not open yet count as free places, too
        let connection = if state.n_free < state.idle.len() { state.idle.pop() } else { None };
        drop(state);
        Some(self.place(connection.map(|(_, connection)| connection)))
    }

    fn place(&self, connection: Option<C>) -> Place<C> {
        Place { connection, shared: self.shared.clone() }
    }

    /// Free places, idle connections, and how many wait.
    pub(super) fn load(&self) -> (usize, usize, usize) {
        let state = self.shared.state();
        (state.n_free, state.idle.len(), state.waiting.len())
    }

    /// Drops the connections that nobody has used for `age`.
    pub(super) fn trim(&self, age: Duration) {
        self.shared.state().idle.retain(|(since, _)| since.elapsed() < age);
    }

    /// Nobody gets a place any more, and idle connections are dropped.
    pub(super) fn close(&self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        state.waiting.clear();
        state.idle.clear();
    }
}

impl<C: Warm> Place<C> {
    pub(super) fn connection(&mut self) -> Option<C> {
        self.connection.take()
    }

    /// Gives the place back with a connection that is between two exchanges.
    pub(super) fn give_back(mut self, connection: C) {
        self.connection = Some(connection);
    }
}

impl<C: Warm> Drop for Place<C> {
    fn drop(&mut self) {
        self.shared.free(self.connection.take());
    }
}

impl<C: Warm> Drop for Queued<C> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(i) = state.waiting.iter().position(|waiter| waiter.number == self.number) {
            state.waiting.remove(i);
        }
        drop(state);
        self.receiver.close();
        if let Ok(connection) = self.receiver.try_recv() {
            self.shared.free(connection);
        }
    }
}

enum Entered<C> {
    Place(Option<C>),
    Queue(u64, oneshot::Receiver<Option<C>>),
}

impl<C: Warm> Shared<C> {
    fn enter(&self, mark: Mark) -> Result<Entered<C>, NoPlace> {
        let mut state = self.state();
        if state.is_closed {
            return Err(NoPlace::Closed);
        }
        // While somebody waits nothing is free.
        if state.n_free > 0 {
            state.n_free -= 1;
            let knowing = state.idle.iter().rposition(|(_, connection)| connection.knows(mark));
            let connection = match knowing {
                Some(i) => Some(state.idle.remove(i)),
                // those that are not open yet count as free places
                None => state.idle.pop(),
            };
            return Ok(Entered::Place(connection.map(|(_, connection)| connection)));
        }
        if self.queue <= state.waiting.len() {
            return Err(NoPlace::Full);
        }
        state.last_waiter += 1;
        let (number, (sender, receiver)) = (state.last_waiter, oneshot::channel());
        state.waiting.push_back(Waiter { number, mark, n_passed: 0, sender });
        Ok(Entered::Queue(number, receiver))
    }

    fn free(&self, mut connection: Option<C>) {
        let mut state = self.state();
        while let Some(waiter) = state.next(connection.as_ref()) {
            match waiter.sender.send(connection) {
                Ok(()) => return,
                Err(back) => connection = back,
            }
        }
        state.n_free += 1;
        debug_assert!(state.n_free <= self.size, "a place was given back twice");
        if let Some(connection) = connection.filter(|_| !state.is_closed) {
            state.idle.push((Instant::now(), connection));
        }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        // Nothing in here panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Warm> State<C> {
    /// Who gets a freed place: the head, or somebody behind it whom the connection suits better.
    fn next(&mut self, connection: Option<&C>) -> Option<Waiter<C>> {
        let head = self.waiting.front_mut()?;
        let suited = connection.filter(|_| head.n_passed < PATIENCE).and_then(|connection| {
            self.waiting.iter().take(NEAR).position(|waiter| connection.knows(waiter.mark))
        });
        match suited {
            Some(i) if i > 0 => {
                self.waiting[0].n_passed += 1;
                self.waiting.remove(i)
            }
            _ => self.waiting.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests;
