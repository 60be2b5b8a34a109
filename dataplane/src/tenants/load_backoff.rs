//! How long to wait before a catalog is read again after one that was too large or took too long: meanwhile requests are
//! answered at once, and a database with too many objects is not read over and over.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rowgate_core::backoff::Backoff;
use rowgate_program::entropy;

const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(4);

#[derive(Debug, Default)]
pub(crate) struct LoadBackoff(Mutex<Option<State>>);

#[derive(Debug, Clone, Copy)]
struct State {
    until: Instant,
    backoff: Backoff,
}

impl LoadBackoff {
    pub(crate) fn is_active(&self, now: Instant) -> bool {
        self.state().is_some_and(|state| now < state.until)
    }

    /// Each time it is twice as long, up to a bound.
    pub(crate) fn begin(&self, now: Instant) {
        let mut state = self.state();
        let mut backoff = state.map_or(Backoff::new(INITIAL_BACKOFF), |before| before.backoff);
        let until = now + backoff.pause(MAX_BACKOFF, entropy::fraction());
        *state = Some(State { until, backoff });
    }

    pub(crate) fn end(&self) {
        *self.state() = None;
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_longer_each_time_and_after_a_success_as_at_first() {
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
