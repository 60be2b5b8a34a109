//! When a request is sent again, and after which pause.

use std::time::{Duration, SystemTime};

use rowgate_core::backoff;

const INITIAL_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(8);
/// A server that asks for a longer pause is not waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Why a try did not lead to an answer that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// No connection, or it broke before the answer.
    NoAnswer,
    /// 429, 503, or 502 and 504 of a proxy; with what `Retry-After` asks for.
    Unavailable(Option<Duration>),
}

/// The pause before the next try, behind `n` tries that failed of at most `max`; `None`: it is given up.
#[must_use]
pub(crate) fn pause(reason: Reason, n: u32, max: u32, random: f64) -> Option<Duration> {
    if max < n {
        return None;
    }
    let backoff = backoff::nth(INITIAL_BACKOFF, MAX_BACKOFF, n.saturating_sub(1)).mul_f64(1.0 - random / 4.0);
    match reason {
        Reason::NoAnswer | Reason::Unavailable(None) => Some(backoff),
        Reason::Unavailable(Some(asked)) if asked <= MAX_RETRY_AFTER => Some(backoff.max(asked)),
        Reason::Unavailable(Some(_)) => None,
    }
}

/// What the header `Retry-After` asks for: seconds, or a date.
#[must_use]
pub(crate) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    match text.trim().parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let at = httpdate::parse_http_date(text.trim()).ok()?;
            Some(at.duration_since(now).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn pauses_grow_and_end() {
        let pauses: Vec<_> = (1..=5).map_while(|n| pause(Reason::NoAnswer, n, 4, 0.0)).collect();
        assert_eq!(pauses, [250, 500, 1000, 2000].map(Duration::from_millis));
        assert_eq!(pause(Reason::NoAnswer, 1, 0, 0.0), None);
        assert_eq!(pause(Reason::NoAnswer, 40, 99, 0.0), Some(MAX_BACKOFF));
    }

    #[test]
    fn what_the_server_asks_for_is_waited_but_not_for_ever() {
        let after = |asked| pause(Reason::Unavailable(Some(asked)), 1, 4, 1.0);
        assert_eq!(after(seconds(7)), Some(seconds(7)));
        assert_eq!(after(seconds(0)), Some(INITIAL_BACKOFF.mul_f64(0.75)));
        assert_eq!(after(seconds(3600)), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Wed, 25 Nov 2026 12:00:00 GMT").expect("a date");
        assert_eq!(retry_after(" 3 ", now), Some(seconds(3)));
        assert_eq!(retry_after("Wed, 25 Nov 2026 12:00:09 GMT", now), Some(seconds(9)));
        assert_eq!(retry_after("Wed, 25 Nov 2026 11:00:00 GMT", now), Some(seconds(0)));
        assert_eq!(retry_after("soon", now), None);
    }
}
