//! A rate limit as one number: when the bucket would be full again (the generic cell rate algorithm). Time is an argument.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// What one key has used. It holds one second's worth; a new one is full.
///
/// Of requests that take one each it admits at most `per_second * (t + 1)` in any `t` seconds. Callers may differ in
/// `per_second` from one request to the next, as a changed manifest makes them.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

/// A request that came too early, and after how long the next one may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooEarly(pub Duration);

impl Bucket {
    /// Takes one request out. `now` is the time since any fixed moment, the same for all requests.
    pub fn take(&self, now: Duration, per_second: u32) -> Result<(), TooEarly> {
        let now = nanos(now);
        let (interval, burst) = times(per_second);
        self.add(now, interval, |from| {
            let next = from.saturating_add(interval);
            (now.saturating_add(burst) < next).then(|| next - burst - now)
        })?;
        Ok(())
    }

    /// Takes `amount` out, which may be more than it holds: then nothing comes out of it until that is made up for.
    pub fn spend(&self, now: Duration, per_second: u32, amount: u64) -> Result<(), TooEarly> {
        let now = nanos(now);
        let (interval, burst) = times(per_second);
        self.add(now, interval.saturating_mul(amount), |from| {
            let wait = || from.saturating_sub(burst).saturating_sub(now).saturating_add(1);
            (now.saturating_add(burst) <= from).then(wait)
        })?;
        Ok(())
    }

    /// Takes `amount` out, whether it holds any or not.
    pub fn overdraw(&self, now: Duration, per_second: u32, amount: u64) {
        let (interval, _) = times(per_second);
        // it waits for nothing
        let _ = self.add(nanos(now), interval.saturating_mul(amount), |_| None);
    }

    /// How long it is until it holds what was overdrawn.
    #[must_use]
    pub fn debt(&self, now: Duration, per_second: u32) -> Duration {
        let (_, burst) = times(per_second);
        let full_at = self.0.load(Ordering::Relaxed);
        Duration::from_nanos(full_at.saturating_sub(nanos(now).saturating_add(burst)))
    }

    /// Moves the time at which it is full by so many nanoseconds, unless `wait` names some to wait first. It is told that time, or now,
    /// which is returned.
    fn add(&self, now: u64, time: u64, wait: impl Fn(u64) -> Option<u64>) -> Result<u64, TooEarly> {
        let mut full_at = self.0.load(Ordering::Relaxed);
        loop {
            let from = full_at.max(now);
            if let Some(wait) = wait(from) {
                return Err(TooEarly(Duration::from_nanos(wait)));
            }
            let next = from.saturating_add(time);
            match self.0.compare_exchange_weak(full_at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(from),
                Err(newer) => full_at = newer,
            }
        }
    }

    /// Whether it is as good as new, so that nothing is lost with it.
    #[must_use]
    pub fn is_full(&self, now: Duration) -> bool {
        self.0.load(Ordering::Relaxed) <= nanos(now)
    }
}

impl TooEarly {
    /// For the header `Retry-After`: whole seconds, at least one.
    #[must_use]
    pub fn retry_after(self) -> u32 {
        let TooEarly(wait) = self;
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() != 0);
        u32::try_from(seconds.max(1)).unwrap_or(u32::MAX)
    }
}

/// Between two requests, and what may be taken at once. Rounded up, so that rounding never admits more.
fn times(per_second: u32) -> (u64, u64) {
    let per_second = u64::from(per_second.max(1));
    let interval = SECOND.div_ceil(per_second);
    (interval, interval * per_second)
}

