//! A histogram of times in fixed buckets: two additions for each time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in microseconds, from half a millisecond to half a minute; above them is one more bucket.
const BOUNDS: [u64; 15] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000,
];

#[derive(Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, time: Duration) {
        let bound = |bound: &u64| time <= Duration::from_micros(*bound);
        let bucket = BOUNDS.iter().position(bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        // 584 years of requests fit.
        self.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Each bucket's upper bound in seconds (`None`: no bound) and how many times were not above it.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (Option<f64>, u64)> {
        let bounds =
            BOUNDS.iter().map(|&bound| Some(Duration::from_micros(bound).as_secs_f64())).chain([None]);
        bounds.zip(&self.buckets).scan(0, |sum, (bound, n)| {
            *sum += n.load(Ordering::Relaxed);
            Some((bound, *sum))
        })
    }

    /// All times together, in seconds.
    pub(super) fn sum(&self) -> f64 {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_its_bucket_and_in_all_above() {
        let histogram = Histogram::default();
        for micros in [500, 501, 30_000_000, 30_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let at = |bound| histogram.cumulative().find(|(at, _)| *at == bound).expect("a bucket").1;
        assert_eq!(
            [at(Some(0.0005)), at(Some(0.001)), at(Some(10.0)), at(Some(30.0)), at(None)],
            [1, 2, 2, 3, 4]
        );
        assert!((histogram.sum() - 60.001_002).abs() < 1e-9);
    }
}
