//! What happens at random around one subscription, and the part of a delivery worker that a pure test needs.

use super::rules::{Outcome, Rules};
use super::*;
use crate::webhook::secret::{SECRET_LEN, WebhookSecret};
use crate::webhook::signature;

/// 24 hours and 30 days, in seconds.
const OVERLAP: i64 = 24 * 3600;
const UNDELIVERED: i64 = 30 * 24 * 3600;

/// An event of the log; its position is its index.
#[derive(Clone, Copy)]
struct Event {
    at: i64,
    is_visible: bool,
    /// The receiver takes no batch with it.
    is_bad: bool,
}

pub(super) struct Driver {
    random: Random,
    pub(super) state: State<u64>,
    config: Config,
    pub(super) rules: Rules,
    events: Vec<Event>,
    now: i64,
    suspend: bool,
    owner_lives: bool,
    /// What the receiver does with good batches, of ten.
    health: u64,
    n_ids: u64,
    /// Until when each secret signs; the last one signs on.
    secrets: Vec<(WebhookSecret, i64)>,
}

impl Driver {
    pub(super) fn new(seed: u64) -> Driver {
        let mut random = Random(seed);
        let max_attempts = 1 + random.below(4) as u32;
        let config = Config {
            schedule: Schedule { max_attempts, ..Schedule::default() },
            disable_on_gone: random.percent(50),
            max_events: 1 + random.below(12) as u32,
        };
        Driver {
            random,
            state: State::new(0),
            config,
            rules: Rules::new(config),
            events: Vec::new(),
            now: 0,
            suspend: false,
            owner_lives: true,
            health: 8,
            n_ids: 0,
            secrets: vec![(WebhookSecret::generate(&[0; SECRET_LEN]), i64::MAX)],
        }
    }

    /// One thing, of those that can happen.
    pub(super) fn happen(&mut self) {
        match self.random.below(100) {
            0..15 => {
                for _ in 0..=self.random.below(8) {
                    let (is_visible, is_bad) = (self.random.percent(80), self.random.percent(5));
                    self.events.push(Event { at: self.now, is_visible, is_bad });
                }
            }
            15..30 => self.now += 1 + self.random.below(7200) as i64,
            30..33 => self.health = self.random.below(11),
            33..35 => self.replay(),
            35 => self.suspend = true,
            36..39 if self.suspend => {
                self.suspend = false;
                self.reenable();
            }
            39 => self.reenable(),
            // the key is revoked; a new owner is named
            40 => self.owner_lives = false,
            41..44 => self.owner_lives = true,
            44 => self.rotate(),
            45 => self.rights_change(),
            46 if self.random.percent(40) => self.now += UNDELIVERED / 2,
            47..50 => self.sweep(),
            _ => self.deliver(),
        }
    }

    fn replay(&mut self) {
        let from = self.random.below(self.events.len() as u64 + 3);
        self.rules.replayed(from);
        self.step(Input::Replay { from });
    }

    fn reenable(&mut self) {
        self.rules.reenabled();
        self.step(Input::Reenable);
    }

    fn rotate(&mut self) {
        let now = self.now;
        self.secrets.retain(|(_, until)| now < *until);
        for (_, until) in &mut self.secrets {
            *until = (*until).min(now + OVERLAP);
        }
        let entropy = std::array::from_fn(|_| self.random.below(256) as u8);
        self.secrets.push((WebhookSecret::generate(&entropy), i64::MAX));
    }

    /// What the owner's key may read changes; events of a batch that is tried again are among them.
    fn rights_change(&mut self) {
        if !self.events.is_empty() {
            let i = self.random.below(self.events.len() as u64) as usize;
            self.events[i].is_visible = !self.events[i].is_visible;
        }
    }

    /// What looks after old events.
    fn sweep(&mut self) {
        let old = |event: &Event| UNDELIVERED <= self.now - event.at;
        let to = self.events.partition_point(|event| old(event)) as u64;
        if self.state.cursor < to {
            self.rules.released(to);
            self.step(Input::Undelivered { to });
        }
    }

    /// What a worker does when it finds the subscription due.
    fn deliver(&mut self) {
        let is_due = self.state.batch.as_ref().is_none_or(|batch| batch.next_at.as_second() <= self.now);
        let may_send = self.state.status == Status::Enabled && !self.suspend && self.owner_lives;
        if !may_send || !is_due || self.state.cursor == self.events.len() as u64 {
            return;
        }
        let end = self.state.batch.as_ref().map(|batch| batch.to);
        let limit = self.state.batch_limit.unwrap_or(self.config.max_events).min(self.config.max_events);
        let (mut to, mut batch) = (self.state.cursor, Vec::new());
        while to < end.unwrap_or(self.events.len() as u64) && (end.is_some() || batch.len() < limit as usize)
        {
            if self.events[to as usize].is_visible {
                batch.push(to);
            }
            to += 1;
        }
        if batch.is_empty() {
            self.rules.passed(to);
            return self.step(Input::Nothing { to });
        }
        let id = match &self.state.batch {
            Some(batch) => batch.id.clone(),
            None => {
                self.n_ids += 1;
                Ulid::from_parts(self.n_ids, [0; 10])
            }
        };
        self.sign(&id);
        let outcome = self.outcome(&batch);
        let until = self.state.replay_until;
        let is_replay = |event: &u64| until.is_some_and(|until| *event < until);
        let n_replayed = batch.iter().filter(|event| is_replay(event)).count();
        self.rules.attempted(&id, &batch, to, n_replayed, outcome, self.now);
        let n_events = batch.len() as u32;
        let Outcome::Failed(failure) = outcome else { return self.step(Input::Delivered { to }) };
        let now = Timestamp::from_second(self.now).expect("a time of our time");
        let jitter = self.random.fraction();
        self.step(Input::Failed { id, to, n_events, failure, now, jitter });
    }

    fn outcome(&mut self, batch: &[u64]) -> Outcome {
        let answered = |status, retry_after| Outcome::Failed(Failure::Answered { status, retry_after });
        if batch.iter().any(|event| self.events[*event as usize].is_bad) {
            return match self.random.below(4) {
                0 => Outcome::Failed(Failure::Payload),
                n => answered([400, 413, 422][n as usize - 1], None),
            };
        }
        if self.random.below(10) < self.health {
            return Outcome::Delivered;
        }
        match self.random.below(8) {
            0 => Outcome::Failed(Failure::TimedOut),
            1 => Outcome::Failed(Failure::Unreachable),
            2 => Outcome::Failed(Failure::Refused),
            3 => answered(429, Some(Duration::from_secs(self.random.below(2 * 3600)))),
            4 => answered(503, Some(Duration::from_secs(1))),
            5 if self.random.percent(60) => answered(410, None),
            _ => answered(500, None),
        }
    }

    /// Each secret signs until 24 hours after it was replaced.
    fn sign(&self, id: &Ulid) {
        let live: Vec<_> =
            self.secrets.iter().filter(|(_, until)| self.now < *until).map(|(it, _)| it.clone()).collect();
        let header = signature::rowgate(&live, self.now, b"{}");
        let standard = signature::standard(&live, id.as_str(), self.now, b"{}");
        assert!(!live.is_empty() && live.last() == self.secrets.last().map(|(it, _)| it));
        assert_eq!(header.matches(",v1=").count(), live.len());
        assert_eq!(standard.matches("v1,").count(), live.len());
    }

    fn step(&mut self, input: Input<u64>) {
        let (next, effects) = step(self.state.clone(), input, &self.config);
        self.state = next;
        self.rules.effects(&effects);
    }
}
