//! What of the log a subscription is sent next: read behind its position, seen as its owner key sees it, and bounded.

use std::sync::Arc;

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::delivery::{self, Claimed};
use rowgate_pg::tenant::events::{Change, Position};

use super::payload;
use crate::api::events::given::Given;
use crate::api::events::request::{Source, readable};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::tenants::tenant::Tenant;

/// Changes that are read at a time. A batch is at most one page.
const PAGE: i32 = 250;

/// What is sent, or the position behind that of which nothing is.
pub(super) struct Batch {
    /// With their EventIds, in their order, as JSON.
    pub(super) events: Vec<(String, String)>,
    /// All of it was read up to here.
    pub(super) to: Position,
    /// The changes as they were captured, for one that is given up.
    pub(super) changes: Vec<Change>,
    /// Where it was read from the log and not from the backlog.
    pub(super) from_log: Option<Position>,
    pub(super) rels: Vec<u32>,
}

/// Why there is no batch.
pub(super) enum Hindrance {
    /// The owner key does not live.
    OwnerInactive,
    /// The database does not answer, or the catalog is behind.
    Passing(Problem),
    /// The payload query failed on an event of a batch of so many, up to this position.
    Payload { batch: Box<Batch>, error: String },
}

impl From<Problem> for Hindrance {
    fn from(problem: Problem) -> Hindrance {
        match problem.code {
            Code::Unauthorized => Hindrance::OwnerInactive,
            _ => Hindrance::Passing(problem),
        }
    }
}

/// The tables of the subscription whose events the key may read by now: those that are named, or all.
pub(super) fn sources(context: &KeyContext, tables: Option<&[String]>) -> Vec<Source> {
    let (catalog, scope) = (&context.snapshot.catalog, context.snapshot.scope(&context.key));
    let is_named = |entity: &rowgate_sql::catalog::Entity| {
        tables.is_none_or(|tables| {
            tables.iter().any(|name| {
                name == entity.name.as_str()
                    || name.split_once('.') == Some((entity.schema.as_str(), entity.object.as_str()))
            })
        })
    };
    let mut sources: Vec<Source> = Vec::new();
    for entity in catalog.entities.values() {
        let Some(table) = entity.relations.first().copied() else { continue };
        let is_readable = readable(catalog, &scope, entity).is_some();
        // of several entities over one table the first stands for it
        if is_readable && is_named(entity) && !sources.iter().any(|source| source.table == table) {
            sources.push(Source { entity: entity.name.clone(), table });
        }
    }
    sources
}

/// Reads what comes next. `bounds`: of a batch that is tried again, its end.
pub(super) async fn next(
    caller: &Caller,
    claimed: &Claimed,
    from: Position,
    bounds: Option<Position>,
    limit: usize,
) -> Result<Batch, Hindrance> {
    let tenant = &caller.tenant;
    let context = tenant.authenticate_fresh(&caller.credential).await?;
    let sources = sources(&context, claimed.tables.as_deref());
    let rels: Vec<u32> = sources.iter().map(|source| source.table).collect();
    let delivery::Pending { mut page, floor } = read(tenant, claimed, from, &rels).await?;
    let is_whole = bounds.is_none_or(|end| page.next <= end);
    if let Some(end) = bounds {
        page.changes.retain(|change| change.at <= end);
    }
    let tick = tenant.make_tick_if_unknown().await?;
    let given = Given::ask(caller, &sources, &page, tick.generation).await?;
    let mut batch = Batch {
        events: Vec::new(),
        to: bounds.filter(|_| !is_whole).unwrap_or(page.next),
        changes: page.changes,
        from_log: (floor < from.tick).then_some(from),
        rels,
    };
    let mut n_bytes = 0;
    let most = usize::try_from(claimed.max_bytes).unwrap_or_default();
    for (at, event) in given.events() {
        n_bytes += event.len();
        // one event goes alone, however long it is
        let is_full = limit <= batch.events.len() || (most < n_bytes && !batch.events.is_empty());
        if is_full && bounds.is_none() {
            let last = batch.last_given.unwrap_or(from);
            batch.to = last;
            batch.changes.retain(|change| change.at <= last);
            break;
        }
        batch.events.push((event_id(event), event.to_owned()));
    }
    Ok(batch)
}
