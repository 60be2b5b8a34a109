//! The newest tick of a tenant's events, looked for once for all requests of this replica that wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rowgate_core::problem::Problem;
use rowgate_pg::tenant::events::{self, LogSize, Tick};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::server::metrics::Count;
use crate::tenants::tenant::Tenant;

/// Between two looks while rows change, and after minutes of quiet.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_secs(1);
/// The time between two looks is at least so many times what the last one took, up to [`SLOW`], so that a server that is slow is asked less often.
const TIMES_A_LOOK: u32 = 2;
const SLOW: Duration = Duration::from_millis(20);
/// The time between two looks is this part of the time for which nothing has changed.
const PART_OF_QUIET: u32 = 10;

/// Between two looks at how much the log takes.
const LOG_SIZE_INTERVAL: Duration = Duration::from_mins(1);

/// Looks while a request waits, and costs nothing else.
pub(crate) struct EventTail {
    newest: watch::Sender<Option<Tick>>,
    is_looking: Mutex<bool>,
    /// Rows were written through this replica.
    written: Notify,
    streams: Arc<Mutex<HashMap<u64, Lag>>>,
    n_slots: AtomicU64,
    /// Ticks that came while this replica looked.
    pub(crate) ticks: Count,
    /// As last looked at, while a request waits.
    log: Mutex<Option<LogSize>>,
    pub(crate) counts: EventCounts,
}

/// How far a stream is behind the newest tick.
#[derive(Clone, Copy)]
struct Lag {
    since: Instant,
    n_ticks: i64,
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
pub(crate) struct StreamSlot {
    streams: Arc<Mutex<HashMap<u64, Lag>>>,
    id: u64,
}

impl StreamSlot {
    /// The stream has read all but so many ticks.
    pub(crate) fn note_lag(&self, n_ticks: i64) {
        if let Some(lag) = self.streams.lock().get_mut(&self.id) {
            if lag.n_ticks <= 0 || n_ticks <= 0 {
                lag.since = Instant::now();
            }
            lag.n_ticks = n_ticks;
        }
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.id);
    }
}

impl Default for EventTail {
    fn default() -> EventTail {
        EventTail {
            newest: watch::Sender::new(None),
            is_looking: Mutex::default(),
            written: Notify::new(),
            streams: Arc::default(),
            n_slots: AtomicU64::default(),
            ticks: Count::default(),
            log: Mutex::default(),
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
        let mut streams = self.streams.lock();
        if u64::from(most) <= streams.len() as u64 {
            return None;
        }
        let id = self.n_slots.fetch_add(1, Ordering::Relaxed);
        streams.insert(id, Lag { since: Instant::now(), n_ticks: 0 });
        Some(StreamSlot { streams: self.streams.clone(), id })
    }

    pub(crate) fn n_streams(&self) -> u64 {
        self.streams.lock().len() as u64
    }

    /// Of the stream that is the furthest behind: how many ticks, and for how many seconds it has not had them all.
    pub(crate) fn lag(&self) -> (i64, f64) {
        let streams = self.streams.lock();
        let behind = streams.values().filter(|lag| 0 < lag.n_ticks);
        behind.fold((0, 0.0), |(n_ticks, seconds), lag| {
            (n_ticks.max(lag.n_ticks), seconds.max(lag.since.elapsed().as_secs_f64()))
        })
    }

    pub(crate) fn log_size(&self) -> Option<LogSize> {
        *self.log.lock()
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
                let n_new = newest.map_or(0, |newest| tick.number.saturating_sub(newest.number));
                self.ticks.add(u64::try_from(n_new).unwrap_or_default());
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

    /// As [`Tenant::make_tick`], where the next look comes soon.
    async fn look(&self) -> Result<Tick, Problem> {
        let look = async {
            let mut conn = self.look_ups.acquire_warm().await?;
            let tick = events::tick(&mut conn).await;
            conn.done(tick)
        };
        let tick = self.run_attached(look).await?;
        self.event_tail.note_tick(tick);
        Ok(tick)
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

    async fn look_at_log_size(&self) -> Result<LogSize, Problem> {
        let pool = self.look_ups.clone();
        let look = async move {
            let mut conn = pool.acquire().await?;
            let size = events::log_size(&mut conn).await;
            conn.done(size)
        };
        self.run_detached(look).await
    }

    async fn look_for_ticks(&self) {
        let tail = &self.event_tail;
        let (mut last, mut changed) = (None, Instant::now());
        let mut sized: Option<Instant> = None;
        while !tail.ended() {
            if sized.is_none_or(|sized| LOG_SIZE_INTERVAL <= sized.elapsed()) {
                sized = Some(Instant::now());
                *tail.log.lock() = self.look_at_log_size().await.ok();
            }
            let began = Instant::now();
            // of a failure the tenant took note, and the next look is another try
            if let Ok(tick) = self.look().await
                && last.replace(tick) != Some(tick)
            {
                changed = Instant::now();
            }
            let shortest = (began.elapsed() * TIMES_A_LOOK).clamp(SHORTEST, SLOW);
            let pause = (changed.elapsed() / PART_OF_QUIET).clamp(shortest, LONGEST);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = tail.written.notified() => {}
                () = tail.newest.closed() => {}
            }
        }
    }
}
