//! How many passes run at once: a few quick ones, and beside them a few that take long, so that a database that does not
//! answer keeps nobody waiting but its like.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Passes at once in each lane; each holds at most five connections.
const N_PASSES: usize = 4;

/// How long a pass may stay in the quick lane.
pub(crate) const QUICK: Duration = Duration::from_secs(2);

/// How long a pass may stay in the slow lane while others wait there, then twice as long each time: one that takes long
/// comes to its end although others hang, and one that works much is not begun anew for ever.
pub(crate) const TURN: Duration = Duration::from_secs(8);

#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// How many wait for a place in the slow lane.
    n_waiting: Arc<AtomicUsize>,
}

/// A place in a lane, given back when dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Lanes {
    pub(crate) fn new() -> Lanes {
        let lane = || Arc::new(Semaphore::new(N_PASSES));
        Lanes { quick: lane(), slow: lane(), n_waiting: Arc::default() }
    }

    /// Waits for a place in the quick lane, or in the slow one.
    pub(crate) async fn enter(&self, slow: bool) -> Place {
        let lane = if slow { &self.slow } else { &self.quick };
        self.n_waiting.fetch_add(usize::from(slow), Ordering::Relaxed);
        let permit = Arc::clone(lane).acquire_owned().await.expect("lanes are never closed");
        self.n_waiting.fetch_sub(usize::from(slow), Ordering::Relaxed);
        Place { _permit: permit }
    }

    /// Whether others wait for a place in the slow lane.
    pub(crate) fn crowded(&self) -> bool {
        0 < self.n_waiting.load(Ordering::Relaxed)
    }

    /// A place in the slow lane, if one is free now.
    pub(crate) fn aside(&self) -> Option<Place> {
        Arc::clone(&self.slow).try_acquire_owned().ok().map(|permit| Place { _permit: permit })
    }
}
