//! When each key was last used: one store per request, and taken to the control database now and then.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rowgate_core::name::Ulid;

/// When one key was last used, in milliseconds since its tenant's [`LastUsedTimes`] began; 0: that is written down.
#[derive(Debug, Default)]
pub struct LastUsed(AtomicU64);

/// The uses of a tenant's keys. Outlives catalogs, as keys do.
pub struct LastUsedTimes {
    start: Instant,
    /// Touched when a key is looked up and when uses are written down, never by a request whose key is remembered.
    by_key: Mutex<HashMap<Ulid, Arc<LastUsed>>>,
}

/// A use that is to be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwrittenUse {
    pub key: Ulid,
    /// How long ago it was.
    pub age: Duration,
    at: u64,
}

impl Default for LastUsedTimes {
    fn default() -> LastUsedTimes {
        LastUsedTimes { start: Instant::now(), by_key: Mutex::default() }
    }
}

impl LastUsedTimes {
    /// Where the uses of a live key are noted.
    #[must_use]
    pub fn of(&self, key: &Ulid) -> Arc<LastUsed> {
        let mut by_key = self.by_key.lock();
        by_key.entry(key.clone()).or_default().clone()
    }

    /// The key was used just now.
    pub fn note(&self, used: &LastUsed, now: Instant) {
        used.0.fetch_max(self.since_start(now), Ordering::Relaxed);
    }

    /// What is to be written down. Keys that no cache holds and whose uses are written are forgotten here.
    pub fn unwritten(&self, now: Instant) -> Vec<UnwrittenUse> {
        let now = self.since_start(now);
        let mut by_key = self.by_key.lock();
        by_key.retain(|_, used| 1 < Arc::strong_count(used) || used.0.load(Ordering::Relaxed) != 0);
        let unwritten = by_key.iter().filter_map(|(key, used)| {
            let at = used.0.load(Ordering::Relaxed);
            let age = Duration::from_millis(now.saturating_sub(at));
            (at != 0).then(|| UnwrittenUse { key: key.clone(), age, at })
        });
        unwritten.collect()
    }

    /// These are written down; a key that was used again meanwhile is not.
    pub fn written(&self, uses: &[UnwrittenUse]) {
        let by_key = self.by_key.lock();
        for UnwrittenUse { key, at, .. } in uses {
            if let Some(used) = by_key.get(key) {
                // one that was used again keeps its later time
                let _again = used.0.compare_exchange(*at, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    fn since_start(&self, now: Instant) -> u64 {
        let millis = now.saturating_duration_since(self.start).as_millis();
        // 0 would say that nothing was used
        u64::try_from(millis).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_unwritten_until_it_is_written_and_a_later_one_stays() {
        let uses = LastUsedTimes::default();
        let at = |seconds| uses.start + Duration::from_secs(seconds);
        let key = Ulid::from_parts(1, [1; 10]);
        let used = uses.of(&key);
        assert_eq!(uses.unwritten(at(1)), []);
        uses.note(&used, at(5));
        uses.note(&used, at(3));
        let first = uses.unwritten(at(7));
        assert_eq!((first.len(), &first[0].key, first[0].age), (1, &key, Duration::from_secs(2)));
        uses.note(&used, at(8));
        uses.written(&first);
        let second = uses.unwritten(at(9));
        assert_eq!(second[0].age, Duration::from_secs(1), "it was used again before the first was written");
        uses.written(&second);
        assert_eq!(uses.unwritten(at(10)), []);

        // who holds none any more loses no use, and then its place
        uses.note(&used, at(11));
        drop(used);
        let last = uses.unwritten(at(12));
        assert_eq!(last.len(), 1);
        uses.written(&last);
        assert_eq!(uses.unwritten(at(13)), []);
        assert!(uses.by_key.lock().is_empty());
    }
}
