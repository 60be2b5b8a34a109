//! The slots of a pool and the queue before them. A slot is the right to use one of its connections, mostly with a
//! warm one at hand, else with the server's permit to open one.
//!
//! A freed connection goes to the key with fewest slots, and of its requests to one near the head of the queue whose statement
//! it has prepared, so that many keys share few connections without pushing each other's statements out.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::tenant::keys::Found;
use crate::wire::budget::{Lender, Member, Permit, Purpose, Share};
use queue::Waiter;
use state::{State, Taken};

mod queue;
mod state;

/// How long a caller waits before an answer that is being delivered is ended for it, and how long that delivery has had by then.
const MIN_DELIVERY: Duration = Duration::from_secs(1);

/// Role and text of a statement, as one number.
pub(crate) type StatementHash = u64;

/// What a slot may hold.
pub(crate) trait Warm: Send + 'static {
    /// Whether the statement with this hash is prepared.
    fn knows(&self, hash: StatementHash) -> bool;
}

/// Who wants a slot, and for what.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    pub(crate) hash: StatementHash,
    /// A number of the key, by which slots are shared among keys.
    pub(crate) sharer: u64,
    /// `None`: it is no key's.
    pub(crate) key: Option<Arc<Found>>,
    /// It may be ended at any time, since it changes nothing.
    pub(crate) is_read: bool,
}

/// A cheap handle; clones share the slots.
pub(crate) struct Pool<C: Warm> {
    shared: Arc<Shared<C>>,
}

/// Given back when it is dropped, with the connection that is left in it.
pub(crate) struct Slot<C: Warm> {
    number: u64,
    connection: Option<C>,
    /// For the connection, or to open one; `None` once it was given back.
    permit: Option<Permit>,
    stop: Option<oneshot::Receiver<Stopped>>,
    shared: Arc<Shared<C>>,
}

/// Why there was no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// As many wait as may.
    Full,
    /// None became free in time.
    Late,
    Closed,
}

/// Why what runs in a slot is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Its key died.
    Dead,
    /// Others wait, and have fewer slots.
    Outshared,
}

struct Shared<C: Warm> {
    size: usize,
    member: Member,
    state: Mutex<State<C>>,
}

/// Somebody in the queue, who leaves it when this is dropped; a slot that comes too late goes on to the next.
struct Queued<C: Warm> {
    number: u64,
    shared: Arc<Shared<C>>,
    receiver: oneshot::Receiver<(Option<C>, Permit)>,
}

enum Entered<C> {
    Slot(Option<C>, Permit),
    Queue(oneshot::Receiver<(Option<C>, Permit)>),
}

impl<C: Warm> Clone for Pool<C> {
    fn clone(&self) -> Pool<C> {
        Pool { shared: self.shared.clone() }
    }
}

impl<C: Warm> Pool<C> {
    pub(crate) fn new(size: usize, queue: usize, share: &Share, purpose: Purpose) -> Pool<C> {
        let state = State::new(queue);
        let shared = Arc::new_cyclic(|shared: &Weak<Shared<C>>| {
            let member = share.enlist(purpose, shared.clone());
            Shared { size, member, state: Mutex::new(state) }
        });
        Pool { shared }
    }

    /// A slot at once, or after waiting for one in the queue.
    pub(crate) async fn take(&self, who: Who, wait: Duration) -> Result<Slot<C>, NoSlot> {
        let (number, stop, entered) = self.shared.enter(who)?;
        let receiver = match entered {
            Entered::Slot(connection, permit) => return Ok(self.slot(number, stop, connection, permit)),
            Entered::Queue(receiver) => receiver,
        };
        let mut queued = Queued { number, shared: self.shared.clone(), receiver };
        self.shared.member.make_room();
        let given = async {
            loop {
                match timeout(MIN_DELIVERY, &mut queued.receiver).await {
                    Ok(given) => return given,
                    Err(_) => self.shared.hurry(number),
                }
            }
        };
        match timeout(wait, given).await {
            Ok(Ok((connection, permit))) => Ok(self.slot(number, stop, connection, permit)),
            Ok(Err(_)) if self.shared.state().is_closed => Err(NoSlot::Closed),
            // A request of a key that had fewer in the queue took its turn there.
            Ok(Err(_)) => Err(NoSlot::Full),
            Err(_) => Err(NoSlot::Late),
        }
    }

    fn slot(
        &self,
        number: u64,
        stop: oneshot::Receiver<Stopped>,
        connection: Option<C>,
        permit: Permit,
    ) -> Slot<C> {
        Slot { number, connection, permit: Some(permit), stop: Some(stop), shared: self.shared.clone() }
    }

    /// Free slots, idle connections, and how many wait.
    pub(crate) fn load(&self) -> (usize, usize, usize) {
        let state = self.shared.state();
        (self.shared.size - state.taken.len(), state.idle.len(), state.queue.len())
    }

    /// Drops the connections that nobody has used for `age`.
    pub(crate) fn trim(&self, age: Duration) {
        let mut state = self.shared.state();
        let n_old = state.idle.iter().take_while(|(since, ..)| age <= since.elapsed()).count();
        let old: Vec<_> = state.idle.drain(..n_old).collect();
        drop(state);
        drop(old);
    }

    /// The keys whose slots have been taken for `age`, each once.
    pub(crate) fn keys(&self, age: Duration) -> Vec<Arc<Found>> {
        let Some(before) = Instant::now().checked_sub(age) else { return Vec::new() };
        let mut keys = self.shared.state().keys(before);
        keys.sort_by(|a, b| (&a.id, &a.secret).cmp(&(&b.id, &b.secret)));
        keys.dedup_by(|a, b| (&a.id, &a.secret) == (&b.id, &b.secret));
        keys
    }

