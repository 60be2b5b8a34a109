//! Dead letters that are to be sent again: once each, in the order in which they were given up.

use rowgate_core::name::Ulid;
use rowgate_core::webhook::step::Failure;
use rowgate_pg::tenant::delivery::dead_letters::{self, Next, Redrive};
use rowgate_pg::tenant::events::{Change, Page};

use super::batch;
use super::payload::PayloadQueries;
use super::worker::{OwnerDied, Worker};
use crate::api::events::given::Given;

const REPLACED: &str = "the table of these events was replaced by another one, so that PostgreSQL cannot tell which of them the key may see now";

/// Sends those that are asked for. What the key may not read any more is left out, and where nothing is left the dead letter
/// counts as delivered. False: the subscription is not to be delivered to now.
pub(super) async fn all(worker: &Worker) -> bool {
    loop {
        if worker.is_old() {
            return false;
        }
        let Some(_place) = worker.place().await else { return false };
        match next(worker).await {
            Some(Next::Nothing) => return true,
            Some(Next::One(redrive)) => match one(worker, redrive).await {
                Some(()) => {}
                None => return false,
            },
            Some(Next::Held) | None => return false,
        }
    }
}

/// `None`: the database does not say.
async fn next(worker: &Worker) -> Option<Next> {
    let (id, lease, version) = (worker.claimed.id.clone(), worker.lease.clone(), worker.claimed.version);
    let next = worker.tenant.by_delivery(move |conn| {
        Box::pin(async move { dead_letters::next(conn, &id, &lease, version).await })
    });
    next.await.ok()
}

/// `None`: none is sent now.
async fn one(worker: &Worker, redrive: Redrive) -> Option<()> {
    let (events, payload_error) = events(worker, &redrive).await?;
    let outcome = match events.is_empty() && payload_error.is_none() {
        true => None,
        false => {
            let (id, attempt): (Ulid, _) = (redrive.id.parse().ok()?, redrive.attempts + 1);
            let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
            let sent = match &payload_error {
                None => worker.send(&id, attempt, true, &events).await,
                Some(error) => Ok(worker.unsent(&id, attempt, &events, error)),
            };
            match sent {
                Ok(outcome) => Some(outcome),
                Err(OwnerDied) => return None,
            }
        }
    };
    let is_delivered = outcome.as_ref().is_none_or(|outcome| outcome.failure.is_none());
    let refused = outcome.as_ref().is_some_and(|outcome| matches!(outcome.failure, Some(Failure::Refused)));
    let attempted = outcome.map(|outcome| outcome.attempted);
    let (id, lease, subscription) = (redrive.id.clone(), worker.lease.clone(), worker.claimed.id.clone());
    let noted = worker.tenant.by_delivery(move |conn| {
        Box::pin(async move {
            dead_letters::sent(conn, &subscription, &lease, &id, is_delivered, attempted.as_ref()).await
        })
    });
    let is_noted = noted.await.unwrap_or_default();
    (is_noted && !refused).then_some(())
}

/// The events, and why the payload query gave nothing for one of them.
async fn events(worker: &Worker, redrive: &Redrive) -> Option<(Vec<(String, String)>, Option<String>)> {
    let caller = &worker.caller;
    let context = caller.tenant.authenticate_fresh(&caller.credential).await.ok()?;
    let sources = batch::sources(&context, worker.claimed.tables.as_deref()).ok()?;
    let is_there = |change: &Change| {
        let mut entities = context.snapshot.catalog.entities.values();
        entities.any(|entity| entity.relations.first() == Some(&change.table))
    };
    if !redrive.changes.iter().any(is_there) {
        return Some((Vec::new(), Some(REPLACED.to_owned())));
    }
    let changes = redrive.changes.clone();
    let (next, generation) = changes.last().map(|last| (last.at, last.generation))?;
    let page = Page { changes, next, generation };
    let given = Given::ask(caller, &sources, &page).await.ok()?;
    given.count(&caller.tenant.event_tail.counts);
    let tables: Vec<u32> = sources.iter().map(|source| source.table).collect();
    let mut events: Vec<(String, String)> = given.each().map(|(id, event)| (id, event.to_owned())).collect();
    let queries = match PayloadQueries::new(&context, worker.claimed.payload_query.as_deref(), &tables) {
        Ok(Some(queries)) => queries,
        Ok(None) => return Some((events, None)),
        Err(error) => return Some((events, Some(error.to_string()))),
    };
    let mut error = None;
    for ((_, event), (at, _)) in events.iter_mut().zip(given.events()) {
        let Some(change) = page.changes.iter().find(|change| change.at == at) else { continue };
        match batch::payload(caller, &context, &queries, change, event).await.ok()? {
            Ok(made) => *event = made,
            Err(why) => {
                error = Some(why);
                break;
            }
        }
    }
    Some((events, error))
}
