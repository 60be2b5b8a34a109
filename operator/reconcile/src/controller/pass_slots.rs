//! How many passes run at once: a few quick ones, and beside them a few slow ones, so that a database that does not
//! answer delays only other slow passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Passes at once of each kind, quick and slow; each holds at most five connections.
const N_PASSES: usize = 4;

/// How long a pass may hold a quick slot.
pub(crate) const QUICK_PASS_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a pass may hold a slow slot while others wait for one; the limit doubles each time. So a long pass finishes
/// although others hang, and a pass with much work is not restarted for ever.
pub(crate) const SLOW_PASS_TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Debug, Clone)]
pub(crate) struct PassSlots {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// How many passes wait for a slow slot.
    n_waiting: Arc<AtomicUsize>,
}

/// The right to run one pass; dropping it frees the slot.
pub(crate) struct PassSlot {
    _permit: OwnedSemaphorePermit,
}

impl PassSlots {
    pub(crate) fn new() -> PassSlots {
        let slots = || Arc::new(Semaphore::new(N_PASSES));
        PassSlots { quick: slots(), slow: slots(), n_waiting: Arc::default() }
    }

    /// Waits for a quick slot, or for a slow one.
    pub(crate) async fn enter(&self, slow: bool) -> PassSlot {
        let slots = if slow { &self.slow } else { &self.quick };
        self.n_waiting.fetch_add(usize::from(slow), Ordering::Relaxed);
        let permit = Arc::clone(slots).acquire_owned().await.expect("the semaphores are never closed");
        self.n_waiting.fetch_sub(usize::from(slow), Ordering::Relaxed);
        PassSlot { _permit: permit }
    }

    /// Whether other passes wait for a slow slot.
    pub(crate) fn crowded(&self) -> bool {
        0 < self.n_waiting.load(Ordering::Relaxed)
    }

    /// A slow slot, if one is free now.
    pub(crate) fn try_slow(&self) -> Option<PassSlot> {
        Arc::clone(&self.slow).try_acquire_owned().ok().map(|permit| PassSlot { _permit: permit })
    }
}
