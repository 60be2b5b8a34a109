//! Look-ups of keys that nobody remembers: a few at a time, and so many may wait. They never take the last connection.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Look-ups of strangers at a time.
pub(crate) const AT_ONCE: usize = 2;
/// How many are under way or wait; a look-up takes a fraction of a millisecond, so that the last waits for less than a
/// second.
const PLACES: usize = 1_000;

/// The door for keys that are not remembered, the same for live, dead and invented ones.
pub(crate) struct Strangers {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// One look-up may run while this lives.
pub(crate) struct Pass {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Default for Strangers {
    fn default() -> Strangers {
        Strangers { places: Arc::new(Semaphore::new(PLACES)), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Strangers {
    /// Waits for a turn, in order of arrival; `None` at once: too many wait.
    pub(crate) async fn pass(&self) -> Option<Pass> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        let turn = self.turns.clone().acquire_owned().await.expect("the semaphore is never closed");
        Some(Pass { _turn: turn, _place: place })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn two_look_up_a_thousand_wait_and_the_next_is_told_at_once() {
        let strangers = Strangers::default();
        let (first, _second) = (strangers.pass().await, strangers.pass().await);
        let mut waiting: Vec<_> = (2..PLACES).map(|_| Box::pin(strangers.pass())).collect();
        assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()));
        assert!(strangers.pass().now_or_never().expect("no waiting").is_none());
        drop(first);
        // Each gives its turn to the next.
        let served = join_all(waiting.into_iter().map(|turn| turn.map(|turn| turn.is_some()))).await;
        assert!(served.iter().all(|&served| served));
    }
}
