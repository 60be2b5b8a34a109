//! The one place that decides what becomes of a subscription: its state, what happens to it, and what follows.
//!
//! A position `P` is exclusive: everything before the cursor is settled. Each input is applied to the state on which it was decided:
//! what stores states fences a delivery by
//! its lease and version, so that a delivery under way does not undo a replay. A redrive is no input: it sends a record again and leaves the subscription as it is. `suspend` and a dead owner
//! key are none either: nothing is sent then, so nothing happens.

use std::time::Duration;

use jiff::Timestamp;

use super::retry::Schedule;
use crate::name::Ulid;

#[cfg(test)]
mod model;
#[cfg(test)]
mod table;

/// Dead letters in a row that disable.
pub const MAX_CONSECUTIVE_DEAD_LETTERS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State<P> {
    pub status: Status,
    /// Since the last success, replay or re-enable.
    pub consecutive_dead_letters: u32,
    pub cursor: P,
    /// What is tried again; None: the next batch has yet to be cut.
    pub batch: Option<Batch<P>>,
    /// While a bad event is being isolated: how many events the next batch may hold.
    pub batch_limit: Option<u32>,
    /// Events before it are sent again.
    pub replay_until: Option<P>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Enabled,
    Disabled(DisabledReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledReason {
    /// Three in a row.
    DeadLetters,
    /// An event was not delivered for 30 days.
    Undelivered,
    /// The receiver answered 410, and the subscription asks for that.
    Gone,
}

/// A batch that failed. It keeps its id and bounds until it is settled or halved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<P> {
    pub id: Ulid,
    /// Behind its last event.
    pub to: P,
    pub n_events: u32,
    pub attempts: u32,
    pub next_at: Timestamp,
}

/// What of a subscription's settings decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    pub schedule: Schedule,
    pub disable_on_gone: bool,
    /// How many events a batch may hold.
    pub max_events: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Input<P> {
    /// The owner sees no event before `to`.
    Nothing {
        to: P,
    },
    /// The receiver took the batch: 2xx.
    Delivered {
        to: P,
    },
    /// An attempt did not succeed. `jitter` is evenly distributed from 0 to 1.
    Failed {
        id: Ulid,
        to: P,
        n_events: u32,
        failure: Failure,
        now: Timestamp,
        jitter: f64,
    },
    /// Sets the cursor back to `from`, if that is earlier.
    Replay {
        from: P,
    },
    Reenable,
    /// The oldest event is 30 days old; what stands before `to` is given up.
    Undelivered {
        to: P,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Answered {
        status: u16,
        retry_after: Option<Duration>,
    },
    TimedOut,
    Unreachable,
    /// By the guard of destinations.
    Refused,
    /// The payload query failed.
    Payload,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<P> {
    /// The batch is given up and recorded.
    DeadLetter {
        id: Ulid,
        to: P,
        n_events: u32,
        attempts: u32,
    },
    Disabled(DisabledReason),
    /// What was kept for it before the cursor goes.
    ReleaseBacklog,
}

/// What becomes of the subscription, and what follows.
#[must_use]
pub fn step<P: Copy + Ord>(state: State<P>, input: Input<P>, config: &Config) -> (State<P>, Vec<Effect<P>>) {
    match (state.status, input) {
        (_, Input::Nothing { to }) => (state.past(to), vec![]),
        (_, Input::Delivered { to }) => {
            let grown = state.batch_limit.map(|limit| limit.saturating_mul(2));
            let batch_limit = grown.filter(|limit| *limit < config.max_events);
            (State { consecutive_dead_letters: 0, batch: None, batch_limit, ..state.past(to) }, vec![])
        }
        // it was disabled while the attempt was under way
        (Status::Disabled(_), Input::Failed { .. }) => (state, vec![]),
        (Status::Enabled, Input::Failed { id, to, n_events, failure, now, jitter }) => {
            let attempts =
                1 + state.batch.as_ref().filter(|batch| batch.id == id).map_or(0, |it| it.attempts);
            let batch = Batch { id, to, n_events, attempts, next_at: now };
            failed(state, batch, failure, jitter, config)
        }
        (_, Input::Replay { from }) => {
            let cursor = state.cursor.min(from);
            let replay_until = state.replay_until.max(Some(state.cursor)).filter(|until| cursor < *until);
            let status = Status::Enabled;
            let state = State {
                status,
                consecutive_dead_letters: 0,
                cursor,
                batch: None,
                batch_limit: None,
                replay_until,
            };
            (state, vec![])
        }
        (_, Input::Reenable) => {
            // due at once, and the whole schedule before it again
            let due = |batch| Batch { attempts: 0, next_at: Timestamp::UNIX_EPOCH, ..batch };
            let batch = state.batch.map(due);
            (State { status: Status::Enabled, consecutive_dead_letters: 0, batch, ..state }, vec![])
        }
        (status, Input::Undelivered { to }) => {
            let (state, mut effects) = (state.past(to), vec![Effect::ReleaseBacklog]);
            let reason = DisabledReason::Undelivered;
            if status != Status::Disabled(reason) {
                effects.push(Effect::Disabled(reason));
            }
            (State { status: Status::Disabled(reason), batch: None, batch_limit: None, ..state }, effects)
        }
    }
}

/// What a failed attempt leads to; `batch` counts it.
fn failed<P: Copy + Ord>(
    state: State<P>,
    batch: Batch<P>,
    failure: Failure,
    jitter: f64,
    config: &Config,
) -> (State<P>, Vec<Effect<P>>) {
    if config.disable_on_gone && failure.status() == Some(410) {
        let reason = DisabledReason::Gone;
        let state = State { status: Status::Disabled(reason), batch: Some(batch), ..state };
        return (state, vec![Effect::Disabled(reason)]);
    }
    if failure.may_be_one_event() && 1 < batch.n_events {
        return (State { batch: None, batch_limit: Some(batch.n_events / 2), ..state }, vec![]);
    }
    if batch.attempts < config.schedule.max_attempts {
        let delay = config.schedule.delay(batch.attempts, jitter, failure.retry_after());
        let next_at = batch.next_at.saturating_add(delay).unwrap_or(Timestamp::MAX);
        return (State { batch: Some(Batch { next_at, ..batch }), ..state }, vec![]);
    }
    let state = state.past(batch.to);
    let Batch { id, to, n_events, attempts, .. } = batch;
    let mut effects = vec![Effect::DeadLetter { id, to, n_events, attempts }];
    let consecutive_dead_letters = state.consecutive_dead_letters.saturating_add(1);
    let mut status = state.status;
    if MAX_CONSECUTIVE_DEAD_LETTERS <= consecutive_dead_letters {
        let reason = DisabledReason::DeadLetters;
        status = Status::Disabled(reason);
        effects.push(Effect::Disabled(reason));
    }
    (State { status, consecutive_dead_letters, batch: None, ..state }, effects)
}

impl<P: Copy + Ord> State<P> {
    /// Of a subscription that begins at `cursor`.
    #[must_use]
    pub fn new(cursor: P) -> State<P> {
        let (batch, batch_limit, replay_until) = (None, None, None);
        State {
            status: Status::Enabled,
            consecutive_dead_letters: 0,
            cursor,
            batch,
            batch_limit,
            replay_until,
        }
    }

    /// Everything before `to` is settled.
    fn past(self, to: P) -> State<P> {
        let cursor = self.cursor.max(to);
        let batch = self.batch.filter(|batch| cursor < batch.to);
        State { cursor, batch, replay_until: self.replay_until.filter(|until| cursor < *until), ..self }
    }
}

impl Failure {
    /// Whether a single event of the batch may be what fails, so that halving isolates it.
    fn may_be_one_event(self) -> bool {
        match self {
            Failure::Answered { status, .. } => matches!(status, 400 | 413 | 422),
            Failure::Payload => true,
            Failure::TimedOut | Failure::Unreachable | Failure::Refused => false,
        }
    }

    fn status(self) -> Option<u16> {
        match self {
            Failure::Answered { status, .. } => Some(status),
            Failure::TimedOut | Failure::Unreachable | Failure::Refused | Failure::Payload => None,
        }
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            Failure::Answered { retry_after, .. } => retry_after,
            Failure::TimedOut | Failure::Unreachable | Failure::Refused | Failure::Payload => None,
        }
    }
}
