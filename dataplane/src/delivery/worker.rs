//! One subscription while this replica holds its lease: batch after batch, until nothing is left or another one is to be waited for.

pub(super) mod commits;
mod outcome;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Code;
use rowgate_core::webhook::destination::{Destination, Policy};
use rowgate_core::webhook::secret::WebhookSecret;
use rowgate_core::webhook::step::{Effect, Failure, Input, State, Status, step};
use rowgate_pg::tenant::delivery::commit::{self, Attempted, DeadLetter, Delivered, Standing, Written};
use rowgate_pg::tenant::delivery::{self, Claimed};
use rowgate_pg::tenant::events::Position;
use rowgate_program::entropy;
use tokio::time::{Instant, sleep};

use super::batch::reading::Reading;
use super::batch::{Batch, Hindrance};
use super::message::Message;
use super::sender::{HostPermit, Posted, SendFailure};
use super::{claimed as convert, redrive};
use crate::api::events::shared::Reader;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::tenants::tenant::Tenant;
use outcome::{excerpt, judged};

/// Between two looks whether the owner key of a request under way still lives.
const CHECK: Duration = Duration::from_millis(750);
/// What is delivered to without a pause is claimed again after so long: a secret that signs no more is among what was claimed.
const CLAIM_AGE: Duration = Duration::from_mins(1);
/// A place at a receiver that came later than this may be one for a subscription that was changed meanwhile.
const LATE: Duration = Duration::from_millis(500);

const NO_SECRET: &str = "no secret of the subscription can be opened to sign with; rotate its secret";

pub(super) struct Worker {
    pub(super) app: Arc<App>,
    pub(super) tenant: Arc<Tenant>,
    pub(super) lease: Ulid,
    pub(super) claimed: Claimed,
    pub(super) secrets: Vec<WebhookSecret>,
    pub(super) caller: Caller,
    reading: Reading,
    /// When it was claimed.
    began: Instant,
}

/// What became of one request.
pub(super) struct Outcome {
    pub(super) attempted: Attempted,
    /// `None`: delivered.
    pub(super) failure: Option<Failure>,
}

/// There is no outcome: the key died while the request was under way.
pub(super) struct OwnerDied;

impl Worker {
    pub(super) fn new(app: Arc<App>, tenant: Arc<Tenant>, lease: Ulid, claimed: Claimed) -> Option<Worker> {
        let owner: Ulid = claimed.owner_key.parse().ok()?;
        let open = |sealed: &Vec<u8>| app.sealing_key.open(&claimed.id, sealed);
        let secrets = claimed.secrets.iter().filter_map(open).collect();
        let caller = Caller::owner(&tenant, owner, app.body_memory.clone());
        let reading = Reading::new(Reader::new(app.shared_reads.clone()));
        Some(Worker { app, tenant, lease, claimed, secrets, caller, reading, began: Instant::now() })
    }

    /// Delivers what is there. The lease is given back with the last that is written, or runs out.
    pub(super) async fn run(mut self) {
        let mut state = convert::state(&self.claimed, Timestamp::now());
        if self.claimed.redrives && !redrive::all(&self).await {
            return self.give_back().await;
        }
        while state.status == Status::Enabled && !self.app.draining.is_cancelled() {
            let Some(next) = self.deliver(&state).await else { return };
            state = next;
        }
        self.give_back().await;
    }

    /// One batch. `None`: the lease is given back, or lost.
    async fn deliver(&mut self, state: &State<Position>) -> Option<State<Position>> {
        let end = state.batch.as_ref().map(|batch| batch.to);
        let most = u32::try_from(self.claimed.max_events).unwrap_or(1);
        let limit = state.batch_limit.map_or(most, |limit| limit.min(most)).max(1);
        let limit = usize::try_from(limit).unwrap_or(1);
        // a place at the receiver first: what is sent is what the key sees when it is sent
        let Some(place) = self.place().await else {
            self.give_back().await;
            return None;
        };
        let reading = &mut self.reading;
        let batch = match Batch::next(reading, &self.caller, &self.claimed, state.cursor, end, limit).await {
            Ok(batch) => batch,
            Err(hindrance) => return self.stop(state, hindrance).await,
        };
        if batch.events.is_empty() {
            drop(place);
            return self.write(state, Input::Nothing { to: batch.to }, batch, None).await;
        }
        let id = state.batch.as_ref().map_or_else(entropy::ulid, |batch| batch.id.clone());
        let attempt = state.batch.as_ref().map_or(0, |batch| batch.attempts) + 1;
        let replay = state.replay_until.is_some_and(|until| batch.to <= until);
        let sent = match &batch.payload_error {
            None => self.send(&id, attempt, replay, &batch.events).await,
            Some(error) => Ok(self.unsent(&id, attempt, &batch.events, error)),
        };
        drop(place);
        let outcome = match sent {
            Ok(outcome) => outcome,
            Err(OwnerDied) => return self.stop(state, Hindrance::OwnerInactive).await,
        };
        let n_events = u32::try_from(batch.events.len()).unwrap_or(u32::MAX);
        let input = match &outcome.failure {
            None => Input::Delivered { to: batch.to },
            Some(failure) => Input::Failed {
                id,
                to: batch.to,
                n_events,
                failure: *failure,
                now: Timestamp::now(),
                jitter: entropy::fraction(),
            },
        };
        self.write(state, input, batch, Some(outcome)).await
    }

