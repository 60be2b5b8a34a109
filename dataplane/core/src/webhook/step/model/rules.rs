//! The rules of webhooks over lists of what happened. They know nothing of the step that they judge.

use super::*;

pub(super) const N_KINDS: usize = 9;
pub(super) const KINDS: [&str; N_KINDS] = [
    "a delivery",
    "a retry",
    "a halving",
    "a dead letter",
    "a third dead letter",
    "a 410 that disables",
    "a rewind",
    "a replayed event",
    "a release",
];

#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Delivered,
    Failed(Failure),
}

/// What became of an event since the cursor was last set back before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Delivered,
    DeadLettered,
    Invisible,
    Released,
}

struct Attempt {
    id: Ulid,
    to: u64,
}

pub(super) struct Rules {
    config: Config,
    /// Of the events 0, 1, 2, ...; what stands behind its end is not settled.
    settled: Vec<Settled>,
    /// The attempts on the batch that is tried again.
    tried: Vec<Attempt>,
    /// Attempts since the schedule of that batch began, and when the next one may be made.
    n_tried: u32,
    due: i64,
    /// Ids that are never used again.
    closed: Vec<Ulid>,
    consecutive: u32,
    status: Status,
    /// While a bad event is isolated.
    limit: Option<u32>,
    /// How far the cursor had come at any rewind.
    farthest: u64,
    expected: Vec<Effect<u64>>,
    broken: Option<String>,
    pub(super) seen: [u64; N_KINDS],
}

impl Rules {
    pub(super) fn new(config: Config) -> Rules {
        Rules {
            config,
            settled: Vec::new(),
            tried: Vec::new(),
            n_tried: 0,
            due: 0,
            closed: Vec::new(),
            consecutive: 0,
            status: Status::Enabled,
            limit: None,
            farthest: 0,
            expected: Vec::new(),
            broken: None,
            seen: [0; N_KINDS],
        }
    }

    fn check(&mut self, holds: bool, rule: &str) {
        if !holds && self.broken.is_none() {
            self.broken = Some(rule.to_owned());
        }
    }

    fn cursor(&self) -> u64 {
        self.settled.len() as u64
    }

    /// Everything before `to` that is not settled yet becomes `how`.
    fn settle(&mut self, to: u64, how: Settled) {
        let to = self.settled.len().max(to as usize);
        self.settled.resize(to, how);
    }

    /// The batch that was tried is settled, or cut anew: its id is not used again.
    fn close(&mut self) {
        self.closed.extend(self.tried.drain(..).map(|attempt| attempt.id));
        (self.n_tried, self.due) = (0, 0);
    }

    fn disable(&mut self, reason: DisabledReason) {
        self.status = Status::Disabled(reason);
        self.expected.push(Effect::Disabled(reason));
    }

    pub(super) fn passed(&mut self, to: u64) {
        self.settle(to, Settled::Invisible);
        self.close();
    }

    /// A batch of `events` was sent. Each is the first that is not settled and visible, they go up, and none is left out.
    pub(super) fn attempted(
        &mut self,
        id: &Ulid,
        events: &[u64],
        to: u64,
        n_replayed: usize,
        outcome: Outcome,
        now: i64,
    ) {
        let n_events = events.len() as u32;
        self.check(self.status == Status::Enabled, "a disabled subscription sends nothing");
        self.check(
            events.iter().all(|event| self.cursor() <= *event && *event < to),
            "only unsettled events are sent",
        );
        self.check(events.is_sorted(), "events are sent in their order");
        self.check(!self.closed.contains(id), "the id of a settled batch is used again");
        self.check(self.due <= now, "the next attempt comes too soon");
        let again = events.iter().filter(|event| **event < self.farthest).count();
        self.check(again == n_replayed, "what is before the farthest rewind is a replay, and nothing else");
        self.seen[7] += again as u64;
        if let Some(first) = self.tried.first() {
            let same = (&first.id, first.to) == (id, to);
            self.check(same, "a batch keeps its id and bounds over retries");
            self.seen[1] += 1;
        } else {
            let limit = self.limit.unwrap_or(self.config.max_events).min(self.config.max_events);
            self.check(n_events <= limit, "a batch holds more events than it may");
        }
        self.tried.push(Attempt { id: id.clone(), to });
        self.n_tried += 1;
        match outcome {
            Outcome::Delivered => {
                self.seen[0] += 1;
                self.settle(to, Settled::Delivered);
                self.close();
                self.consecutive = 0;
                self.limit =
                    self.limit.map(|limit| 2 * limit).filter(|limit| *limit < self.config.max_events);
            }
            Outcome::Failed(failure) => self.failed(id, to, n_events, failure, now),
        }
    }

