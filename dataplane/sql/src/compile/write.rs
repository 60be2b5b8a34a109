//! Rows made, changed and deleted, each in one statement, under the caller's own grants and policies.

use std::sync::Arc;

use super::{checks, column, mark, predicate, shown};
use crate::catalog::Entity;
use crate::query::{Check, Delete, Guard, Insert, NoRowReason, Predicate, Upsert};
use crate::shape::{Column, Encoding, Shape};
use crate::text::Sql;

/// A write: what it may do, and what it means when it does nothing. The effect of an [`upsert`] and of some [`delete`]s
/// stands in its shape's count: see [`Effect::of`].
#[derive(Debug, Clone)]
pub struct CompiledWrite {
    pub sql: Sql,
    pub shape: Arc<Shape>,
    pub entity: Arc<Entity>,
    pub verb: Verb,
    /// Where [`Guard::Seen`], a row that was passed over is one that policies keep from the caller.
    pub guard: Guard,
    /// What it means where no row was written.
    pub no_row: NoRowReason,
    /// The fields that a new row would need besides: see [`Upsert::missing`].
    pub missing: Vec<String>,
    /// Where one is not true nothing is written, and the effect is its [`Effect::Untrue`].
    pub checks: Vec<Check>,
    /// Where no index tells who came second, a row that is there (23505) may be the one that is meant: it is looked for again.
    pub may_race: bool,
    /// The first position of the shape is the row's version; where there is a second one, it is whether reads hide the row.
    pub is_tagged: bool,
}

/// What a write does to rows of its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Update,
    /// It changes one, or makes it.
    Upsert,
    Delete,
}

/// What a write of one row has done, as the count of its shape says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The row was there, and was changed or deleted.
    Changed,
    Made,
    /// The row was there, and a trigger or a policy has kept it as it was.
    PassedOver,
    /// The check of this number, from 0, is not true.
    Untrue(usize),
}

const CHANGED: u64 = 0;
const MADE: u64 = 1;
const PASSED_OVER: u64 = 2;
/// That the first check is not true; one more for each that follows.
pub(super) const FIRST_UNTRUE: u64 = 3;

impl Effect {
    /// `count`: what stands in the count of the shape. `None`: none of these.
    #[must_use]
    pub fn of(count: i64) -> Option<Effect> {
        match u64::try_from(count).ok()? {
            CHANGED => Some(Effect::Changed),
            MADE => Some(Effect::Made),
            PASSED_OVER => Some(Effect::PassedOver),
            code => usize::try_from(code - FIRST_UNTRUE).ok().map(Effect::Untrue),
        }
    }
}

