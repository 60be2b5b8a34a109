//! What becomes of a subscription: one step for each thing that happens to it. Nothing else decides.

use std::time::Duration;

use super::retry::Schedule;
use crate::name::Ulid;

/// All that decides. `P` is a position in the log; a greater one is later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State<P> {
    pub status: Status,
    /// Dead letters since the last success.
    pub consecutive_dead_letters: u32,
    /// Everything before it is settled.
    pub cursor: P,
    /// The batch that is tried again, with the bounds that it had first.
    pub batch: Option<Batch<P>>,
    /// Events of the next batch at most, while a bad one is being isolated.
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
    /// Three batches in a row were given up.
    DeadLetters,
    /// An event could not be delivered for 30 days.
    Undelivered,
    /// The receiver answered 410, and the subscription asks to end then.
    Gone,
}

/// A batch that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<P> {
    pub id: Ulid,
    /// The position behind it.
    pub to: P,
    pub n_events: u32,
    /// Made so far.
    pub attempts: u32,
    /// From its last attempt on.
    pub wait: Duration,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<P> {
    /// Nothing that the owner key may see stands before this position.
    Nothing { to: P },
    /// The receiver took the events before this position.
    Delivered { to: P },
    /// It did not. `wait`: before the next attempt, by the schedule.
    Failed { id: Ulid, to: P, n_events: u32, failure: Failure, wait: Duration },
    /// Send again what stands behind this position.
    Replay { from: P },
    /// Go on where it was left.
    Reenable,
    /// An event is 30 days old; what is kept for this subscription stands before `kept`.
    Undelivered { kept: P },
}

/// Why a batch was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// With another status than 2xx.
    Answered { status: u16, retry_after: Option<Duration> },
    TimedOut,
    Unreachable,
    /// The destination is none to which webhooks may go.
    Refused,
    /// The payload query failed.
    Payload,
}

/// What has to be done beside writing the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<P> {
    /// The batch is given up.
    DeadLetter { id: Ulid, to: P, attempts: u32 },
    Disabled(DisabledReason),
    /// What the log gave up for this subscription is not delivered any more.
    ReleaseBacklog,
}

/// What of a subscription's settings decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    pub schedule: Schedule,
    /// Events of a batch at most.
    pub max_events: u32,
    /// Whether an answer 410 ends it.
    pub disable_on_gone: bool,
}

/// Consecutive dead letters that disable a subscription.
const MAX_DEAD_LETTERS: u32 = 3;

impl Failure {
    /// Whether an event of the batch may be what the receiver, or the payload query, does not take.
    fn is_of_an_event(&self) -> bool {
        matches!(self, Failure::Payload | Failure::Answered { status: 400 | 413 | 422, .. })
    }

    /// What the receiver asks to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::Answered { retry_after, .. } => *retry_after,
            Failure::TimedOut | Failure::Unreachable | Failure::Refused | Failure::Payload => None,
        }
    }
}

impl<P: Copy + Ord> State<P> {
    /// Of a new subscription, which is sent what stands behind `cursor`.
    #[must_use]
    pub fn new(cursor: P) -> State<P> {
        State {
            status: Status::Enabled,
            consecutive_dead_letters: 0,
            cursor,
            batch: None,
            batch_limit: None,
            replay_until: None,
        }
    }

    /// Attempts of the batch that is tried again.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.batch.as_ref().map_or(0, |batch| batch.attempts)
    }

    /// Everything before `to` is settled.
    fn move_to(&mut self, to: P) {
        self.cursor = to;
        self.batch = None;
        self.replay_until = self.replay_until.filter(|until| to < *until);
    }

    fn forget_failures(&mut self) {
        self.status = Status::Enabled;
        self.consecutive_dead_letters = 0;
        self.batch = None;
        self.batch_limit = None;
    }

    fn disable(&mut self, reason: DisabledReason, effects: &mut Vec<Effect<P>>) {
        self.status = Status::Disabled(reason);
        effects.push(Effect::Disabled(reason));
    }
}

/// The next state, and what else is to be done. A disabled subscription sends nothing: only a replay, a re-enable or what was
/// under way when it was disabled reaches it.
#[must_use]
pub fn step<P: Copy + Ord>(
    mut state: State<P>,
    input: Input<P>,
    config: &Config,
) -> (State<P>, Vec<Effect<P>>) {
    let mut effects = Vec::new();
    match input {
        Input::Nothing { to } => state.move_to(to),
        Input::Delivered { to } => {
            state.move_to(to);
            state.consecutive_dead_letters = 0;
            let doubled = state.batch_limit.map(|limit| limit.saturating_mul(2));
            state.batch_limit = doubled.filter(|limit| *limit < config.max_events);
        }
        Input::Failed { id, to, n_events, failure, wait } => {
            let attempts = state.attempts() + 1;
            if config.disable_on_gone && matches!(failure, Failure::Answered { status: 410, .. }) {
                state.batch = Some(Batch { id, to, n_events, attempts, wait });
                state.disable(DisabledReason::Gone, &mut effects);
            } else if failure.is_of_an_event() && 1 < n_events {
                state.batch = None;
                state.batch_limit = Some(n_events / 2);
            } else if attempts < config.schedule.max_attempts {
                state.batch = Some(Batch { id, to, n_events, attempts, wait });
            } else {
                state.move_to(to);
                state.consecutive_dead_letters += 1;
                effects.push(Effect::DeadLetter { id, to, attempts });
                if MAX_DEAD_LETTERS <= state.consecutive_dead_letters {
                    state.disable(DisabledReason::DeadLetters, &mut effects);
                }
            }
        }
        Input::Replay { from } => {
            let until = state.replay_until.map_or(state.cursor, |until| until.max(state.cursor));
            state.cursor = state.cursor.min(from);
            state.replay_until = Some(until).filter(|until| state.cursor < *until);
            state.forget_failures();
        }
        Input::Reenable => state.forget_failures(),
        Input::Undelivered { kept } => {
            state.move_to(state.cursor.max(kept));
            state.batch_limit = None;
            effects.push(Effect::ReleaseBacklog);
            state.disable(DisabledReason::Undelivered, &mut effects);
        }
    }
    (state, effects)
}

#[cfg(test)]
mod tests;
