//! Look-ups of keys that are not in the cache: a few at a time, and so many may wait. They never take the last connection.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Look-ups of strangers at a time.
pub(crate) const MAX_CONCURRENT_LOOKUPS: usize = 2;
/// How many are under way or wait; a look-up takes a fraction of a millisecond, so that the last waits for less than a
/// second.
const MAX_LOOKUPS: usize = 1_000;

/// The door for keys that are not remembered, the same for live, dead and invented ones.
pub(crate) struct LookupLimiter {
    admitted: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// One look-up may run while this lives.
pub(crate) struct LookupPermit {
    _turn: OwnedSemaphorePermit,
    _admission: OwnedSemaphorePermit,
}

impl Default for LookupLimiter {
    fn default() -> LookupLimiter {
        LookupLimiter {
            admitted: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            turns: Arc::new(Semaphore::new(MAX_CONCURRENT_LOOKUPS)),
        }
    }
}

impl LookupLimiter {
    /// Waits for a turn, in order of arrival; `None` at once: too many wait.
    pub(crate) async fn acquire(&self) -> Option<LookupPermit> {
        let admission = self.admitted.clone().try_acquire_owned().ok()?;
        let turn = self.turns.clone().acquire_owned().await.expect("the semaphore is never closed");
        Some(LookupPermit { _turn: turn, _admission: admission })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn two_look_up_a_thousand_wait_and_the_next_is_told_at_once() {
        let lookup_limiter = LookupLimiter::default();
        let (first, _second) = (lookup_limiter.acquire().await, lookup_limiter.acquire().await);
        let mut waiting: Vec<_> = (2..MAX_LOOKUPS).map(|_| Box::pin(lookup_limiter.acquire())).collect();
        assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()));
        assert!(lookup_limiter.acquire().now_or_never().expect("no waiting").is_none());
        drop(first);
        // Each gives its turn to the next.
        let served = join_all(waiting.into_iter().map(|turn| turn.map(|turn| turn.is_some()))).await;
        assert!(served.iter().all(|&served| served));
    }
}