/// All rows or none. PostgreSQL gives the rows of VALUES back in their order. Without fields to give back nothing is read:
/// a policy that hides the new row then does not matter.
#[must_use]
pub fn insert(insert: &Insert) -> CompiledWrite {
    let entity = &*insert.entity;
    let mut sql = Sql::new();
    sql.lit("insert into ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" as t ");
    let fields = &insert.fields;
    sql.reserve(fields.len() * insert.rows.len());
    if fields.is_empty() {
        sql.lit("default values");
    } else {
        for (i, &field) in fields.iter().enumerate() {
            sql.lit(if i == 0 { "(" } else { ", " }).ident(&entity.fields[field].column);
        }
        for (i, row) in insert.rows.iter().enumerate() {
            sql.lit(if i == 0 { ") values (" } else { "), (" });
            for (j, value) in row.iter().enumerate() {
                sql.lit(if j == 0 { "" } else { ", " });
                match value {
                    Some(bind) => sql.bind(bind.clone()),
                    None => sql.lit("default"),
                };
            }
        }
        sql.lit(")");
    }
    let mut columns = shown(&mut sql, entity, " returning ", &insert.returning);
    let marks = marks(&mut sql, entity, &mut columns, &insert.marks);
    let shape = Shape { columns, position: marks, count: None };
    written(sql, shape, &insert.entity, Verb::Insert, NoRowReason::PassedOver)
}

/// Changes the row; where there is none, makes it. Not `insert ... on conflict do update`: that asks for the right to
/// insert, and for every column that must not be null, though the row is there, and fails on one that is hidden.
///
/// The count of its shape is its [`Effect`]. No row: it had none. Of two who make the row the second one makes none; where no index keeps the key unique, nothing can tell them.
#[must_use]
pub fn upsert(upsert: &Upsert) -> CompiledWrite {
    let entity = &*upsert.entity;
    let mut sql = Sql::new();
    let mut shape = Shape { columns: Vec::new(), position: Vec::new(), count: None };
    let updates = !upsert.set.is_empty();
    sql.lit("with ");
    if upsert.looks {
        look(&mut sql, entity, &upsert.key, upsert.guard);
        if upsert.guard == Guard::Seen {
            of_version(&mut sql, entity, upsert);
        }
        // as the update would
        sql.lit(if upsert.holds { " for no key update), " } else { "), " });
    }
    if updates {
        sql.lit("u as (update ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" t set ");
        for (i, (field, bind)) in upsert.set.iter().enumerate() {
            sql.lit(if i == 0 { "" } else { ", " }).ident(&entity.fields[*field].column).lit(" = ");
            match bind {
                Some(bind) => sql.bind(bind.clone()),
                None => sql.lit("default"),
            };
        }
        // The row says its version itself once it is known to be one of those: told with the row's lock held, so that of two
        // who name the same one the second finds another. The table's triggers see to it for everybody else.
        if let Some(version) = entity.version().filter(|_| upsert.expected.is_some()) {
            let version = &entity.fields[version].column;
            sql.lit(", ").ident(version).lit(" = t.").ident(version);
        }
        // first of all: what a trigger has changed itself could not be held any more
        sql.lit(if upsert.holds { " where exists (select from p) and " } else { " where " });
        predicate::write(&mut sql, entity, &upsert.key, false);
        of_version(&mut sql, entity, upsert);
        checks::and(&mut sql, upsert, " and ");
        shape = returning(&mut sql, upsert, "0");
        sql.lit(")");
    }
    if let Some(values) = &upsert.insert {
        sql.lit(if updates { ", i as (insert into " } else { "i as (insert into " });
        sql.ident(&entity.schema).lit(".").ident(&entity.object).lit(" as t (");
        for (i, (field, _)) in values.iter().enumerate() {
            sql.lit(if i == 0 { "" } else { ", " }).ident(&entity.fields[*field].column);
        }
        sql.lit(") select ");
        for (i, (field, bind)) in values.iter().enumerate() {
            sql.lit(if i == 0 { "" } else { ", " }).bind(bind.clone());
            // Written out, so that what does not fit is cut, and not refused before its check can tell which it is.
            let is_checked = |it: &&Check| matches!(it, Check::Kept { field: at, .. } if at == field);
            if let (Some(_), Some(ty)) =
                (upsert.checks.iter().find(is_checked), &entity.fields[*field].rounds_to)
            {
                sql.lit("::").built_in(ty);
            }
        }
        sql.lit(match (updates, upsert.looks) {
            (true, true) => " where not exists (select from u) and not exists (select from p)",
            (true, false) => " where not exists (select from u)",
            (false, true) => " where not exists (select from p)",
            (false, false) => "",
        });
        checks::and(&mut sql, upsert, if updates || upsert.looks { " and " } else { " where " });
        if !entity.raises_for_a_second() && !upsert.is_plain {
            for (i, &field) in entity.key.iter().enumerate() {
                sql.lit(if i == 0 { " on conflict (" } else { ", " }).ident(&entity.fields[field].column);
            }
            sql.lit(") do nothing");
        }
        shape = returning(&mut sql, upsert, "1");
        sql.lit(")");
    }
    sql.lit(if updates { " select * from u" } else { " select * from i" });
    if updates && !entity.key_is_unique {
        // raises (21000) for a second row
        sql.lit(" where (select true from u)");
    }
    sql.lit(if updates && upsert.insert.is_some() { " union all select * from i" } else { "" });
    if upsert.looks {
        for i in 0..shape.columns.len() {
            sql.lit(if i == 0 { " union all select " } else { ", " });
            sql.lit(if shape.count == Some(i) { "2::pg_catalog.int8" } else { "null" });
        }
        sql.lit(match updates {
            true => " where exists (select from p) and not exists (select from u)",
            false => " where not exists (select from p) and not exists (select from i)",
        });
        checks::and(&mut sql, upsert, " and ");
    }
    checks::which(&mut sql, upsert, &shape);
    let (missing, checks, guard) = (upsert.missing.clone(), upsert.checks.clone(), upsert.guard);
    let may_race = entity.raises_for_a_second() && upsert.insert.is_some() && (updates || upsert.looks);
    let verb = match (&upsert.insert, updates) {
        (None, _) => Verb::Update,
        (Some(_), true) => Verb::Upsert,
        (Some(_), false) => Verb::Insert,
    };
    let written = written(sql, shape, &upsert.entity, verb, upsert.no_row);
    CompiledWrite { missing, checks, may_race, guard, ..written }
}

/// Whether the row is there, as it was before the statement: what triggers do meanwhile is not seen. Where that is to say
/// that policies keep it, it is one that reads show.
fn look(sql: &mut Sql, entity: &Entity, key: &Predicate, guard: Guard) {
    sql.lit("p as (select from ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" t where ");
    predicate::write(sql, entity, key, false);
    if let Some(flag) = entity.hidden_by().filter(|_| guard == Guard::Seen) {
        sql.lit(" and ");
        column(sql, entity, flag);
        sql.lit(" is not true");
    }
}

/// The row has one of the versions that it must have, if any.
fn of_version(sql: &mut Sql, entity: &Entity, upsert: &Upsert) {
    if let (Some(version), Some(versions)) = (entity.version(), &upsert.expected) {
        sql.lit(" and ");
        column(sql, entity, version);
        sql.lit(" = any (").bind(versions.clone()).lit(")");
    }
}

/// The fields to read back, which of both commands this is, and what is to be known besides.
fn returning(sql: &mut Sql, upsert: &Upsert, which: &'static str) -> Shape {
    let mut columns = shown(sql, &upsert.entity, " returning ", &upsert.returning);
    sql.lit(if columns.is_empty() { " returning " } else { ", " }).lit(which).lit("::pg_catalog.int8");
    columns.push(Column { label: None, encoding: Encoding::Int8 });
    let count = Some(columns.len() - 1);
    let position = marks(sql, &upsert.entity, &mut columns, &upsert.marks);
    Shape { columns, position, count }
}

fn marks(sql: &mut Sql, entity: &Entity, columns: &mut Vec<Column>, fields: &[usize]) -> Vec<usize> {
    fields.iter().map(|field| mark(sql, entity, columns, *field)).collect()
}

/// Reaches only what the caller's policies for reading show: the condition reads the key.
///
/// Where no index keeps the key unique a subquery raises (21000) for a second row; else the number of the command is that of
/// the rows deleted, either way. [`Effect::PassedOver`] is said by the count of the shape.
#[must_use]
pub fn delete(delete: &Delete) -> CompiledWrite {
    let entity = &*delete.entity;
    let mut sql = Sql::new();
    let mut shape = Shape { columns: Vec::new(), position: Vec::new(), count: None };
    let is_plain = entity.key_is_unique && !delete.looks;
    sql.lit(if is_plain { "" } else { "with " });
    if delete.looks {
        look(&mut sql, entity, &delete.key, delete.guard);
        sql.lit("), ");
        shape = Shape {
            columns: vec![Column { label: None, encoding: Encoding::Int8 }],
            count: Some(0),
            ..shape
        };
    }
    sql.lit(if is_plain { "" } else { "d as (" });
    sql.lit("delete from ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" t where ");
    predicate::write(&mut sql, entity, &delete.key, false);
    sql.lit(match (is_plain, delete.looks) {
        (true, _) => "",
        (false, false) => " returning true) select from d where (select true from d)",
        (false, true) => {
            " returning true) select 0::pg_catalog.int8 from d where (select true from d) \
             union all select 2::pg_catalog.int8 where exists (select from p) and not exists (select from d)"
        }
    });
    let written = written(sql, shape, &delete.entity, Verb::Delete, NoRowReason::NotFound);
    CompiledWrite { guard: delete.guard, ..written }
}

fn written(sql: Sql, shape: Shape, entity: &Arc<Entity>, verb: Verb, no_row: NoRowReason) -> CompiledWrite {
    CompiledWrite {
        sql,
        entity: Arc::clone(entity),
        verb,
        guard: Guard::None,
        no_row,
        missing: Vec::new(),
        checks: Vec::new(),
        may_race: false,
        is_tagged: !shape.position.is_empty(),
        shape: Arc::new(shape),
    }
}
