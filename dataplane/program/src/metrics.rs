//! Metrics: atomics that are added to without a lock, and a page of text that we write ourselves.

use std::sync::atomic::{AtomicU64, Ordering};

mod histogram;
pub mod process;
mod text;

pub use histogram::Histogram;
pub use text::{CONTENT_TYPE, Kind, Text};

/// A number that only grows.
#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add_one(&self) {
        self.add(1);
    }

    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
