//! The newest tick of a tenant's events, looked for once for all requests of this replica that wait for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rowgate_core::problem::Problem;
use rowgate_pg::tenant::events::{self, Tick};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::server::metrics::Count;
use crate::tenants::tenant::Tenant;

/// Between two looks while rows change, and after minutes of quiet.
const SHORTEST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_secs(1);
/// The time between two looks is this part of the time for which nothing has changed.
const PART_OF_QUIET: u32 = 10;

/// Looks while a request waits, and costs nothing else.
pub(crate) struct EventTail {
    newest: watch::Sender<Option<Tick>>,
    is_looking: Mutex<bool>,
    /// Rows were written through this replica.
    written: Notify,
    streams: Arc<()>,
    pub(crate) counts: EventCounts,
}

/// What keys were given, and what they were not.
#[derive(Default)]
pub(crate) struct EventCounts {
    pub(crate) given: Count,
    /// Row-level security does not show the row, as it was or as it is now.
    pub(crate) hidden: Count,
    /// PostgreSQL refused to decide.
    pub(crate) undecided: Count,
}

/// Held by a stream as long as it lives.
pub(crate) struct StreamSlot(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl Default for EventTail {
    fn default() -> EventTail {
        EventTail {
            newest: watch::Sender::new(None),
            is_looking: Mutex::default(),
            written: Notify::new(),
            streams: Arc::default(),
            counts: EventCounts::default(),
        }
    }
}

impl EventTail {
    /// A write of this replica was committed: there may be an event.
    pub(crate) fn note_write(&self) {
        if self.newest.receiver_count() != 0 {
            self.written.notify_one();
        }
    }

    /// The newest tick that this replica knows.
    pub(crate) fn newest(&self) -> Option<Tick> {
        *self.newest.borrow()
    }

    /// A place for one more stream. `None`: there are `most` already.
    pub(crate) fn stream_slot(&self, most: u32) -> Option<StreamSlot> {
        let slot = StreamSlot(self.streams.clone());
        (self.n_streams() <= u64::from(most)).then_some(slot)
    }

    pub(crate) fn n_streams(&self) -> u64 {
        Arc::strong_count(&self.streams) as u64 - 1
    }

    /// Requests that wait for events, streams among them.
    pub(crate) fn n_readers(&self) -> u64 {
        self.newest.receiver_count() as u64
    }

    /// Two looks may end in another order than that of their ticks. A restored database may be of any generation.
    fn note_tick(&self, tick: Tick) {
        let is_newer = |newest: Tick| {
            newest.generation != tick.generation || (newest.number, newest.floor) < (tick.number, tick.floor)
        };
        let _is_newer = self.newest.send_if_modified(|newest| {
            let replaces = newest.is_none_or(is_newer);
            if replaces {
                *newest = Some(tick);
            }
            replaces
        });
    }

    /// True, once, for the one who is to look.
    fn begin(&self) -> bool {
        !std::mem::replace(&mut *self.is_looking.lock(), true)
    }

    /// True where the one who looks may stop, as no receiver is left.
    fn ended(&self) -> bool {
        let mut is_looking = self.is_looking.lock();
        *is_looking = self.newest.receiver_count() != 0;
        !*is_looking
    }
}

impl Tenant {
    /// Makes a tick if anything has become visible, and gives the newest.
    pub(crate) async fn make_tick(&self) -> Result<Tick, Problem> {
        let pool = self.look_ups.clone();
        let look = async move {
            let mut conn = pool.acquire().await?;
            let tick = events::tick(&mut conn).await;
            conn.done(tick)
        };
        let tick = self.run_detached(look).await?;
        self.event_tail.note_tick(tick);
        Ok(tick)
    }

    /// The generation of the events that are read now.
    pub(crate) async fn event_generation(&self) -> Result<i32, Problem> {
        match self.event_tail.newest() {
            Some(tick) => Ok(tick.generation),
            None => Ok(self.make_tick().await?.generation),
        }
    }

    /// The newest tick from now on: it changes when there may be events. `None` before the first look.
    pub(crate) fn ticks(self: &Arc<Self>) -> watch::Receiver<Option<Tick>> {
        let ticks = self.event_tail.newest.subscribe();
        if self.event_tail.begin() {
            let tenant = self.clone();
            self.tasks.start(async move { tenant.look_for_ticks().await });
        }
        ticks
    }

    async fn look_for_ticks(&self) {
        let tail = &self.event_tail;
        let (mut last, mut changed) = (None, Instant::now());
        while !tail.ended() {
            // of a failure the tenant took note, and the next look is another try
            if let Ok(tick) = self.make_tick().await
                && last.replace(tick) != Some(tick)
            {
                changed = Instant::now();
            }
            let pause = (changed.elapsed() / PART_OF_QUIET).clamp(SHORTEST, LONGEST);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = tail.written.notified() => {}
                () = tail.newest.closed() => {}
            }
        }
    }
}