    fn failed(&mut self, id: &Ulid, to: u64, n_events: u32, failure: Failure, now: i64) {
        let (status, asked) = match failure {
            Failure::Answered { status, retry_after } => (status, retry_after.unwrap_or_default().as_secs()),
            _ => (0, 0),
        };
        let is_of_an_event = [400, 413, 422].contains(&status) || failure == Failure::Payload;
        if status == 410 && self.config.disable_on_gone {
            self.seen[5] += 1;
            self.disable(DisabledReason::Gone);
        } else if is_of_an_event && n_events != 1 {
            self.seen[2] += 1;
            self.limit = Some(n_events / 2);
            self.close();
        } else if self.n_tried == self.config.schedule.max_attempts {
            self.seen[3] += 1;
            let attempts = self.n_tried;
            self.expected.push(Effect::DeadLetter { id: id.clone(), to, n_events, attempts });
            self.settle(to, Settled::DeadLettered);
            self.close();
            self.consecutive += 1;
            if self.consecutive == 3 {
                self.seen[4] += 1;
                self.disable(DisabledReason::DeadLetters);
            }
        } else {
            // 5 s, 10 s, 20 s; at least half of it, and what the receiver asks up to an hour
            let backoff = 5.0 * f64::from(1 << (self.n_tried - 1));
            self.due = now + (backoff / 2.0).floor().max(asked.min(3600) as f64) as i64;
        }
    }

    pub(super) fn replayed(&mut self, from: u64) {
        if from < self.cursor() {
            self.seen[6] += 1;
            self.farthest = self.farthest.max(self.cursor());
            self.settled.truncate(from as usize);
        }
        self.close();
        (self.status, self.consecutive, self.limit) = (Status::Enabled, 0, None);
    }

    pub(super) fn reenabled(&mut self) {
        (self.status, self.consecutive, self.n_tried, self.due) = (Status::Enabled, 0, 0, 0);
    }

    pub(super) fn released(&mut self, to: u64) {
        self.seen[8] += 1;
        self.settle(to, Settled::Released);
        self.close();
        self.limit = None;
        self.expected.push(Effect::ReleaseBacklog);
        if self.status != Status::Disabled(DisabledReason::Undelivered) {
            self.disable(DisabledReason::Undelivered);
        }
    }

    /// What the step wants done is what the rules expect, in that order.
    pub(super) fn effects(&mut self, effects: &[Effect<u64>]) {
        let expected = std::mem::take(&mut self.expected);
        self.check(expected == effects, &format!("expected {expected:?}, not {effects:?}"));
    }

    /// The state says what the rules say.
    pub(super) fn hold(&mut self, state: &State<u64>) -> Result<(), String> {
        self.check(state.cursor == self.cursor(), "the cursor stands behind what is settled");
        self.check(state.status == self.status, "the status");
        self.check(state.consecutive_dead_letters == self.consecutive, "the count of dead letters");
        self.check(state.batch_limit == self.limit, "the limit of the next batch");
        let held = state.batch.as_ref().map(|batch| (&batch.id, batch.to));
        let tried = self.tried.last().map(|attempt| (&attempt.id, attempt.to));
        let same = held == tried;
        self.check(same, "the batch that is held is the one that was tried");
        let until = Some(self.farthest).filter(|until| self.cursor() < *until);
        self.check(state.replay_until == until, "until where events are sent again");
        self.broken.take().map_or(Ok(()), Err)
    }
}
