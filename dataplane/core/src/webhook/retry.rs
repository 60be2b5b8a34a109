//! When a delivery that failed is tried again.

use std::time::Duration;

/// A wait that a receiver asks for is at most this long.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// The schedule of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// After so many attempts a batch is given up.
    pub max_attempts: u32,
    /// The wait after the first attempt; it doubles with each.
    pub initial: Duration,
    pub max: Duration,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { max_attempts: 10, initial: Duration::from_secs(5), max: Duration::from_secs(3600) }
    }
}

impl Schedule {
    /// How long to wait after so many attempts: what the receiver asks for, an hour at most, or from half of the schedule's wait
    /// to the whole of it, so that the receivers of many subscriptions that failed together are not asked together.
    /// `jitter` is evenly distributed from 0 to 1.
    #[must_use]
    pub fn delay(&self, attempts: u32, jitter: f64, retry_after: Option<Duration>) -> Duration {
        if let Some(asked) = retry_after {
            return asked.min(MAX_RETRY_AFTER);
        }
        let doubled = self.initial.saturating_mul(1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX));
        let wait = doubled.min(self.max);
        wait.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_an_hour_and_are_spread_over_a_half() {
        let schedule = Schedule::default();
        let waits = |jitter| (1..=12).map(|n| schedule.delay(n, jitter, None).as_secs_f64()).collect::<Vec<_>>();
        let whole = [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0, 3600.0, 3600.0];
        assert_eq!(waits(1.0), whole);
        assert_eq!(waits(0.0), whole.map(|wait| wait / 2.0));
        assert_eq!(schedule.delay(1_000, 1.0, None), Duration::from_secs(3600));
    }

    #[test]
    fn a_receiver_may_ask_for_another_wait_of_an_hour_at_most() {
        let schedule = Schedule::default();
        assert_eq!(schedule.delay(9, 0.3, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(schedule.delay(1, 0.3, Some(Duration::from_secs(86_400))), Duration::from_secs(3600));
    }
}
