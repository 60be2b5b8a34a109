//! Rows within rows, as flat statements for one batch: a row that another one refers to is joined in the statement of that one,
//! and the rows that refer to one are a statement for each level, however many rows there are. It finds the rows around once more, in
//! the same snapshot, and gives beside each row by what it belongs to one of those; or it gives the rows around, too (`with_around`).

mod belonging;
mod in_memory;
mod joined;
mod with_around;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rowgate_core::cursor::Binding;

pub(super) use belonging::{Around, Belonging};
pub use in_memory::OrderColumn;
pub(super) use joined::{Join, join, of_order};
use with_around::KeysAround;
pub use with_around::ListWithin;

use super::select::{self, Member};
use super::{aggregate, column, column_of, encoding, limit, order, rows, rows_up_to};
use crate::catalog::{Entity, EntityKind, Link};
use crate::query::{Query, Selected, ToOne};
use crate::shape::{Column, Shape};
use crate::text::Sql;

/// The rows of a list in each row of another level, of the read itself, or of a document.
#[derive(Debug, Clone)]
pub struct CompiledLevel {
    /// `None`: its rows come in the statement of the rows around.
    pub sql: Option<Sql>,
    /// Of its rows.
    pub shape: Arc<Shape>,
    /// The list whose rows come in its statement, before its own.
    pub list_within: Option<ListWithin>,
    pub entity: Arc<Entity>,
    /// As [`CompiledRead::members`](super::CompiledRead::members).
    pub members: Vec<Member>,
    /// Rows of each list; the SQL may give one more or several.
    pub take: usize,
    /// So many rows, of all its lists, are as many as were asked for: there may be others. `None`: each list has its own limit.
    pub bound: Option<usize>,
    /// Its rows are single values and no objects.
    pub is_value: bool,
    /// There are no lists with fewer rows than there are: more than `take` are too many.
    pub is_whole: bool,
    /// The rows come in no order, all of them up to `bound`: by what those of a list are to be ordered. `None`: they come in their order.
    pub order: Option<Vec<OrderColumn>>,
    /// For the cursors of its lists.
    pub binding: Option<Binding>,
    /// The level whose rows hold the lists; `None`: the read, or the document.
    pub around: Option<usize>,
    /// The columns of `around` that the columns `key` repeat, byte by byte: a row belongs to those rows that have its own.
    pub key_around: Vec<usize>,
    pub key: Vec<usize>,
}

impl CompiledLevel {
    /// Whether it is the read itself, of which a page ends somewhere.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.around.is_none() && self.key.is_empty()
    }

    /// The columns that its statement gives.
    #[must_use]
    pub fn statement_shape(&self) -> &Shape {
        self.list_within.as_ref().map_or(&self.shape, |list| &list.shape)
    }

    /// Whether it is one value beside the rows of a read.
    #[must_use]
    pub fn is_root_value(&self) -> bool {
        self.is_value && self.around.is_none() && self.key.is_empty()
    }
}

/// From the rows around to the rows of a list.
#[derive(Clone)]
pub(super) struct Hop<'q> {
    /// The references on the way, from the rows around on.
    ones: Vec<&'q ToOne>,
    link: &'q Link,
    query: &'q Query,
}

/// How the rows of lists are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListPlan {
    /// Those of all lists of a level together, where that is known to give each row to its list, and up to a bound.
    Together,
    /// Each list by itself, up to its own limit.
    Apart,
}

/// What a list has to allow to be asked for together with others. Shorter ones are cheaper apart: an index may give the few first rows.
const MIN_LIMIT: u64 = 51;
/// Fewer rows around are as quick one by one.
const MIN_AROUND: u64 = 3;
/// `smallint`, `integer`, `bigint` and `uuid`: values that are equal are the same bytes.
const EQUAL_BYTES: [u32; 4] = [21, 23, 20, 2950];
/// Rows that may be read for nothing, where one list has more than all were expected to have; about 10 ms.
const MAX_BOUND: usize = 10_000;

/// The lists that are to be compiled yet. A level has the number of its list.
pub(super) struct Lists<'q> {
    pending: VecDeque<PendingList<'q>>,
    n: usize,
    /// The read below which the next lists are, and the level that is compiled.
    root: Option<&'q Query>,
    now: Option<usize>,
    plan: ListPlan,
}

struct PendingList<'q> {
    root: &'q Query,
    /// Empty: `root` itself is the list.
    hops: Vec<Hop<'q>>,
    around: Option<usize>,
    key_around: Vec<usize>,
}

impl<'q> Lists<'q> {
    /// For the lists in rows of this read, which is a statement by itself.
    pub(super) fn below(root: &'q Query) -> Lists<'q> {
        Lists { root: Some(root), ..Lists::of(ListPlan::Apart) }
    }

    /// For the reads of a document.
    pub(super) fn of(plan: ListPlan) -> Lists<'q> {
        Lists { pending: VecDeque::new(), n: 0, root: None, now: None, plan }
    }

    /// The number of the list that is noted next.
    pub(super) fn next_number(&self) -> usize {
        self.n
    }

