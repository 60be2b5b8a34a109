//! What of the log a subscription is sent next: read behind its position, seen as its owner key sees it, and bounded.

pub(super) mod reading;

use std::time::{Duration, Instant};

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::delivery::Claimed;
use rowgate_pg::tenant::delivery::commit::Tables;
use rowgate_pg::tenant::events::{Change, Position};
use rowgate_sql::catalog::Entity;

use super::payload::{PayloadError, PayloadQueries};
use crate::api::events::request::{Source, hindrance, is_called, readable};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::tenants::snapshot::Snapshot;
use reading::Reading;

/// A batch whose payload queries have taken this long goes with the events that it has.
const MAX_PAYLOAD_TIME: Duration = Duration::from_secs(5);

/// What is sent, or the position behind that of which nothing is.
pub(super) struct Batch {
    /// EventIds, and the events as JSON, in their order.
    pub(super) events: Vec<(String, String)>,
    /// All of it was read up to here.
    pub(super) to: Position,
    /// The changes as they were captured, for a batch that is given up.
    changes: Vec<Change>,
    /// The position behind which it was read from the log, and not from the backlog.
    pub(super) of_log: Option<Position>,
    pub(super) tables: Tables,
    /// Why the payload query gave nothing for one of the events: none is sent.
    pub(super) payload_error: Option<String>,
}

/// Why there is no batch.
pub(super) enum Hindrance {
    /// The owner key does not live.
    OwnerInactive,
    /// The database does not answer, or the catalog is behind.
    Passing,
}

impl From<Problem> for Hindrance {
    fn from(problem: Problem) -> Hindrance {
        match problem.code {
            Code::Unauthorized => Hindrance::OwnerInactive,
            _ => Hindrance::Passing,
        }
    }
}

/// An event as it is sent, or why the payload query made none. Other failures are no fault of the subscription's.
pub(super) async fn payload(
    caller: &Caller,
    context: &KeyContext,
    queries: &PayloadQueries,
    change: &Change,
    event: &str,
) -> Result<Result<String, String>, Hindrance> {
    match queries.applied(&caller.tenant, context, change, event).await {
        Ok(event) => Ok(Ok(event)),
        Err(error @ PayloadError::Query(_)) => Ok(Err(error.to_string())),
        Err(PayloadError::OwnerInactive) => Err(Hindrance::OwnerInactive),
        Err(PayloadError::OwnerChanged) => {
            // the next try has the key as it is then
            caller.tenant.authenticate_fresh(&caller.credential).await?;
            Err(Hindrance::Passing)
        }
        Err(PayloadError::Unavailable(cause)) => {
            tracing::debug!(tenant = %caller.tenant.slug, cause, "a payload query could not be run");
            Err(Hindrance::Passing)
        }
    }
}

/// The tables of a subscription whose events the key may read by now: those that are named, or all. None while one of them is closed.
pub(super) fn sources(context: &KeyContext, tables: Option<&[String]>) -> Result<Vec<Source>, Problem> {
    let (catalog, scope) = (&context.snapshot.catalog, context.snapshot.scope(&context.key));
    let names: Option<Vec<&str>> = tables.map(|names| names.iter().map(String::as_str).collect());
    if let Some(problem) = hindrance(catalog, &scope, names.as_deref()) {
        return Err(problem);
    }
    let is_it = |name: &String, it: &Entity| is_called(name, &it.name, &it.schema, &it.object);
    let is_named = |entity: &Entity| tables.is_none_or(|names| names.iter().any(|name| is_it(name, entity)));
    let mut sources: Vec<Source> = Vec::new();
    for entity in catalog.entities.values() {
        let Some(table) = entity.relations.first().copied() else { continue };
        let is_readable = readable(catalog, &scope, entity).is_some();
        // of several entities over one table the first stands for it
        if is_readable && is_named(entity) && !sources.iter().any(|source| source.table == table) {
            sources.push(Source { entity: entity.name.clone(), table });
        }
    }
    Ok(sources)
}

/// EventIds of the first and the last of these events.
pub(super) fn range(events: &[(String, String)]) -> (String, String) {
    let id = |event: Option<&(String, String)>| event.map(|(id, _)| id.clone()).unwrap_or_default();
    (id(events.first()), id(events.last()))
}

