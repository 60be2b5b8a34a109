//! What a subscription has not delivered, as its owner key is given it: asked of PostgreSQL once for all subscriptions of the key that stand at
//! one position, and kept for the batches that follow at once.

use std::sync::{Arc, Weak};

use rowgate_core::problem::Problem;
use rowgate_pg::tenant::delivery::{self, Claimed, Pending};
use rowgate_pg::tenant::events::{Change, Position};
use tokio::time::Instant;

use super::sources;
use crate::api::events::given::Given;
use crate::api::events::request::Source;
use crate::api::events::shared::{GivenPage, PAGE_AGE, Reader};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;

/// Changes that are read at a time, at most. A batch is at most one page.
const MOST: usize = 250;
/// At first, where batches are small. A full page that was sent while it was young is followed by one twice as large, and one that was not by half of
/// it: what is read is judged.
const LEAST: usize = 16;

/// Of one worker.
pub(in crate::delivery) struct Reading {
    reads: Reader,
    last: Option<Last>,
    /// How many changes are read next.
    n: usize,
    /// The tables that the key may read, as long as it and the catalog are what they were.
    found: Option<(KeyContext, Arc<[Source]>)>,
}

/// The page of before, as long as those who share it keep it: no worker holds one while a receiver takes its time.
struct Last {
    page: Weak<GivenPage>,
    /// Where the next page begins.
    next: Position,
    from: Position,
    is_full: bool,
    asked: Instant,
    tables: Vec<u32>,
}

/// A page that was read, of which a batch is made.
pub(super) struct Ahead {
    page: Arc<GivenPage>,
    /// Behind this position.
    from: Position,
    /// And not the backlog.
    is_of_log: bool,
    tables: Vec<u32>,
}

impl Reading {
    pub(in crate::delivery) fn new(reads: Reader) -> Reading {
        Reading { reads, last: None, n: LEAST, found: None }
    }

    /// As [`sources`] gives them.
    pub(super) fn sources(
        &mut self,
        context: &KeyContext,
        tables: Option<&[String]>,
    ) -> Result<Arc<[Source]>, Problem> {
        if let Some((of, found)) = &self.found
            && of.is_same(context)
        {
            return Ok(found.clone());
        }
        let found: Arc<[Source]> = sources(context, tables)?.into();
        self.found = Some((context.clone(), found.clone()));
        Ok(found)
    }

    /// What comes behind `from`, for batches of at most `limit` events; it was asked for at most [`PAGE_AGE`] ago. Of a batch that is tried
    /// again, whose bounds are what they were, `limit` is `None`.
    pub(super) async fn ahead(
        &mut self,
        caller: &Caller,
        claimed: &Claimed,
        sources: &[Source],
        from: Position,
        limit: Option<usize>,
    ) -> Result<Ahead, Problem> {
        let tables: Vec<u32> = sources.iter().map(|source| source.table).collect();
        let last = self.last.take();
        let Some(limit) = limit else { return own(caller, claimed, sources, tables, from, MOST).await };
        if let Some(last) = last {
            let is_left = last.from <= from && from < last.next;
            let is_fit = is_left && last.asked.elapsed() < PAGE_AGE && last.tables == tables;
            if let Some(page) = last.page.upgrade().filter(|_| is_fit) {
                self.last = Some(Last { from, ..last });
                return Ok(Ahead { page, from, is_of_log: true, tables });
            }
            if is_left {
                self.n /= 2;
            } else if last.is_full {
                self.n *= 2;
            }
        }
        // not all of it may be for the key
        self.n = self.n.clamp(LEAST, MOST).max(2 * limit).min(MOST);
        let n = i32::try_from(self.n).unwrap_or(i32::MAX);
        let Some((page, asked)) = self.reads.page(caller, from, (sources, &claimed.ops), n).await? else {
            return own(caller, claimed, sources, tables, from, self.n).await;
        };
        let (next, is_full) = (page.page.next, self.n <= page.page.changes.len());
        let last = Arc::downgrade(&page);
        self.last = Some(Last { page: last, next, from, is_full, asked, tables: tables.clone() });
        Ok(Ahead { page, from, is_of_log: true, tables })
    }
}

/// What this subscription has not delivered, whatever others are given. What the log gave up is kept for it alone.
async fn own(
    caller: &Caller,
    claimed: &Claimed,
    sources: &[Source],
    tables: Vec<u32>,
    from: Position,
    n: usize,
) -> Result<Ahead, Problem> {
    let (id, ops, rels) = (claimed.id.clone(), claimed.ops.clone(), tables.clone());
    let n = i32::try_from(n).unwrap_or(i32::MAX);
    let pending = caller.tenant.by_delivery(move |conn| {
        Box::pin(async move { delivery::pending(conn, &id, from, &rels, &ops, n).await })
    });
    let Pending { page, floor } = pending.await?;
    let given = Given::ask(caller, sources, &page).await?;
    given.count(&caller.tenant.event_tail.counts);
    let page = Arc::new(GivenPage { page, given });
    Ok(Ahead { page, from, is_of_log: floor < from.tick, tables })
}

impl Ahead {
    /// What was captured, in its order.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        let changes = &self.page.page.changes;
        changes[changes.partition_point(|change| change.at <= self.from)..].iter()
    }

    /// What the key is given of it, with EventIds.
    pub(super) fn events(&self) -> impl Iterator<Item = (Position, String, &str)> {
        self.page.given.behind(self.from)
    }

    /// Where the next page begins.
    pub(super) fn next(&self) -> Position {
        self.page.page.next
    }

    /// The position behind which it was read from the log, which may give it up meanwhile.
    pub(super) fn of_log(&self) -> Option<Position> {
        self.is_of_log.then_some(self.from)
    }

    /// The tables that were asked for.
    pub(super) fn tables(&self) -> &[u32] {
        &self.tables
    }
}