    /// Notes a read of a document.
    pub(super) fn push_read(&mut self, root: &'q Query) {
        self.note(PendingList { root, hops: Vec::new(), around: None, key_around: Vec::new() });
    }

    /// Notes a list in the rows that `hops` and `ones` lead to.
    pub(super) fn push(
        &mut self,
        hops: &[Hop<'q>],
        ones: &[&'q ToOne],
        (link, query): (&'q Link, &'q Query),
        key_around: Vec<usize>,
    ) {
        let Some(root) = self.root else { return };
        let hops = [hops, &[Hop { ones: ones.to_vec(), link, query }]].concat();
        self.note(PendingList { root, hops, around: self.now, key_around });
    }

    fn note(&mut self, list: PendingList<'q>) {
        self.pending.push_back(list);
        self.n += 1;
    }

    /// All levels, each behind the one around it.
    pub(super) fn compiled(mut self) -> Vec<CompiledLevel> {
        let mut levels: Vec<CompiledLevel> = Vec::new();
        while let Some(PendingList { root, hops, around, key_around }) = self.pending.pop_front() {
            (self.root, self.now) = (Some(root), Some(levels.len()));
            let query = hops.last().map_or(root, |hop| hop.query);
            let together = together(root, &hops, self.plan);
            // the level in whose statement its rows come
            let pairs = together.map(|together| together.pairs);
            let with = around.filter(|at| with_around::fits(root, &hops, pairs, &levels[*at]));
            let of_around = with.and_then(|at| levels[at].sql.take());
            let mut sql = of_around.as_ref().map_or_else(Sql::new, with_around::begin);
            let mut select = select::write(&mut sql, query, &hops, &mut self);
            let columns = &mut select.shape.columns;
            let mut key = Vec::new();
            let mut order_when_read = None;
            if let Some(Together { pairs, .. }) = together {
                let mut asked =
                    |field: usize| select.asked.column(&mut sql, columns, (0, &query.entity), field);
                key.extend(pairs.iter().map(|(_, at)| asked(*at)));
                order_when_read = in_memory::order(query, pairs, asked);
            } else if let Some(hop) = hops.last() {
                let entity = entity_around(root, &hops);
                for around in hop.link.around() {
                    sql.lit(", p.").ident(&entity.fields[around].column);
                    key.push(columns.len());
                    columns.push(Column { label: None, encoding: encoding::of(&entity.fields[around].ty) });
                }
            }
            let list = with.map(|at| {
                let list = (&select.shape.columns[..], key[0]);
                (at, ListWithin::begin(&mut sql, levels.len(), list, &levels[at].shape))
            });
            let keys =
                with.map(|at| KeysAround { columns: &key_around, n_columns: levels[at].shape.columns.len() });
            from(&mut sql, root, (&hops, keys), &select.joins, self.plan);
            if order_when_read.is_none() {
                order(&mut sql, query);
            }
            if hops.is_empty() {
                limit(&mut sql, query);
            }
            let sql = match list {
                Some((at, list)) => {
                    list.end(&mut sql);
                    (levels[at].sql, levels[at].list_within) = (Some(sql), Some(list));
                    None
                }
                None => Some(sql),
            };
            levels.push(CompiledLevel {
                sql,
                shape: Arc::new(select.shape),
                list_within: None,
                entity: Arc::clone(&query.entity),
                members: select.members,
                take: query.take,
                bound: together.map(|together| together.bound),
                is_value: matches!(query.select[..], [Selected::Aggregate { .. }]),
                is_whole: query.group.is_some() && query.binding.is_none(),
                order: order_when_read,
                binding: query.binding,
                around,
                key_around,
                key,
            });
        }
        levels
    }
}

/// The entity that the last link begins at.
fn entity_around<'q>(root: &'q Query, hops: &'q [Hop<'_>]) -> &'q Entity {
    let Some((Hop { ones, .. }, before)) = hops.split_last() else { return &root.entity };
    match (ones.last(), before.last()) {
        (Some(one), _) => &one.entity,
        (None, Some(hop)) => &hop.query.entity,
        (None, None) => &root.entity,
    }
}

/// The lists that a hop leads to, asked for together.
#[derive(Clone, Copy)]
struct Together<'q> {
    /// Positions of fields that are equal, of the entity around and of the entity inside.
    pairs: &'q [(usize, usize)],
    /// Up to how many rows.
    bound: usize,
}

