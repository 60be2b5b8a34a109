//! How long to wait before a catalog is read again after one that was too large or took too long: meanwhile requests are
//! answered at once, and a database with too many objects is not read over and over.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(4);

#[derive(Debug, Default)]
pub(crate) struct LoadBackoff(Mutex<Option<State>>);

#[derive(Debug, Clone, Copy)]
struct State {
    until: Instant,
    pause: Duration,
}

impl LoadBackoff {
    pub(crate) fn is_active(&self, now: Instant) -> bool {
        self.state().is_some_and(|state| now < state.until)
    }

    /// Each time it is twice as long, up to a bound.
    pub(crate) fn begin(&self, now: Instant) {
        let mut state = self.state();
        let pause = state.map_or(INITIAL_BACKOFF, |before| (before.pause * 2).min(MAX_BACKOFF));
        *state = Some(State { until: now + pause, pause });
    }

    pub(crate) fn end(&self) {
        *self.state() = None;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_longer_each_time_and_begins_anew_after_a_success() {
        let (backoff, now) = (LoadBackoff::default(), Instant::now());
        let lasts = |backoff: &LoadBackoff, began: Instant| {
            (1_u64..).find(|s| !backoff.is_active(began + Duration::from_secs(*s))).expect("it ends")
        };
        assert!(!backoff.is_active(now));
        for expected in [1, 2, 4, 4] {
            backoff.begin(now);
            assert_eq!(lasts(&backoff, now), expected);
        }
        backoff.end();
        assert!(!backoff.is_active(now));
        backoff.begin(now);
        assert_eq!(lasts(&backoff, now), 1);
    }
}