    /// Ends what runs for a key that died, and says how many exchanges that were.
    pub(crate) fn stop(&self, is_dead: impl Fn(&Found) -> bool) -> usize {
        self.shared.state().stop(is_dead)
    }

    /// Nobody gets a slot any more, and idle connections are dropped.
    pub(crate) fn close(&self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        let (waiting, idle) = (state.queue.clear(), std::mem::take(&mut state.idle));
        self.shared.note_wishes(&mut state);
        drop(state);
        drop((waiting, idle));
    }
}

impl<C: Warm> Slot<C> {
    pub(crate) fn connection(&mut self) -> Option<C> {
        self.connection.take()
    }

    /// What says that the work is to end. It never comes once the slot was given back.
    pub(crate) fn stop(&mut self) -> Option<oneshot::Receiver<Stopped>> {
        self.stop.take()
    }

    /// From now on only the client keeps it.
    pub(crate) fn delivers(&self) {
        if let Some(taken) = self.shared.state().taken.get_mut(&self.number) {
            taken.delivering = Some(Instant::now());
        }
    }

    /// Gives the slot back with a connection that is between two exchanges.
    pub(crate) fn give_back(mut self, connection: C) {
        self.connection = Some(connection);
    }
}

impl<C: Warm> Drop for Slot<C> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.shared.free(self.number, self.connection.take(), permit);
        }
    }
}

impl<C: Warm> Drop for Queued<C> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.queue.remove(self.number);
        self.shared.note_wishes(&mut state);
        drop(state);
        self.receiver.close();
        if let Ok((connection, permit)) = self.receiver.try_recv() {
            self.shared.free(self.number, connection, permit);
        }
    }
}

impl<C: Warm> Shared<C> {
    fn enter(&self, who: Who) -> Result<(u64, oneshot::Receiver<Stopped>, Entered<C>), NoSlot> {
        let mut state = self.state();
        if state.is_closed {
            return Err(NoSlot::Closed);
        }
        state.last += 1;
        let number = state.last;
        let (stop, stopped) = oneshot::channel();
        let barred = state.barred(self.size);
        let is_free =
            state.taken.len() < self.size && barred != Some(who.sharer) && !state.queue.has_but(barred);
        let found = match is_free.then(|| state.idle_for(who.hash)).flatten() {
            Some((connection, permit)) => Some((Some(connection), permit)),
            None if is_free => self.member.try_permit().map(|permit| (None, permit)),
            None => None,
        };
        if let Some((connection, permit)) = found {
            state.taken.insert(number, Taken::new(who, stop));
            return Ok((number, stopped, Entered::Slot(connection, permit)));
        }
        let (sender, receiver) = oneshot::channel();
        let waiter = Waiter { number, who, n_passed: 0, stop, sender };
        // Dropped behind the lock: it is told that the queue is full.
        let pushed_out = state.queue.push(waiter).map_err(|_refused| NoSlot::Full)?;
        self.note_wishes(&mut state);
        drop(state);
        drop(pushed_out);
        Ok((number, stopped, Entered::Queue(receiver)))
    }

    /// What a freed slot is for: the next in the queue, or to be kept, or another lender of the server.
    fn free(&self, number: u64, connection: Option<C>, permit: Permit) {
        let mut state = self.state();
        state.taken.remove(&number);
        debug_assert!(state.taken.len() < self.size, "more slots were taken than there are");
        let yields = self.member.is_contended() && {
            let barred = state.barred(self.size);
            self.member.must_yield(&permit, state.queue.has_but(barred))
        };
        let mut left = match yields {
            true => Some((connection, permit)),
            false => state.give(self.size, connection, permit),
        };
        let keeps = |(connection, _): &mut (Option<C>, Permit)| connection.is_some() && !yields;
        if let Some((Some(connection), permit)) = left.take_if(keeps).filter(|_| !state.is_closed) {
            state.idle.push((Instant::now(), connection, permit));
        }
        self.note_wishes(&mut state);
        drop(state);
        // What nobody took is closed; its permit goes to who waits at the server.
        drop(left);
    }

    /// Asks the server for a permit, or no longer: where there is a slot for whoever waits, only that is missing.
    fn note_wishes(&self, state: &mut State<C>) {
        let wants = state.taken.len() < self.size && state.queue.has_but(state.barred(self.size));
        if std::mem::replace(&mut state.wants, wants) == wants {
            return;
        }
        match wants {
            true => self.member.want(),
            false => self.member.unwant(),
        }
    }

    /// Somebody has waited for long: idle connections used just now have grown old, or the longest answer that is being
    /// delivered to a key, or a tenant, with more slots is ended.
    fn hurry(&self, number: u64) {
        self.member.make_room();
        let mut state = self.state();
        let Some(sharer) = state.queue.sharer(number) else { return };
        if !state.cut(false, |held| held(sharer) + 1) {
            drop(state);
            self.member.cut_another();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        // Nothing in here panics half-way.
        self.state.lock()
    }
}

impl<C: Warm> Lender for Shared<C> {
    fn idle_since(&self) -> Option<Instant> {
        self.state().idle.first().map(|(since, ..)| *since)
    }

    fn close_idle(&self) {
        let mut state = self.state();
        let oldest = (!state.idle.is_empty()).then(|| state.idle.remove(0));
        drop(state);
        drop(oldest);
    }

    fn offer(&self, permit: Permit) {
        let mut state = self.state();
        let left = match state.taken.len() < self.size {
            true => state.give(self.size, None, permit),
            false => Some((None, permit)),
        };
        self.note_wishes(&mut state);
        drop(state);
        drop(left);
    }

    fn cut(&self) -> bool {
        self.state().cut(true, |_| 0)
    }
}

#[cfg(test)]
mod tests;
