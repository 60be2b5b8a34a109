//! What a pool has done since it was made.

use std::sync::atomic::{AtomicU64, Ordering};

use super::pool::Stopped;

/// Counts up for as long as the process lives.
#[derive(Debug, Default)]
pub struct Counters {
    abandoned: AtomicU64,
    dead: AtomicU64,
    outshared: AtomicU64,
    opened: AtomicU64,
    unopened: AtomicU64,
}

impl Counters {
    /// How many exchanges there were whose caller went away while they ran.
    #[must_use]
    pub fn n_abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// How many exchanges were ended because their key died, and how many answers were cut because others waited for the
    /// connection.
    #[must_use]
    pub fn n_stopped(&self) -> (u64, u64) {
        (self.dead.load(Ordering::Relaxed), self.outshared.load(Ordering::Relaxed))
    }

    /// How many connections were opened, and how many tries failed.
    #[must_use]
    pub fn n_connects(&self) -> (u64, u64) {
        (self.opened.load(Ordering::Relaxed), self.unopened.load(Ordering::Relaxed))
    }

    pub(super) fn note_abandoned(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_stopped(&self, why: Stopped) {
        let counter = match why {
            Stopped::Dead => &self.dead,
            Stopped::Outshared => &self.outshared,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_connect(&self, is_open: bool) {
        let counter = if is_open { &self.opened } else { &self.unopened };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
