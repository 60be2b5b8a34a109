//! When connections cannot be made: who may try next, and when. Everybody else is told at once why the last try failed,
//! so that requests do not knock at a server that is just coming up.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rowgate_core::backoff::Backoff;
use tokio::time::Instant;

const INITIAL_BACKOFF: Duration = Duration::from_millis(20);
/// Well below a second, within which a server that is ready again must be used again.
const MAX_BACKOFF: Duration = Duration::from_millis(400);

/// What a pool remembers of failed tries, with the cause of the last one; nothing while all is well.
pub(crate) struct Outage<C>(Mutex<Option<Failing<C>>>);

struct Failing<C> {
    cause: C,
    /// When a try failed first and last.
    first: Instant,
    last: Instant,
    backoff: Backoff,
    /// `None`: a try is under way.
    next: Option<Instant>,
}

/// The right to try once. Dropped without a result it goes to the next.
pub(crate) struct Attempt<'a, C> {
    outage: &'a Outage<C>,
    /// Tries of before the first failure know nothing of each other.
    is_alone: bool,
    began: Instant,
}

impl<C> Default for Outage<C> {
    fn default() -> Outage<C> {
        Outage(Mutex::new(None))
    }
}

impl<C: Clone> Outage<C> {
    /// While tries fail there is one at a time, after a pause. The error says why the last one failed.
    pub(crate) fn attempt(&self, now: Instant) -> Result<Attempt<'_, C>, C> {
        let mut state = self.state();
        let is_alone = match &mut *state {
            None => false,
            Some(failing) if failing.next.is_some_and(|next| next <= now) => {
                failing.next = None;
                true
            }
            Some(failing) => return Err(failing.cause.clone()),
        };
        Ok(Attempt { outage: self, is_alone, began: now })
    }

    /// Why the last try failed, and how long tries have failed. `None`: the last one did not, or there was none.
    pub(crate) fn failing(&self) -> Option<(C, Duration)> {
        let state = self.state();
        state.as_ref().map(|failing| (failing.cause.clone(), failing.last - failing.first))
    }
}

impl<C> Outage<C> {
    fn state(&self) -> MutexGuard<'_, Option<Failing<C>>> {
        // Each change of it is whole.
        self.0.lock()
    }
}

impl<C: Clone> Attempt<'_, C> {
    /// Whether tries failed before this one.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    pub(crate) fn failed(mut self, now: Instant, cause: &C) {
        let mut state = self.outage.state();
        let (mut backoff, first) = match &*state {
            // Those that began together fail together, which is one failure.
            Some(_) if !self.is_alone => return,
            Some(failing) => (failing.backoff, failing.first),
            None => (Backoff::new(INITIAL_BACKOFF), now),
        };
        let next = Some(now + backoff.pause(MAX_BACKOFF, rand::random()));
        *state = Some(Failing { cause: cause.clone(), first, last: now, backoff, next });
        self.is_alone = false;
    }

    pub(crate) fn succeeded(mut self) {
        *self.outage.state() = None;
        self.is_alone = false;
    }
}

impl<C> Drop for Attempt<'_, C> {
    fn drop(&mut self) {
        if let (true, Some(failing)) = (self.is_alone, &mut *self.outage.state()) {
            failing.next = Some(self.began);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_tries_fail_there_is_one_at_a_time_after_growing_pauses() {
        let (outage, mut now) = (Outage::default(), Instant::now());
        let together = [outage.attempt(now).expect("all is well"), outage.attempt(now).expect("all is well")];
        let began = now;
        together.into_iter().for_each(|attempt| attempt.failed(now, &"no"));
        assert_eq!(outage.failing(), Some(("no", Duration::ZERO)));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let paused = now;
            let attempt = loop {
                match outage.attempt(now) {
                    Ok(attempt) => break attempt,
                    Err(cause) => assert_eq!(cause, "no"),
                }
                now += Duration::from_millis(1);
            };
            pauses.push((now - paused).as_millis());
            assert!(outage.attempt(now + MAX_BACKOFF).is_err(), "one at a time");
            attempt.failed(now, &"no");
            assert_eq!(outage.failing(), Some(("no", now - began)));
        }
        for (pause, longest) in pauses.iter().zip([20, 40, 80, 160, 320, 400, 400, 400]) {
            assert!(longest * 3 / 4 <= *pause && *pause <= longest + 1, "{pauses:?}");
        }
        now += MAX_BACKOFF;
        drop(outage.attempt(now).expect("it is time"));
        outage.attempt(now).expect("the one before gave it up").succeeded();
        assert!(outage.attempt(now).is_ok() && outage.attempt(now).is_ok());
        assert_eq!(outage.failing(), None);
    }
}
