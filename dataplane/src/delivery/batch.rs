//! What of the log a subscription is sent next: read behind its position, seen as its owner key sees it, and bounded.

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::delivery::{self, Claimed, Pending};
use rowgate_pg::tenant::events::{Change, Position};
use rowgate_sql::catalog::Entity;

use crate::api::events::given::Given;
use crate::api::events::request::{Source, readable};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;

/// Changes that are read at a time. A batch is at most one page.
const PAGE: i32 = 250;

/// What is sent, or the position behind that of which nothing is.
pub(super) struct Batch {
    /// EventIds, and the events as JSON, in their order.
    pub(super) events: Vec<(String, String)>,
    /// All of it was read up to here.
    pub(super) to: Position,
    /// The changes as they were captured, for a batch that is given up.
    pub(super) changes: Vec<Change>,
    /// Where it was read from the log and not from the backlog.
    pub(super) read: Option<Position>,
    pub(super) rels: Vec<u32>,
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

/// The tables of a subscription whose events the key may read by now: those that are named, or all.
pub(super) fn sources(context: &KeyContext, tables: Option<&[String]>) -> Vec<Source> {
    let (catalog, scope) = (&context.snapshot.catalog, context.snapshot.scope(&context.key));
    let is_it = |name: &String, entity: &Entity| {
        name == entity.name.as_str()
            || name.split_once('.') == Some((entity.schema.as_str(), entity.object.as_str()))
    };
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
    sources
}

impl Batch {
    /// Reads what comes behind `from`: at most `limit` events, or up to `end`, that of a batch that is tried again.
    pub(super) async fn next(
        caller: &Caller,
        claimed: &Claimed,
        from: Position,
        end: Option<Position>,
        limit: usize,
    ) -> Result<Batch, Hindrance> {
        let tenant = &caller.tenant;
        let context = tenant.authenticate(&caller.credential).await?;
        let sources = sources(&context, claimed.tables.as_deref());
        let rels: Vec<u32> = sources.iter().map(|source| source.table).collect();
        let (id, ops, tables) = (claimed.id.clone(), claimed.ops.clone(), rels.clone());
        let pending = tenant
            .on_deliveries(move |conn| {
                Box::pin(async move { delivery::pending(conn, &id, from, &tables, &ops, PAGE).await })
            });
        let Pending { mut page, floor } = pending.await?;
        if page.changes.iter().any(|change| change.image.is_none()) {
            // nothing is asked of the database about a truncate, so that the key is
            tenant.authenticate_fresh(&caller.credential).await?;
        }
        let mut to = page.next;
        if let Some(end) = end {
            page.changes.retain(|change| change.at <= end);
            to = to.min(end);
        }
        let given = Given::ask(caller, &sources, &page).await?;
        let (mut events, mut n_bytes, mut last) = (Vec::new(), 0, from);
        let max_bytes = usize::try_from(claimed.max_bytes).unwrap_or_default();
        for ((at, event), (event_id, _)) in given.events().zip(given.each()) {
            n_bytes += event.len();
            // one event goes alone, however long it is; a batch that is tried again keeps its bounds
            let is_full = limit <= events.len() || (max_bytes < n_bytes && !events.is_empty());
            if end.is_none() && is_full {
                to = last;
                page.changes.retain(|change| change.at <= last);
                break;
            }
            last = at;
            events.push((event_id, event.to_owned()));
        }
        let read = (floor < from.tick).then_some(from);
        Ok(Batch { events, to, changes: page.changes, read, rels })
    }

    /// EventIds of the first and the last.
    pub(super) fn range(&self) -> (String, String) {
        let id = |event: Option<&(String, String)>| event.map(|(id, _)| id.clone()).unwrap_or_default();
        (id(self.events.first()), id(self.events.last()))
    }

    /// The changes as they were captured, of those that are sent, as a JSON array.
    pub(super) fn captured(&self) -> String {
        let raw = |image: &Option<String>| image.clone().unwrap_or_else(|| "null".to_owned());
        let change = |change: &Change| {
            let Change { at, generation, occurred_at, table, op, cause, image } = change;
            let cause = cause.map_or_else(|| "null".to_owned(), |cause| cause.to_string());
            format!(
                "{{\"tick\":{},\"seq\":{},\"generation\":{generation},\"at\":\"{occurred_at}\",\"rel\":{table},\"op\":\"{op}\",\"cause\":{cause},\"image\":{}}}",
                at.tick, at.seq, raw(image)
            )
        };
        format!("[{}]", self.changes.iter().map(change).collect::<Vec<_>>().join(","))
    }
}
