//! A table: what happens to a subscription, one line each.

use Happens::*;

use super::*;

/// What happens, in the words of the contract. A receiver takes part of the events 1, 2, 3, ... from the cursor on.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Success,
    /// The attempt on the held or a new batch of one event fails with this status.
    Answer(u16),
    /// The same, of a batch of so many events.
    AnswerTo(u32, u16),
    Timeout,
    NoConnection,
    NotAllowed,
    PayloadError(u32),
    /// All attempts on one batch fail.
    Exhausted,
    NothingToSee,
    ReplayFrom(u64),
    ReenabledByPatch,
    ThirtyDays,
}

const T0: Timestamp = Timestamp::UNIX_EPOCH;

fn config() -> Config {
    let schedule = Schedule { max_attempts: 3, ..Schedule::default() };
    Config { schedule, disable_on_gone: false, max_events: 100 }
}

/// The state after `happens`, in short, and the effects behind it.
fn after(happens: &[Happens], config: &Config) -> String {
    let (mut state, mut all, mut n_ids) = (State::new(1_u64), Vec::new(), 0);
    for each in happens {
        let repeats = if matches!(each, Exhausted) { config.schedule.max_attempts } else { 1 };
        for _ in 0..repeats {
            let input = input(*each, &state, &mut n_ids);
            let (next, effects) = step(state, input, config);
            state = next;
            all.extend(effects);
        }
    }
    let mut text = match state.status {
        Status::Enabled => format!("Enabled {}", state.consecutive_dead_letters),
        Status::Disabled(reason) => format!("{reason:?} {}", state.consecutive_dead_letters),
    };
    text.push_str(&format!(" at {}", state.cursor));
    if let Some(batch) = state.batch {
        let seconds = batch.next_at.as_second();
        let (to, attempts) = (batch.to, batch.attempts);
        text.push_str(&format!(", {} events to {to} tried {attempts}x, next {seconds} s", batch.n_events));
    }
    if let Some(limit) = state.batch_limit {
        text.push_str(&format!(", limit {limit}"));
    }
    if let Some(until) = state.replay_until {
        text.push_str(&format!(", replay until {until}"));
    }
    for effect in all {
        text.push_str(&match effect {
            Effect::DeadLetter { to, n_events, attempts, .. } => {
                format!("; dead letter of {n_events} to {to} after {attempts}")
            }
            Effect::Disabled(reason) => format!("; disabled {reason:?}"),
            Effect::ReleaseBacklog => "; backlog released".to_owned(),
        });
    }
    text
}

fn input(happens: Happens, state: &State<u64>, n_ids: &mut u64) -> Input<u64> {
    let answered = |status| Failure::Answered { status, retry_after: None };
    let mut fail = |n_events: u32, failure| {
        let (id, to, n_events) = match &state.batch {
            Some(batch) => (batch.id.clone(), batch.to, batch.n_events),
            None => {
                *n_ids += 1;
                let id = Ulid::from_parts(*n_ids, [0; 10]);
                (id, state.cursor + u64::from(n_events), n_events)
            }
        };
        Input::Failed { id, to, n_events, failure, now: T0, jitter: 0.0 }
    };
    match happens {
        Success => Input::Delivered { to: state.batch.as_ref().map_or(state.cursor + 1, |batch| batch.to) },
        Answer(status) => fail(1, answered(status)),
        AnswerTo(n_events, status) => fail(n_events, answered(status)),
        Timeout => fail(1, Failure::TimedOut),
        NoConnection => fail(1, Failure::Unreachable),
        NotAllowed => fail(1, Failure::Refused),
        PayloadError(n_events) => fail(n_events, Failure::Payload),
        Exhausted => fail(1, answered(500)),
        NothingToSee => Input::Nothing { to: state.cursor + 1 },
        ReplayFrom(from) => Input::Replay { from },
        ReenabledByPatch => Input::Reenable,
        ThirtyDays => Input::Undelivered { to: state.cursor + 1 },
    }
}

#[track_caller]
fn check(happens: &[Happens], expected: &str) {
    assert_eq!(after(happens, &config()), expected, "{happens:?}");
}