    /// One of the requests that the receiver's host gets at a time. `None`: this replica ends, or this one waited and the
    /// subscription was changed meanwhile, or the database does not say whether it was.
    pub(super) async fn place(&self) -> Option<HostPermit> {
        let asked = Instant::now();
        let place = tokio::select! {
            place = self.app.sender.place(&self.claimed.url, &self.tenant.id) => place,
            () = self.app.draining.cancelled() => return None,
        };
        if asked.elapsed() < LATE {
            return Some(place);
        }
        let (id, lease) = (self.claimed.id.clone(), self.lease.clone());
        let standing = self
            .tenant
            .by_delivery(move |conn| Box::pin(async move { commit::standing(conn, &id, &lease).await }));
        let standing = standing.await.ok().flatten()?;
        self.is_as_claimed(standing).then_some(place)
    }

    /// What was claimed may have changed without a new version.
    pub(super) fn is_old(&self) -> bool {
        CLAIM_AGE <= self.began.elapsed()
    }

    fn is_as_claimed(&self, standing: Standing) -> bool {
        standing.version == self.claimed.version && !standing.suspend
    }

    /// Sends events, as a batch of that id, and looks meanwhile whether the owner key lives.
    pub(super) async fn send(
        &self,
        id: &Ulid,
        attempt: u32,
        replay: bool,
        events: &[(String, String)],
    ) -> Result<Outcome, OwnerDied> {
        let now = Timestamp::now();
        let message = Message {
            id: id.as_str(),
            kind: "row.batch",
            subscription: &self.claimed.id,
            attempt,
            replay,
            events: events.iter().map(|(_, event)| event.as_str()).collect(),
        };
        let body = message.body(now);
        let headers = message.headers(&self.claimed.headers, &self.secrets, now, &body);
        let allow_http = self.allow_http();
        let policy = Policy { allow_http, ranges: self.app.sender.ranges().to_vec() };
        let refused = |why: String| Posted { took: Duration::ZERO, result: Err(SendFailure::Refused(why)) };
        let sent = match Destination::parse(&self.claimed.url, &policy) {
            Err(refusal) => refused(refusal.to_string()),
            // nothing leaves unsigned
            Ok(_) if self.secrets.is_empty() => refused(NO_SECRET.to_owned()),
            Ok(destination) => {
                let post = self.app.sender.post(&destination, &policy, headers, body.clone());
                tokio::select! {
                    sent = post => sent,
                    () = self.owner_died() => return Err(OwnerDied),
                }
            }
        };
        let range = |event: Option<&(String, String)>| event.map(|(id, _)| id.clone()).unwrap_or_default();
        let (failure, error, status, response) = judged(&sent);
        let counts = &self.tenant.deliveries.counts;
        match failure {
            None => {
                counts.delivered.add_one();
                counts.events.add(events.len() as u64);
            }
            Some(_) => counts.failed.add_one(),
        }
        let attempted = Attempted {
            batch: id.clone(),
            attempt: i32::try_from(attempt).unwrap_or(i32::MAX),
            took_ms: i32::try_from(sent.took.as_millis()).unwrap_or(i32::MAX),
            n_events: i32::try_from(events.len()).unwrap_or(i32::MAX),
            n_bytes: i32::try_from(body.len()).unwrap_or(i32::MAX),
            first_event: range(events.first()),
            last_event: range(events.last()),
            status,
            request: failure.is_some().then(|| excerpt(&body)),
            error,
            response,
        };
        Ok(Outcome { attempted, failure })
    }

    /// An attempt that ended before there was something to send.
    pub(super) fn unsent(
        &self,
        id: &Ulid,
        attempt: u32,
        events: &[(String, String)],
        error: &str,
    ) -> Outcome {
        self.tenant.deliveries.counts.failed.add_one();
        let range = |event: Option<&(String, String)>| event.map(|(id, _)| id.clone()).unwrap_or_default();
        let attempted = Attempted {
            batch: id.clone(),
            attempt: i32::try_from(attempt).unwrap_or(i32::MAX),
            took_ms: 0,
            n_events: i32::try_from(events.len()).unwrap_or(i32::MAX),
            n_bytes: 0,
            first_event: range(events.first()),
            last_event: range(events.last()),
            status: None,
            request: None,
            error: Some(error.to_owned()),
            response: None,
        };
        Outcome { attempted, failure: Some(Failure::Payload) }
    }