/// `None`: each of the lists that `hops` lead to is asked for by itself. One of many is known by the columns that point to its row
/// around, so these have to be the very bytes of that one's.
fn together<'q>(root: &Query, hops: &[Hop<'q>], plan: ListPlan) -> Option<Together<'q>> {
    let (hop, before) = hops.split_last()?;
    let (query, around) = (hop.query, entity_around(root, hops));
    let Link::Fields(pairs) = hop.link else { return None };
    let is_same = |(outer, inner): &(usize, usize)| {
        let (outer, inner) = (&around.fields[*outer].ty, &query.entity.fields[*inner].ty);
        outer.oid == inner.oid && EQUAL_BYTES.contains(&outer.oid)
    };
    let is_table = query.entity.kind == EntityKind::Table;
    let is_whole = query.group.is_none() && query.after.is_none() && !query.order.is_empty();
    let n_rows = rows_up_to(query);
    let n_around = before.iter().map(|hop| rows_up_to(hop.query)).fold(rows_up_to(root), u64::saturating_mul);
    let fits = is_table && is_whole && pairs.iter().all(is_same);
    let pays = MIN_LIMIT <= n_rows && MIN_AROUND <= n_around;
    let bound =
        usize::try_from(n_around.saturating_mul(n_rows)).map_or(MAX_BOUND, |bound| bound.min(MAX_BOUND));
    (plan == ListPlan::Together && fits && pays).then_some(Together { pairs, bound })
}

/// The rows that `hops` lead to, with what is joined to each. `found`: the columns by which they belong to the rows around, where these
/// are found before.
fn from(
    sql: &mut Sql,
    root: &Query,
    (hops, found): (&[Hop<'_>], Option<KeysAround<'_>>),
    joins: &[Join<'_>],
    plan: ListPlan,
) {
    let Some((hop, before)) = hops.split_last() else {
        return rows(sql, root, root.after.as_ref(), joins, None);
    };
    let query = hop.query;
    let together = together(root, hops, plan);
    let limited = |sql: &mut Sql, Together { pairs, bound }: Together<'_>| {
        rows(sql, query, None, &[], Some(Belonging::ToAny { root, before, hop, pairs, found }));
        sql.lit(" limit ").number(bound as u64);
    };
    // nothing is joined and nothing is ordered behind the limit: PostgreSQL would make each row once more for a subquery
    let is_flat = |it: &Together<'_>| joins.is_empty() && in_memory::is_possible(query, it.pairs);
    if let Some(together) = together.filter(is_flat) {
        return limited(sql, together);
    }
    sql.lit(" from (");
    match together {
        Some(together) => {
            read_columns(sql, query, together.pairs.iter().map(|(_, at)| *at));
            limited(sql, together);
        }
        None => {
            keys(sql, root, before, hop, (plan, true));
            sql.lit(") p cross join lateral (");
            match &query.group {
                Some(group) => aggregate::all(sql, group),
                None => read_columns(sql, query, []),
            }
            let around = Around { entity: entity_around(root, hops), link: hop.link, alias: None };
            rows(sql, query, query.after.as_ref(), &of_order(query), Some(Belonging::To(around)));
            order(sql, query);
            limit(sql, query);
        }
    }
    sql.lit(") t");
    join(sql, &query.entity, joins);
}

/// The columns that an answer is made of, and these.
fn read_columns(sql: &mut Sql, query: &Query, others: impl IntoIterator<Item = usize>) {
    let mut fields: BTreeSet<usize> = others.into_iter().collect();
    query.read_fields(&mut |field| {
        fields.insert(field);
    });
    sql.lit(if fields.is_empty() { "select" } else { "" });
    for (i, field) in fields.into_iter().enumerate() {
        sql.lit(if i == 0 { "select " } else { ", " });
        column(sql, &query.entity, field);
    }
}

/// By what the rows of a list belong to those around. `once`: each once, so that no row comes twice.
fn keys(sql: &mut Sql, root: &Query, before: &[Hop<'_>], hop: &Hop<'_>, (plan, once): (ListPlan, bool)) {
    let around = before.last().map_or(root, |hop| hop.query);
    let entity = hop.ones.last().map_or(&*around.entity, |one| &*one.entity);
    let link = hop.link.around();
    // a row that several rows around it are linked with is there for each of them
    let comes_once = !matches!(before.last().map(|hop| hop.link), Some(Link::Through(_)));
    let is_unique = comes_once
        && hop.ones.is_empty()
        && entity.key_is_unique
        && entity.key.iter().all(|field| link.contains(field));
    let is_distinct = once && !is_unique;
    // below other rows the order stands with them
    let mut joins = if before.is_empty() { of_order(root) } else { Vec::new() };
    let (mut alias, mut entity_around) = (0, None);
    for (n, one) in hop.ones.iter().enumerate() {
        let around = std::mem::replace(&mut alias, joins.len() as u64 + 1);
        let read = match hop.ones.get(n + 1) {
            Some(next) => next.link.iter().map(|(left, _)| *left).collect(),
            None => link.clone(),
        };
        joins.push(Join { around, alias, entity_around, link: &one.link, entity: &one.entity, read });
        entity_around = Some(&*one.entity);
    }
    if is_distinct {
        for (i, field) in link.iter().enumerate() {
            sql.lit(if i == 0 { "select distinct t." } else { ", t." }).ident(&entity.fields[*field].column);
        }
        sql.lit(" from (");
    }
    for (i, field) in link.iter().enumerate() {
        sql.lit(if i == 0 { "select " } else { ", " });
        column_of(sql, alias, entity, *field);
    }
    from(sql, root, (before, None), &joins, plan);
    if before.is_empty() {
        order(sql, root);
        limit(sql, root);
    }
    sql.lit(if is_distinct { ") t" } else { "" });
}
