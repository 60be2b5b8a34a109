//! Pauses between tries that fail: each twice as long as the one before, up to a bound, and spread, so that replicas, tenants
//! and watches do not try in step.

use std::time::Duration;

/// The share of a pause that chance decides.
const SPREAD: f64 = 0.25;

/// The pause behind `n` earlier ones, not yet spread: for those who count attempts instead of keeping a [`Backoff`].
#[must_use]
pub fn nth(initial: Duration, max: Duration, n: u32) -> Duration {
    1_u32.checked_shl(n).and_then(|factor| initial.checked_mul(factor)).map_or(max, |pause| pause.min(max))
}

/// One for each thing that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    initial: Duration,
    next: Duration,
}

impl Backoff {
    /// The first pause is `initial` long.
    #[must_use]
    pub const fn new(initial: Duration) -> Backoff {
        Backoff { initial, next: initial }
    }

    /// How long to wait before the next try, between three quarters of the pause and the whole of it, and never longer than
    /// `max`. `random` is evenly distributed from 0 to 1.
    #[must_use]
    pub fn pause(&mut self, max: Duration, random: f64) -> Duration {
        let pause = self.next.min(max);
        self.next = (pause * 2).min(max);
        pause.mul_f64(1.0 - SPREAD * random)
    }

    /// After a success.
    pub const fn reset(&mut self) {
        self.next = self.initial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_millis(500);

    #[test]
    fn each_pause_is_twice_as_long_up_to_a_bound_and_a_success_ends_that() {
        let mut backoff = Backoff::new(INITIAL);
        let pauses = [(); 5].map(|()| backoff.pause(MAX, 0.0).as_millis());
        assert_eq!(pauses, [100, 200, 400, 500, 500]);
        backoff.reset();
        assert_eq!(backoff.pause(MAX, 0.0), INITIAL);
        assert_eq!(Backoff::new(INITIAL).pause(INITIAL / 2, 0.0), INITIAL / 2);
    }

    #[test]
    fn the_nth_pause_is_the_one_that_n_pauses_lead_to() {
        let mut backoff = Backoff::new(INITIAL);
        for n in 0..70 {
            assert_eq!(nth(INITIAL, MAX, n), backoff.pause(MAX, 0.0), "{n}");
        }
    }

    #[test]
    fn chance_shortens_a_pause_by_a_quarter_at_most_and_leaves_the_next_one_as_long() {
        let mut backoff = Backoff::new(INITIAL);
        assert_eq!(backoff.pause(MAX, 1.0).as_millis(), 75);
        assert_eq!(backoff.pause(MAX, 0.5).as_millis(), 175);
    }
}
