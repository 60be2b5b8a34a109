//! One subscription while this replica holds its lease: batch after batch, until nothing is left or another one is to be waited for.

pub(super) mod commits;
mod outcome;
mod sending;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowgate_core::name::Ulid;
use rowgate_core::webhook::secret::WebhookSecret;
use rowgate_core::webhook::step::{Effect, Failure, Input, State, Status, step};
use rowgate_pg::tenant::delivery::commit::{self, Attempted, DeadLetter, Delivered, Standing, Written};
use rowgate_pg::tenant::delivery::{self, Claimed};
use rowgate_pg::tenant::events::Position;
use rowgate_program::entropy;
use tokio::time::Instant;

use super::batch::reading::Reading;
use super::batch::{Batch, Hindrance, range};
use super::sender::HostPermit;
use super::{claimed as convert, redrive};
use crate::api::events::shared::Reader;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::tenants::tenant::Tenant;

/// What is delivered to without a pause is claimed again after so long: a secret that signs no more is among what was claimed.
const CLAIM_AGE: Duration = Duration::from_mins(1);
/// A place at a receiver that came later than this may be one for a subscription that was changed meanwhile.
const LATE: Duration = Duration::from_millis(500);

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
        (asked.elapsed() < LATE || self.stands().await).then_some(place)
    }

    /// Whether the lease is still held, and the subscription is what it was when it was claimed. False also where the database does not say.
    async fn stands(&self) -> bool {
        let (id, lease) = (self.claimed.id.clone(), self.lease.clone());
        let standing = self
            .tenant
            .by_delivery(move |conn| Box::pin(async move { commit::standing(conn, &id, &lease).await }));
        standing.await.ok().flatten().is_some_and(|standing| self.is_as_claimed(standing))
    }

    fn is_as_claimed(&self, standing: Standing) -> bool {
        standing.version == self.claimed.version && !standing.suspend
    }

    /// What was claimed may have changed without a new version.
    pub(super) fn is_old(&self) -> bool {
        CLAIM_AGE <= self.began.elapsed()
    }

    fn has_more(&self, state: &State<Position>) -> bool {
        let newest = self.tenant.event_tail.newest().map_or(i64::MAX, |tick| tick.number);
        state.status == Status::Enabled && state.batch.is_none() && state.cursor.tick <= newest
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
                    let (first_event, last_event) = range(&batch.events);
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
        let goes_on = self.has_more(&next);
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
        self.claimed.note(batch.tables);
        if goes_on && self.is_as_claimed(standing) && !self.is_old() {
            return Some(next);
        }
        if goes_on {
            self.give_back().await;
        }
        // what came, or was changed, while a claim passed it over is claimed again
        if self.has_more(&next) {
            self.tenant.deliveries.left_over.notify_one();
        }
        None
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