#[test]
fn a_failure_is_tried_again_and_the_last_attempt_makes_a_dead_letter() {
    check(&[], "Enabled 0 at 1");
    check(&[Success, Success], "Enabled 0 at 3");
    for failure in [Answer(500), Answer(429), Answer(302), Answer(404), Timeout, NoConnection, NotAllowed] {
        check(&[failure], "Enabled 0 at 1, 1 events to 2 tried 1x, next 5 s");
        check(&[failure, failure], "Enabled 0 at 1, 1 events to 2 tried 2x, next 10 s");
        check(&[failure; 3], "Enabled 1 at 2; dead letter of 1 to 2 after 3");
    }
    check(&[AnswerTo(7, 500), Success], "Enabled 0 at 8");
    check(&[AnswerTo(7, 500), Timeout, NoConnection], "Enabled 1 at 8; dead letter of 7 to 8 after 3");
}

#[test]
fn third_dead_letter_in_a_row_disables() {
    let three =
        "; dead letter of 1 to 2 after 3; dead letter of 1 to 3 after 3; dead letter of 1 to 4 after 3";
    let disabled = format!("{three}; disabled DeadLetters");
    check(&[Exhausted; 3], &format!("DeadLetters 3 at 4{disabled}"));
    check(
        &[Exhausted, Exhausted, Success, Exhausted],
        "Enabled 1 at 5; dead letter of 1 to 2 after 3; dead letter of 1 to 3 after 3; dead letter of 1 to 5 after 3",
    );
    check(
        &[Exhausted, Exhausted, Exhausted, ReplayFrom(2)],
        &format!("Enabled 0 at 2, replay until 4{disabled}"),
    );
    check(&[Exhausted, Exhausted, Exhausted, ReenabledByPatch], &format!("Enabled 0 at 4{disabled}"));
    check(&[Exhausted, Exhausted, Exhausted, Answer(500)], &format!("DeadLetters 3 at 4{disabled}"));
    check(
        &[Exhausted, NothingToSee, Exhausted, Exhausted],
        "DeadLetters 3 at 5; dead letter of 1 to 2 after 3; dead letter of 1 to 4 after 3; \
         dead letter of 1 to 5 after 3; disabled DeadLetters",
    );
}

#[test]
fn gone_is_a_failure_unless_the_subscription_asks_for_more() {
    check(&[Answer(410)], "Enabled 0 at 1, 1 events to 2 tried 1x, next 5 s");
    let gone = Config { disable_on_gone: true, ..config() };
    let held = "Gone 0 at 1, 1 events to 2 tried 1x, next 0 s; disabled Gone";
    assert_eq!(after(&[Answer(410)], &gone), held);
    assert_eq!(after(&[Answer(410), Answer(500)], &gone), held);
    let due = "Enabled 0 at 1, 1 events to 2 tried 0x, next 0 s; disabled Gone";
    assert_eq!(after(&[Answer(410), ReenabledByPatch], &gone), due);
    assert_eq!(after(&[Answer(410), ReplayFrom(1)], &gone), "Enabled 0 at 1; disabled Gone");
    assert_eq!(after(&[Answer(404)], &gone), "Enabled 0 at 1, 1 events to 2 tried 1x, next 5 s");
}

#[test]
fn a_bad_event_is_isolated_by_halving_and_then_follows_the_full_schedule() {
    for bad in [AnswerTo(100, 400), AnswerTo(100, 413), AnswerTo(100, 422), PayloadError(100)] {
        check(&[bad], "Enabled 0 at 1, limit 50");
    }
    check(&[AnswerTo(100, 400), AnswerTo(50, 400)], "Enabled 0 at 1, limit 25");
    check(&[AnswerTo(3, 400)], "Enabled 0 at 1, limit 1");
    check(&[AnswerTo(2, 500), Answer(400)], "Enabled 0 at 1, limit 1");
    check(&[AnswerTo(2, 400), Answer(400)], "Enabled 0 at 1, 1 events to 2 tried 1x, next 5 s, limit 1");
    let alone = [AnswerTo(2, 400), Answer(400), Answer(400), Answer(400)];
    check(&alone, "Enabled 1 at 2, limit 1; dead letter of 1 to 2 after 3");
    check(&[PayloadError(1)], "Enabled 0 at 1, 1 events to 2 tried 1x, next 5 s");
    // a half that was taken resets the count
    check(&[Exhausted, AnswerTo(2, 400), Success], "Enabled 0 at 3, limit 2; dead letter of 1 to 2 after 3");
}

