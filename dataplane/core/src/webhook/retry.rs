//! When a failed delivery is tried again: twice as long after each attempt, spread by chance, and no sooner than the receiver asks.

use std::time::Duration;

use jiff::Timestamp;

use crate::backoff;

/// The share of a delay that chance decides. Half of it: subscriptions that failed together when a receiver went down are
/// spread over as long a time as they have waited already, and none comes back at once, as it may with the whole.
const SPREAD: f64 = 0.5;
/// How long `Retry-After` may hold a delivery back.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// How often and how soon a batch is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// The first one included.
    pub max_attempts: u32,
    pub initial: Duration,
    pub max: Duration,
}

impl Default for Schedule {
    fn default() -> Schedule {
        let (initial, max) = (Duration::from_secs(5), Duration::from_secs(60 * 60));
        Schedule { max_attempts: 10, initial, max }
    }
}

impl Schedule {
    /// How long to wait after `attempts_made` attempts. `jitter` is evenly distributed from 0 to 1. `retry_after` is what the
    /// receiver asked for. It is the least that RFC 9110 lets it ask, so that it lengthens the wait and never shortens it:
    /// a receiver that answers `Retry-After: 0` would use up all attempts within a second.
    #[must_use]
    pub fn delay(&self, attempts_made: u32, jitter: f64, retry_after: Option<Duration>) -> Duration {
        let delay = backoff::nth(self.initial, self.max, attempts_made.saturating_sub(1));
        let spread = delay.mul_f64(1.0 - SPREAD * jitter.clamp(0.0, 1.0));
        spread.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
    }
}

/// The header `Retry-After`: seconds, or an HTTP date, which is compared with `now`. None if it is neither.
#[must_use]
pub fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) {
        // more digits than fit mean longer than any bound
        return Some(text.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let at = Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    fn seconds(attempts_made: u32, jitter: f64, retry_after: Option<u64>) -> f64 {
        Schedule::default().delay(attempts_made, jitter, retry_after.map(Duration::from_secs)).as_secs_f64()
    }

    #[test]
    fn delays_double_from_5_seconds_to_an_hour_and_chance_takes_up_to_half() {
        let all = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600];
        for (attempts_made, whole) in (1..).zip(all) {
            assert_eq!(seconds(attempts_made, 0.0, None), f64::from(whole));
            assert_eq!(seconds(attempts_made, 1.0, None), f64::from(whole) / 2.0);
        }
        assert_eq!(seconds(1, 0.5, None), 3.75);
        assert_eq!(seconds(u32::MAX, 0.0, None), 3600.0);
        assert_eq!(seconds(0, 0.0, None), 5.0);
    }

    #[test]
    fn a_receiver_lengthens_the_wait_up_to_an_hour_and_does_not_shorten_it() {
        assert_eq!(seconds(1, 0.0, Some(60)), 60.0);
        assert_eq!(seconds(1, 1.0, Some(3)), 3.0);
        assert_eq!(seconds(1, 0.0, Some(0)), 5.0);
        assert_eq!(seconds(1, 0.0, Some(HOUR)), 3600.0);
        assert_eq!(seconds(1, 0.0, Some(HOUR + 1)), 3600.0);
        assert_eq!(seconds(9, 0.0, Some(1)), 1280.0);
        assert_eq!(Schedule::default().delay(1, 0.0, Some(Duration::MAX)).as_secs(), HOUR);
        let quick = Schedule { max: Duration::from_secs(7), ..Schedule::default() };
        assert_eq!(quick.delay(5, 0.0, None).as_secs(), 7);
        assert_eq!(quick.delay(5, 0.0, Some(Duration::from_secs(60))).as_secs(), 60);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().expect("a time");
        for (text, expected) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(7)),
            ("Sun Nov  6 08:49:37 1994", Some(7)),
            ("Sun, 06 Nov 1994 08:49:29 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("soon", None),
            ("1994-11-06T08:49:37Z", None),
        ] {
            assert_eq!(parse_retry_after(text, now).map(|wait| wait.as_secs()), expected, "{text}");
        }
    }
}
