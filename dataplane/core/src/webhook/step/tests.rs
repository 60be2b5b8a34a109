use super::*;

mod model;

const MINUTE: Duration = Duration::from_secs(60);

fn config() -> Config {
    let schedule = Schedule { max_attempts: 3, ..Schedule::default() };
    Config { schedule, max_events: 100, disable_on_gone: false }
}

fn id(n: u64) -> Ulid {
    Ulid::from_parts(n, [0; 10])
}

fn failed(n_events: u32, failure: Failure) -> Input<u64> {
    Input::Failed { id: id(1), to: 10, n_events, failure, wait: MINUTE }
}

fn answered(status: u16) -> Failure {
    Failure::Answered { status, retry_after: None }
}

/// What is left of a state that a reader asks for.
fn told(state: &State<u64>) -> String {
    let State { status, consecutive_dead_letters: dead, cursor, batch, batch_limit, replay_until } = state;
    let mut text = format!("{status:?} at {cursor}");
    let mut add = |more: Option<String>| more.into_iter().for_each(|more| text.push_str(&more));
    add((*dead != 0).then(|| format!(", {dead} dead")));
    add(batch.as_ref().map(|batch| format!(", batch to {} after {}", batch.to, batch.attempts)));
    add(batch_limit.map(|limit| format!(", at most {limit}")));
    add(replay_until.map(|until| format!(", again until {until}")));
    text
}

fn check(config: &Config, inputs: &[Input<u64>], expected: &str) {
    let mut state = State::new(0);
    let mut all = String::new();
    for input in inputs {
        let (next, effects) = step(state, input.clone(), config);
        state = next;
        for effect in effects {
            match effect {
                Effect::DeadLetter { to, attempts, .. } => all.push_str(&format!("dead to {to} after {attempts}; ")),
                Effect::Disabled(reason) => all.push_str(&format!("disabled {reason:?}; ")),
                Effect::ReleaseBacklog => all.push_str("released; "),
            }
        }
    }
    all.push_str(&told(&state));
    assert_eq!(all, expected, "{inputs:?}");
}

#[test]
fn a_batch_is_tried_again_with_its_bounds_and_then_given_up() {
    let down = || failed(5, answered(500));
    check(&config(), &[Input::Delivered { to: 7 }], "Enabled at 7");
    check(&config(), &[Input::Nothing { to: 7 }], "Enabled at 7");
    check(&config(), &[down()], "Enabled at 0, batch to 10 after 1");
    check(&config(), &[down(), down()], "Enabled at 0, batch to 10 after 2");
    check(&config(), &[down(), down(), down()], "dead to 10 after 3; Enabled at 10, 1 dead");
    check(&config(), &[down(), down(), Input::Delivered { to: 10 }], "Enabled at 10");
    for failure in [Failure::TimedOut, Failure::Unreachable, Failure::Refused, answered(410), answered(302), answered(404)] {
        check(&config(), &[failed(5, failure)], "Enabled at 0, batch to 10 after 1");
    }
}

#[test]
fn the_third_dead_letter_in_a_row_disables() {
    let one = Config { schedule: Schedule { max_attempts: 1, ..Schedule::default() }, ..config() };
    let dead = |to| Input::Failed { id: id(to), to, n_events: 2, failure: Failure::TimedOut, wait: MINUTE };
    check(&one, &[dead(1), dead(2)], "dead to 1 after 1; dead to 2 after 1; Enabled at 2, 2 dead");
    let third = "dead to 1 after 1; dead to 2 after 1; dead to 3 after 1; disabled DeadLetters; ";
    check(&one, &[dead(1), dead(2), dead(3)], &format!("{third}Disabled(DeadLetters) at 3, 3 dead"));
    check(
        &one,
        &[dead(1), dead(2), Input::Delivered { to: 3 }, dead(4)],
        "dead to 1 after 1; dead to 2 after 1; dead to 4 after 1; Enabled at 4, 1 dead",
    );
    check(&one, &[dead(1), dead(2), dead(3), Input::Reenable], &format!("{third}Enabled at 3"));
    check(
        &one,
        &[dead(1), dead(2), dead(3), Input::Replay { from: 1 }],
        &format!("{third}Enabled at 1, again until 3"),
    );
}

#[test]
fn a_batch_that_the_receiver_cannot_take_is_halved_until_the_event_stands_alone() {
    for failure in [answered(400), answered(413), answered(422), Failure::Payload] {
        check(&config(), &[failed(9, failure.clone())], "Enabled at 0, at most 4");
        check(&config(), &[failed(1, failure)], "Enabled at 0, batch to 10 after 1");
    }
    let bad = |n| failed(n, answered(422));
    check(&config(), &[bad(100), bad(50), bad(25)], "Enabled at 0, at most 12");
    let good = |to| Input::Delivered { to };
    check(&config(), &[bad(100), good(1), good(2)], "Enabled at 2");
    check(&config(), &[bad(9), good(1)], "Enabled at 1, at most 8");
    check(&config(), &[bad(2), bad(1), bad(1), bad(1)], "dead to 10 after 3; Enabled at 10, 1 dead, at most 1");
}

#[test]
fn a_receiver_that_is_gone_ends_the_subscription_where_that_is_asked() {
    let ends = Config { disable_on_gone: true, ..config() };
    check(&ends, &[failed(5, answered(410))], "disabled Gone; Disabled(Gone) at 0, batch to 10 after 1");
    check(&ends, &[failed(5, answered(410)), Input::Reenable], "disabled Gone; Enabled at 0");
}

#[test]
fn a_replay_only_rewinds_and_an_old_event_releases_what_was_kept() {
    let (good, replay) = (|to| Input::Delivered { to }, |from| Input::Replay { from });
    check(&config(), &[good(9), replay(4)], "Enabled at 4, again until 9");
    check(&config(), &[good(9), replay(12)], "Enabled at 9");
    check(&config(), &[good(9), replay(4), good(6)], "Enabled at 6, again until 9");
    check(&config(), &[good(9), replay(4), good(6), replay(2)], "Enabled at 2, again until 9");
    check(&config(), &[good(9), replay(4), good(9)], "Enabled at 9");
    check(&config(), &[failed(5, answered(500)), replay(0)], "Enabled at 0");
    check(&config(), &[Input::Undelivered { kept: 8 }], "released; disabled Undelivered; Disabled(Undelivered) at 8");
}
