//! For how long no catalog is read after one that was more than is read, or took too long: whoever asks meanwhile is answered
//! at once, and a database that somebody fills is not read again and again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(4);

#[derive(Debug, Default)]
pub(crate) struct Hold(Mutex<Option<Held>>);

#[derive(Debug, Clone, Copy)]
struct Held {
    until: Instant,
    pause: Duration,
}

impl Hold {
    pub(crate) fn is_on(&self, now: Instant) -> bool {
        self.held().is_some_and(|held| now < held.until)
    }

    /// Each time it is twice as long, up to a bound.
    pub(crate) fn begin(&self, now: Instant) {
        let mut held = self.held();
        let pause = held.map_or(FIRST, |before| (before.pause * 2).min(LONGEST));
        *held = Some(Held { until: now + pause, pause });
    }

    pub(crate) fn end(&self) {
        *self.held() = None;
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_longer_each_time_and_begins_anew_after_a_success() {
        let (hold, now) = (Hold::default(), Instant::now());
        let lasts = |hold: &Hold, began: Instant| {
            (1_u64..).find(|s| !hold.is_on(began + Duration::from_secs(*s))).expect("it ends")
        };
        assert!(!hold.is_on(now));
        for expected in [1, 2, 4, 4] {
            hold.begin(now);
            assert_eq!(lasts(&hold, now), expected);
        }
        hold.end();
        assert!(!hold.is_on(now));
        hold.begin(now);
        assert_eq!(lasts(&hold, now), 1);
    }
}
