//! Sessions between statements. Each is one key's, and nobody else ever has it. To open one more needs a permit of the server.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rowgate_core::name::Ulid;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::tenant::backends::Backend;
use crate::wire::budget::{Lender, Member, Permit, Purpose, Share};
use crate::wire::connection::Connection;
use crate::wire::connection::transport::Socket;

/// A session of one key that stands in `dl.backends`.
pub(super) struct Session {
    pub(super) connection: Connection<Socket>,
    pub(super) of: Of,
    pub(super) backend: Backend,
    /// Behind the connection, so that it is given back once that is closed.
    pub(super) permit: Permit,
}

/// Whose a session is, and what it was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Of {
    pub(super) key: Ulid,
    pub(super) role: String,
    pub(super) statement_timeout_ms: u32,
}

/// The sessions of one tenant that no statement uses.
pub(super) struct SessionCache(Arc<Shared>);

struct Shared {
    member: Member,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The one that was not used for longest first.
    idle: Vec<(Instant, Session)>,
    waiting: VecDeque<(u64, oneshot::Sender<Permit>)>,
    last: u64,
    /// The server knows that a permit is wanted.
    wants: bool,
}

/// A statement that waits for a permit, until it is dropped.
struct PermitRequest<'a> {
    number: u64,
    shared: &'a Shared,
}

impl SessionCache {
    pub(super) fn new(share: &Share) -> SessionCache {
        SessionCache(Arc::new_cyclic(|shared: &Weak<Shared>| {
            let member = share.enlist(Purpose::Call, shared.clone());
            Shared { member, state: Mutex::default() }
        }))
    }

    /// A session of just this key, fresh as far as has arrived: whoever calls on a stale one would not learn whether it was
    /// done.
    pub(super) fn take(&self, of: &Of) -> Option<Session> {
        loop {
            let mut state = self.0.state();
            let at = state.idle.iter().rposition(|(_, session)| session.of == *of)?;
            let (_, mut session) = state.idle.remove(at);
            drop(state);
            if session.connection.is_fresh() {
                return Some(session);
            }
        }
    }

    /// Keeps a session that was renewed, unless somebody else at the server waits for its place.
    pub(super) fn put(&self, session: Session) {
        let mut state = self.0.state();
        let Shared { member, .. } = &*self.0;
        if member.is_contended() && member.must_yield(&session.permit, false) {
            drop(state);
            return drop(session);
        }
        state.idle.push((Instant::now(), session));
    }

    /// The right to open one more session. `None`: there was none in time.
    pub(super) async fn permit(&self, wait: Duration) -> Option<Permit> {
        let (sender, mut receiver) = oneshot::channel();
        let waiting = {
            let mut state = self.0.state();
            if let Some(permit) = state.waiting.is_empty().then(|| self.0.member.try_permit()).flatten() {
                return Some(permit);
            }
            state.last += 1;
            let number = state.last;
            state.waiting.push_back((number, sender));
            self.0.note_wishes(&mut state);
            PermitRequest { number, shared: &self.0 }
        };
        self.0.member.make_room();
        let given = timeout(wait, &mut receiver).await;
        drop(waiting);
        receiver.close();
        given.ok().and_then(Result::ok).or_else(|| receiver.try_recv().ok())
    }

    /// Leaves `n` at most; those that were not used for longest are closed.
    pub(super) fn leave(&self, n: usize) {
        let mut state = self.0.state();
        let n_more = state.idle.len().saturating_sub(n);
        let closed: Vec<_> = state.idle.drain(..n_more).collect();
        drop(state);
        drop(closed);
    }

    /// Closes those that nobody has used for `age`.
    pub(super) fn trim(&self, age: Duration) {
        let mut state = self.0.state();
        let n_old = state.idle.iter().take_while(|(since, _)| age <= since.elapsed()).count();
        let closed: Vec<_> = state.idle.drain(..n_old).collect();
        drop(state);
        drop(closed);
    }

    pub(super) fn len(&self) -> usize {
        self.0.state().idle.len()
    }
}

impl Shared {
    fn note_wishes(&self, state: &mut State) {
        let wants = !state.waiting.is_empty();
        if std::mem::replace(&mut state.wants, wants) == wants {
            return;
        }
        match wants {
            true => self.member.want(),
            false => self.member.unwant(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of it is whole.
        self.state.lock()
    }
}

impl Lender for Shared {
    fn idle_since(&self) -> Option<Instant> {
        self.state().idle.first().map(|(since, _)| *since)
    }

    fn close_idle(&self) {
        let mut state = self.state();
        let oldest = (!state.idle.is_empty()).then(|| state.idle.remove(0));
        drop(state);
        drop(oldest);
    }

    fn offer(&self, permit: Permit) {
        let mut left = Some(permit);
        let mut state = self.state();
        while let Some(permit) = left.take() {
            let Some((_, sender)) = state.waiting.pop_front() else {
                left = Some(permit);
                break;
            };
            left = sender.send(permit).err();
        }
        self.note_wishes(&mut state);
        drop(state);
        drop(left);
    }

    /// What runs is not ended for others.
    fn cut(&self) -> bool {
        false
    }
}

impl Drop for PermitRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.waiting.retain(|(number, _)| *number != self.number);
        self.shared.note_wishes(&mut state);
    }
}