#[test]
fn each_success_doubles_the_limit_until_it_is_gone() {
    check(&[AnswerTo(25, 400)], "Enabled 0 at 1, limit 12");
    check(&[AnswerTo(25, 400), Success], "Enabled 0 at 2, limit 24");
    check(&[AnswerTo(25, 400), Success, Success], "Enabled 0 at 3, limit 48");
    check(&[AnswerTo(25, 400), Success, Success, Success], "Enabled 0 at 4, limit 96");
    check(&[AnswerTo(25, 400), Success, Success, Success, Success], "Enabled 0 at 5");
    check(&[AnswerTo(100, 400), Success], "Enabled 0 at 2");
    check(
        &[AnswerTo(25, 400), NothingToSee, Timeout],
        "Enabled 0 at 2, 1 events to 3 tried 1x, next 5 s, limit 12",
    );
}

#[test]
fn a_replay_only_rewinds_and_clears_what_failed() {
    let five = [Success; 5];
    let with = |more: &[Happens]| [&five[..], more].concat();
    check(&with(&[ReplayFrom(2)]), "Enabled 0 at 2, replay until 6");
    check(&with(&[ReplayFrom(9)]), "Enabled 0 at 6");
    check(&with(&[ReplayFrom(6)]), "Enabled 0 at 6");
    check(&with(&[ReplayFrom(2), Success]), "Enabled 0 at 3, replay until 6");
    check(&with(&[ReplayFrom(2), Success, ReplayFrom(1)]), "Enabled 0 at 1, replay until 6");
    check(&with(&[ReplayFrom(2), Success, ReplayFrom(5)]), "Enabled 0 at 3, replay until 6");
    check(&with(&[ReplayFrom(4), Success, NothingToSee]), "Enabled 0 at 6");
    check(&with(&[AnswerTo(4, 500), ReplayFrom(9)]), "Enabled 0 at 6");
    check(&with(&[AnswerTo(4, 400), ReplayFrom(3)]), "Enabled 0 at 3, replay until 6");
    check(
        &with(&[ThirtyDays, ReplayFrom(6)]),
        "Enabled 0 at 6, replay until 7; backlog released; disabled Undelivered",
    );
}

#[test]
fn a_plain_reenable_keeps_the_batch_and_makes_it_due() {
    check(&[AnswerTo(7, 500), ReenabledByPatch], "Enabled 0 at 1, 7 events to 8 tried 0x, next 0 s");
    check(&[Exhausted, ReenabledByPatch], "Enabled 0 at 2; dead letter of 1 to 2 after 3");
    check(&[AnswerTo(4, 400), ReenabledByPatch], "Enabled 0 at 1, limit 2");
}

#[test]
fn thirty_days_disable_and_release() {
    check(&[ThirtyDays], "Undelivered 0 at 2; backlog released; disabled Undelivered");
    check(
        &[Answer(500), ThirtyDays, ThirtyDays],
        "Undelivered 0 at 3; backlog released; disabled Undelivered; backlog released",
    );
    check(&[ThirtyDays, ReenabledByPatch, Success], "Enabled 0 at 3; backlog released; disabled Undelivered");
    check(&[ThirtyDays, Success], "Undelivered 0 at 3; backlog released; disabled Undelivered");
}

#[test]
fn the_receiver_may_ask_for_a_later_attempt() {
    let failure = Failure::Answered { status: 503, retry_after: Some(Duration::from_secs(90)) };
    let id = Ulid::from_parts(1, [0; 10]);
    let input = Input::Failed { id, to: 2_u64, n_events: 1, failure, now: T0, jitter: 1.0 };
    let (state, _) = step(State::new(1), input, &config());
    assert_eq!(state.batch.map(|batch| batch.next_at.as_second()), Some(90));
}
