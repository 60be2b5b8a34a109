//! A claimed subscription as the state machine knows it, and back.

use std::time::Duration;

use jiff::Timestamp;
use rowgate_core::webhook::retry::Schedule;
use rowgate_core::webhook::step::{Batch, Config, DisabledReason, State, Status};
use rowgate_pg::tenant::delivery::Claimed;
use rowgate_pg::tenant::delivery::commit::{Tables, Written, WrittenBatch};
use rowgate_pg::tenant::events::Position;

fn position(tick: Option<i64>, seq: Option<i64>) -> Option<Position> {
    Some(Position { tick: tick?, seq: seq? })
}

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

fn stored(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The words of a reason in the database.
const REASONS: [(DisabledReason, &str); 3] = [
    (DisabledReason::DeadLetters, "DeadLetters"),
    (DisabledReason::Undelivered, "Undelivered"),
    (DisabledReason::Gone, "Gone"),
];

/// `now`: when it was claimed, since a batch is claimed when its time has come.
pub(super) fn state(claimed: &Claimed, now: Timestamp) -> State<Position> {
    let reason = REASONS.iter().find(|(_, word)| claimed.reason.as_deref() == Some(word));
    let status = match (claimed.state.as_str(), reason) {
        ("disabled", reason) => Status::Disabled(reason.map_or(DisabledReason::DeadLetters, |(it, _)| *it)),
        _ => Status::Enabled,
    };
    let batch = || {
        Some(Batch {
            id: claimed.batch_id.as_ref()?.parse().ok()?,
            to: position(claimed.batch_tick, claimed.batch_seq)?,
            n_events: count(claimed.batch_events?),
            attempts: count(claimed.attempts),
            next_at: now,
        })
    };
    State {
        status,
        consecutive_dead_letters: count(claimed.consecutive_dead_letters),
        cursor: Position { tick: claimed.cursor_tick, seq: claimed.cursor_seq },
        batch: batch(),
        batch_limit: claimed.batch_limit.map(count),
        replay_until: position(claimed.replay_tick, claimed.replay_seq),
    }
}

/// What of its settings decides.
pub(super) fn config(claimed: &Claimed) -> Config {
    let seconds = |number: i32| Duration::from_secs(count(number).into());
    let schedule = Schedule {
        max_attempts: count(claimed.max_attempts),
        initial: seconds(claimed.initial_seconds),
        max: seconds(claimed.max_seconds),
    };
    Config { schedule, disable_on_gone: claimed.disable_on_gone, max_events: count(claimed.max_events) }
}

/// The state as it is written, of a batch from these tables.
pub(super) fn written(state: &State<Position>, tables: Option<Tables>, now: Timestamp) -> Written {
    let (word, reason) = match state.status {
        Status::Enabled => ("enabled", None),
        Status::Disabled(reason) => {
            ("disabled", REASONS.iter().find(|(it, _)| *it == reason).map(|(_, word)| *word))
        }
    };
    let wait_ms = |at: Timestamp| i64::try_from(at.duration_since(now).as_millis()).unwrap_or_default();
    let batch = state.batch.as_ref().map(|batch| WrittenBatch {
        id: batch.id.clone(),
        to: batch.to,
        n_events: stored(batch.n_events),
        attempts: stored(batch.attempts),
        wait_ms: wait_ms(batch.next_at).max(0),
    });
    Written {
        state: word,
        reason,
        consecutive_dead_letters: stored(state.consecutive_dead_letters),
        cursor: state.cursor,
        replay: state.replay_until,
        batch,
        batch_limit: state.batch_limit.map(stored),
        tables,
        attempt: None,
        dead_letter: None,
        releases_backlog: false,
        owner_inactive: false,
        keeps_lease: false,
    }
}
