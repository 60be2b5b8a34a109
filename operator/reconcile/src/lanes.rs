//! How many passes run at once: a few quick ones, and beside them a few that take long, so that a database that does not
//! answer keeps nobody waiting but its like.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Passes at once in each lane; each holds at most five connections.
const N_PASSES: usize = 4;

/// How long a pass may stay in the quick lane.
pub(crate) const QUICK: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
}

/// A place in a lane, given back when dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Lanes {
    pub(crate) fn new() -> Lanes {
        let lane = || Arc::new(Semaphore::new(N_PASSES));
        Lanes { quick: lane(), slow: lane() }
    }

    /// Waits for a place in the quick lane, or in the slow one.
    pub(crate) async fn enter(&self, slow: bool) -> Place {
        let lane = if slow { &self.slow } else { &self.quick };
        let permit = Arc::clone(lane).acquire_owned().await.expect("lanes are never closed");
        Place { _permit: permit }
    }

    /// A place in the slow lane, if one is free now.
    pub(crate) fn aside(&self) -> Option<Place> {
        Arc::clone(&self.slow).try_acquire_owned().ok().map(|permit| Place { _permit: permit })
    }
}
