//! When a catalog was last known to be what the database holds, and whose turn it is to ask again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Each second one request asks along.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A request that starts this long after a change must see it. Where those who asked along have no answer yet, such as
/// behind a slow statement, everybody asks.
const MAX_STALENESS: Duration = Duration::from_secs(2);

/// Of one catalog. Times are milliseconds since it was begun to be read.
#[derive(Debug)]
pub struct Freshness {
    born: Instant,
    asked: AtomicU64,
    /// When the last question that found nothing new was asked.
    confirmed: AtomicU64,
}

/// The right to ask along, to be given back with the answer "nothing new".
#[derive(Debug, Clone, Copy)]
pub struct FreshnessCheck(u64);

impl Freshness {
    /// Of a catalog that begins to be read at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Freshness {
        Freshness { born: now, asked: AtomicU64::new(0), confirmed: AtomicU64::new(0) }
    }

    /// `None`: no check is due.
    pub fn due_check(&self, now: Instant) -> Option<FreshnessCheck> {
        let now = self.millis(now);
        let asked = self.asked.load(Ordering::Relaxed);
        let older_than = |then: u64, age: Duration| u128::from(now.saturating_sub(then)) >= age.as_millis();
        if older_than(self.confirmed.load(Ordering::Acquire), MAX_STALENESS) {
            self.asked.fetch_max(now, Ordering::Relaxed);
            return Some(FreshnessCheck(now));
        }
        let mine = older_than(asked, CHECK_INTERVAL)
            && self.asked.compare_exchange(asked, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        mine.then_some(FreshnessCheck(now))
    }

    /// The question of that turn found nothing new.
    pub fn confirm(&self, check: FreshnessCheck) {
        self.confirmed.fetch_max(check.0, Ordering::Release);
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.born).as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_a_second_asks_and_all_of_them_while_no_answer_comes() {
        let born = Instant::now();
        let freshness = Freshness::new(born);
        let check = |ms: u64| freshness.due_check(born + Duration::from_millis(ms));
        assert!(check(999).is_none());
        let first = check(1_000).expect("a second has passed");
        assert!(check(1_000).is_none() && check(1_999).is_none(), "somebody asks already");
        let second = check(2_000).expect("no answer came");
        assert!(check(2_000).is_some() && check(2_001).is_some(), "everybody asks until one comes");
        freshness.confirm(second);
        freshness.confirm(first);
        assert!(check(2_999).is_none() && check(3_001).is_some() && check(3_999).is_none());
        assert!(check(4_000).is_some(), "two seconds after what was confirmed");
    }
}