/// 584 years fit.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Duration {
        Duration::from_nanos(nanos)
    }

    #[test]
    fn a_new_bucket_holds_one_seconds_worth_and_fills_again() {
        for rate in [1, 2, 3, 7, 1_000, 999_983, 1_000_000] {
            let bucket = Bucket::default();
            let start = Duration::from_secs(5);
            let admitted = (0..=rate).filter(|_| bucket.take(start, rate).is_ok()).count();
            assert_eq!(admitted, usize::try_from(rate).expect("small"), "{rate}");
            let TooEarly(wait) = bucket.take(start, rate).expect_err("it is empty");
            assert!(bucket.take(start + wait - at(1), rate).is_err(), "{rate}");
            assert!(bucket.take(start + wait, rate).is_ok(), "{rate}");
            assert!(!bucket.is_full(start + wait) && bucket.is_full(start + 2 * wait + at(2 * SECOND)));
        }
    }

    #[test]
    fn what_is_overdrawn_is_made_up_for_before_more_comes_out() {
        let (bucket, start) = (Bucket::default(), Duration::from_secs(5));
        bucket.spend(start, 1_000, 4_500).expect("it is full");
        let TooEarly(wait) = bucket.spend(start, 1_000, 1).expect_err("it is overdrawn");
        assert!(Duration::from_millis(3_500) < wait && wait < Duration::from_millis(3_501), "{wait:?}");
        assert!(bucket.spend(start + wait - at(1), 1_000, 1).is_err());
        bucket.spend(start + wait, 1_000, 1).expect("it is made up for");
        assert!(bucket.spend(start + wait, 1_000, u64::MAX).is_err());
        bucket.spend(start + 3 * wait, 1_000, u64::MAX).expect("it holds some");
        assert!(bucket.spend(Duration::MAX / 2, 1_000, 0).is_err(), "and never again");
    }

    #[test]
    fn a_debt_is_paid_at_the_rate() {
        let (bucket, start) = (Bucket::default(), Duration::from_secs(5));
        let debt = |after: u64| bucket.debt(start + Duration::from_millis(after), 100).as_millis();
        for n in 1..=108_u128 {
            bucket.overdraw(start, 100, 1);
            assert_eq!(debt(0), 10 * n.saturating_sub(100), "{n}");
        }
        assert_eq!([30, 80, 500].map(debt), [50, 0, 0]);
        assert!(bucket.is_full(start + Duration::from_millis(1_080)));
    }

    /// A second does not divide into 700,000 whole nanoseconds. Seen to fail with an interval that is rounded down.
    #[test]
    fn rounding_admits_no_more_than_the_rate() {
        const RATE: u32 = 700_000;
        let bucket = Bucket::default();
        let admitted = |now| bucket.take(Duration::from_micros(now), RATE).is_ok();
        assert_eq!((0..RATE).filter(|_| admitted(0)).count(), 700_000);
        let in_20_ms = (1..=20_000).filter(|&now| admitted(now)).count();
        assert!((13_990..=14_000).contains(&in_20_ms), "{in_20_ms}");
    }

    /// Seen to fail without the part of a second, and with a wait of none.
    #[test]
    fn waiting_is_told_in_whole_seconds_and_never_as_none() {
        for (nanos, told) in [(0, 1), (1, 1), (SECOND, 1), (SECOND + 1, 2), (3 * SECOND, 3)] {
            assert_eq!(TooEarly(at(nanos)).retry_after(), told, "{nanos}");
        }
    }

    proptest! {
        /// In every stretch between two requests, not only from the start.
        #[test]
        fn never_more_than_rate_times_time_and_the_burst(
            rate in 1_u32..=2_000,
            gaps in prop::collection::vec(prop_oneof![
                4 => Just(0_u64), 4 => 0..2_000_000_u64, 1 => 0..3 * SECOND,
            ], 1..400),
        ) {
            let bucket = Bucket::default();
            let mut now = 0;
            let mut admitted = Vec::new();
            for gap in gaps {
                now += gap;
                if bucket.take(at(now), rate).is_ok() {
                    admitted.push(now);
                }
            }
            for (i, from) in admitted.iter().enumerate() {
                for (j, to) in admitted.iter().enumerate().skip(i) {
                    let n = u128::try_from(j - i + 1).expect("small");
                    let allowed = u128::from(rate) * u128::from(to - from + SECOND);
                    prop_assert!(n * u128::from(SECOND) <= allowed, "{n} from {from} to {to} at {rate}/s");
                }
            }
        }

        /// It refuses nobody who keeps to the rate, whatever he did not use before.
        #[test]
        fn who_keeps_the_interval_is_never_refused(rate in 1_u32..=1_000_000, waits in prop::collection::vec(0..SECOND, 1..200)) {
            let bucket = Bucket::default();
            let mut now = 0;
            for wait in waits {
                now += SECOND.div_ceil(u64::from(rate)) + wait;
                prop_assert!(bucket.take(at(now), rate).is_ok());
            }
        }
    }

    #[test]
    fn threads_together_get_what_one_would() {
        let bucket = Bucket::default();
        let admitted: usize = std::thread::scope(|scope| {
            let one = || (0..1_000).filter(|_| bucket.take(Duration::from_secs(1), 100).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(admitted, 100);
    }
}