/// Tells one catalog of a tenant from another.
pub(super) fn version(snapshot: &Snapshot) -> String {
    format!("{} {} ", snapshot.catalog.generation, snapshot.watched.fingerprint)
}

impl Batch {
    /// What comes behind `from`: at most `limit` events, or up to `end`, that of a batch that is tried again.
    pub(super) async fn next(
        reading: &mut Reading,
        caller: &Caller,
        claimed: &Claimed,
        from: Position,
        end: Option<Position>,
        limit: usize,
    ) -> Result<Batch, Hindrance> {
        let tenant = &caller.tenant;
        let mut context = tenant.authenticate(&caller.credential).await?;
        let sources = match reading.sources(&context, claimed.tables.as_deref()) {
            Ok(sources) => sources,
            // no statement is sent that would find a newer catalog
            Err(_) => {
                context = tenant.authenticate_fresh(&caller.credential).await?;
                reading.sources(&context, claimed.tables.as_deref())?
            }
        };
        let ahead = reading.ahead(caller, claimed, &sources, from, end.is_none().then_some(limit)).await?;
        let is_over_end = |at: Position| end.is_some_and(|end| end < at);
        if ahead.changes().any(|change| change.image.is_none() && !is_over_end(change.at)) {
            // nothing is asked of the database about a truncate, so that the key is
            tenant.authenticate_fresh(&caller.credential).await?;
        }
        let (queries, mut payload_error) =
            match PayloadQueries::new(&context, claimed.payload_query.as_deref(), ahead.tables()) {
                Ok(queries) => (queries, None),
                Err(error) => (None, Some(error.to_string())),
            };
        let mut to = end.map_or(ahead.next(), |end| end.min(ahead.next()));
        let began = Instant::now();
        let (mut events, mut n_bytes, mut last) = (Vec::new(), 0, from);
        let max_bytes = usize::try_from(claimed.max_bytes).unwrap_or_default();
        for (at, event_id, event) in ahead.events().take_while(|(at, ..)| !is_over_end(*at)) {
            let is_late = MAX_PAYLOAD_TIME < began.elapsed() && !events.is_empty();
            // the bounds of a batch that is tried again are what they were
            let is_over = end.is_none() && (is_late || limit <= events.len());
            let (mut event, mut failed) = (event.to_owned(), None);
            if let (Some(queries), None, false) = (&queries, &payload_error, is_over)
                && let Some(change) = ahead.changes().find(|change| change.at == at)
            {
                match payload(caller, &context, queries, change, &event).await? {
                    Ok(made) => event = made,
                    Err(error) => failed = Some(error),
                }
            }
            n_bytes += event.len();
            // one event goes alone, however long it is; a batch that is tried again keeps its bounds
            let is_full = is_over || (max_bytes < n_bytes && !events.is_empty());
            if end.is_none() && is_full {
                to = last;
                break;
            }
            last = at;
            payload_error = payload_error.or(failed);
            events.push((event_id, event));
        }
        let set = context.key.set_role.as_deref().unwrap_or_default();
        let rels_of = format!("{}{set}", version(&context.snapshot));
        let tables = Tables { rels: ahead.tables().to_vec(), rels_of };
        let changes = ahead.changes().take_while(|change| change.at <= to).cloned().collect();
        Ok(Batch { events, to, changes, of_log: ahead.of_log(), tables, payload_error })
    }

    /// The changes as they were captured, of those that are sent, as a JSON array.
    pub(super) fn captured(&self) -> String {
        let raw = |image: &Option<String>| image.clone().unwrap_or_else(|| "null".to_owned());
        let change = |change: &Change| {
            let Change { at, generation, occurred_at, table, op, cause, image } = change;
            let cause = cause.map_or_else(|| "null".to_owned(), |cause| cause.to_string());
            format!(
                "{{\"tick\":{},\"seq\":{},\"generation\":{generation},\"at\":\"{occurred_at}\",\"rel\":{table},\"op\":\"{op}\",\"cause\":{cause},\"image\":{}}}",
                at.tick,
                at.seq,
                raw(image)
            )
        };
        format!("[{}]", self.changes.iter().map(change).collect::<Vec<_>>().join(","))
    }
}
