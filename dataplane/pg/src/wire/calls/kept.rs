//! Sessions between calls. Each is one key's, and nobody else ever has it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rowgate_core::name::Ulid;
use tokio::time::Instant;

use crate::backends::Backend;
use crate::wire::connection::Connection;
use crate::wire::dial::Socket;

/// A session of one key that stands in `dl.backends`.
pub(super) struct Session {
    pub(super) connection: Connection<Socket>,
    pub(super) of: Of,
    pub(super) backend: Backend,
}

/// Whose a session is, and what it was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Of {
    pub(super) key: Ulid,
    pub(super) role: String,
    pub(super) statement_timeout_ms: u32,
}

#[derive(Default)]
pub(super) struct Kept(Mutex<Vec<(Instant, Session)>>);

impl Kept {
    /// A session of just this key, fresh as far as has arrived: whoever calls on a stale one would not learn whether it was
    /// done.
    pub(super) fn take(&self, of: &Of) -> Option<Session> {
        loop {
            let mut all = self.all();
            let at = all.iter().rposition(|(_, session)| session.of == *of)?;
            let (_, mut session) = all.remove(at);
            drop(all);
            if session.connection.is_fresh() {
                return Some(session);
            }
        }
    }

    /// Keeps a session that was renewed.
    pub(super) fn put(&self, session: Session) {
        self.all().push((Instant::now(), session));
    }

    /// Leaves `n` at most; those that were not used for longest are closed.
    pub(super) fn leave(&self, n: usize) {
        let mut all = self.all();
        let n_more = all.len().saturating_sub(n);
        all.drain(..n_more);
    }

    /// Closes those that nobody has used for `age`.
    pub(super) fn trim(&self, age: Duration) {
        self.all().retain(|(since, _)| since.elapsed() < age);
    }

    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    fn all(&self) -> MutexGuard<'_, Vec<(Instant, Session)>> {
        // Each change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