    pub(super) fn allow_http(&self) -> bool {
        self.tenant.current().is_some_and(|now| now.catalog.limits.webhooks_allow_http)
    }

    /// Ends when the owner key is dead. While the database cannot be asked nothing is known, and what is under way has left already.
    async fn owner_died(&self) {
        loop {
            sleep(CHECK).await;
            let looked = self.tenant.authenticate_fresh(&self.caller.credential).await;
            if looked.is_err_and(|problem| problem.code == Code::Unauthorized) {
                return;
            }
        }
    }

    /// Writes what became of a batch, and gives the state to go on with.
    async fn write(
        &mut self,
        state: &State<Position>,
        input: Input<Position>,
        batch: Batch,
        outcome: Option<Outcome>,
    ) -> Option<State<Position>> {
        let config = convert::config(&self.claimed);
        let (next, effects) = step(state.clone(), input, &config);
        let now = Timestamp::now();
        let is_known = self.claimed.knows(&batch.tables);
        let mut written = convert::written(&next, Some(batch.tables.clone()), now);
        let attempt = outcome.map(|outcome| outcome.attempted);
        for effect in &effects {
            match effect {
                Effect::DeadLetter { id, attempts, .. } => {
                    self.tenant.deliveries.counts.dead_letters.add_one();
                    let (first_event, last_event) = batch.range();
                    written.dead_letter = Some(DeadLetter {
                        id: id.clone(),
                        n_events: i32::try_from(batch.events.len()).unwrap_or(i32::MAX),
                        attempts: i32::try_from(*attempts).unwrap_or(i32::MAX),
                        first_event,
                        last_event,
                        changes: batch.captured(),
                        status: attempt.as_ref().and_then(|attempt| attempt.status),
                        error: attempt.as_ref().and_then(|attempt| attempt.error.clone()),
                    });
                }
                Effect::Disabled(reason) => {
                    let (tenant, subscription) = (&self.tenant.slug, &self.claimed.id);
                    tracing::warn!(%tenant, subscription, ?reason, "a webhook subscription was disabled");
                }
                Effect::ReleaseBacklog => written.releases_backlog = true,
            }
        }
        written.attempt = attempt;
        let has_more = |next: &State<Position>| {
            let newest = self.tenant.event_tail.newest().map_or(i64::MAX, |tick| tick.number);
            next.status == Status::Enabled && next.batch.is_none() && next.cursor.tick <= newest
        };
        let goes_on = has_more(&next);
        written.keeps_lease = goes_on;
        let is_plain = effects.is_empty() && is_known && commits::is_plain(state, &next);
        let attempt = written.attempt.as_ref().filter(|it| is_plain && it.error.is_none());
        let with_others = attempt.map(|attempt| Delivered {
            subscription: self.claimed.id.clone(),
            lease: self.lease.clone(),
            cursor: next.cursor,
            read: batch.of_log,
            attempt: attempt.clone(),
            keeps_lease: goes_on,
        });
        let standing = match with_others {
            Some(delivered) => commits::write(&self.tenant, delivered).await,
            None => None,
        };
        let standing = match standing {
            Some(standing) => Some(standing),
            None => self.commit(batch.of_log, written).await,
        };
        let Some(standing) = standing else {
            // it is sent again under the same EventIds; others of the claim may go on for long, and prolong its lease
            self.give_back().await;
            return None;
        };
        if !goes_on && has_more(&next) {
            self.tenant.deliveries.left_over.notify_one();
        }
        self.claimed.note(batch.tables);
        let is_same = self.is_as_claimed(standing) && !self.is_old();
        match goes_on && is_same {
            true => Some(next),
            false => {
                // what was changed meanwhile is claimed again
                if goes_on {
                    self.give_back().await;
                }
                None
            }
        }
    }

    /// Ends without a batch. A dead owner is written down; what passes is tried again.
    async fn stop(&self, state: &State<Position>, hindrance: Hindrance) -> Option<State<Position>> {
        match hindrance {
            Hindrance::OwnerInactive => {
                let mut written = convert::written(state, None, Timestamp::now());
                written.owner_inactive = true;
                self.commit(None, written).await;
            }
            Hindrance::Passing => self.give_back().await,
        }
        None
    }

    async fn commit(&self, read: Option<Position>, written: Written) -> Option<Standing> {
        let (id, lease) = (self.claimed.id.clone(), self.lease.clone());
        let written = self.tenant.by_delivery(move |conn| {
            Box::pin(async move { commit::commit(conn, &id, &lease, read, &written).await })
        });
        written.await.ok().flatten()
    }

    async fn give_back(&self) {
        let (id, lease) = (self.claimed.id.clone(), self.lease.clone());
        let released = self
            .tenant
            .by_delivery(move |conn| Box::pin(async move { delivery::release(conn, &id, &lease).await }));
        // else it runs out
        let _given_back = released.await;
    }
}
