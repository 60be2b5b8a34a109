//! What a reader asks for: tables, ops, and where to go on.

use std::time::Duration;

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::events::Position;
use rowgate_sql::catalog::{Catalog, Entity, EntityKind, Scope};
use rowgate_sql::rest::{self, query_string};
use rowgate_sql::text::Ident;

use crate::auth::key_context::KeyContext;

const DEFAULT_LIMIT: i32 = 500;
const MAX_LIMIT: i32 = 1000;
const MAX_WAIT: u64 = 30;
/// As callers write them, and as they are stored.
pub(crate) const OPS: [(&str, &str); 4] =
    [("insert", "i"), ("update", "u"), ("delete", "d"), ("truncate", "t")];

pub(super) struct EventsRequest {
    /// As they are named.
    pub(super) tables: Option<String>,
    /// No two of one table.
    pub(super) sources: Vec<Source>,
    /// As they are stored.
    pub(super) ops: Vec<String>,
    pub(super) after: After,
    pub(super) limit: i32,
    pub(super) wait: Duration,
}

/// A table of which events are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) entity: EntityName,
    /// Its oid.
    pub(crate) table: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Now,
    Start,
    Position { generation: i32, at: Position },
}

impl EventsRequest {
    /// Of a request for a page.
    pub(super) fn parse(context: &KeyContext, query: &str) -> Result<EventsRequest, Problem> {
        EventsRequest::of(context, query, &["tables", "ops", "after", "limit", "wait"])
    }

    /// Of a stream, which goes on behind what its reader has.
    pub(super) fn of_stream(
        context: &KeyContext,
        query: &str,
        last: Option<&str>,
    ) -> Result<EventsRequest, Problem> {
        let mut request = EventsRequest::of(context, query, &["tables", "ops", "after"])?;
        if last.is_some() {
            request.after = position(last)?;
        }
        Ok(request)
    }

    fn of(context: &KeyContext, query: &str, names: &[&str]) -> Result<EventsRequest, Problem> {
        let scope = context.snapshot.scope(&context.key);
        let (mut tables, mut ops, mut after, mut limit, mut wait) = (None, None, None, None, None);
        for parameter in query_string::parameters(query) {
            let (name, value) = parameter?;
            let place = match name.as_str() {
                other if !names.contains(&other) => {
                    return Err(bad(&format!("{other:?} is not a parameter here; use {}", names.join(", "))));
                }
                "tables" => &mut tables,
                "ops" => &mut ops,
                "after" => &mut after,
                "limit" => &mut limit,
                _ => &mut wait,
            };
            if place.replace(value).is_some() {
                return Err(bad(&format!("{name} is given twice; give it once")));
            }
        }
        Ok(EventsRequest {
            sources: sources(context, &scope, tables.as_deref())?,
            tables,
            ops: stored(ops.as_deref())?,
            after: position(after.as_deref())?,
            limit: number(limit.as_deref(), "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)?,
            wait: Duration::from_secs(number(wait.as_deref(), "wait", 0, 0, MAX_WAIT)?),
        })
    }
}

fn bad(what: &str) -> Problem {
    Problem::new(Code::BadRequest, what)
}

/// The fields of the entity that the scope may read, if its events are the scope's to have: a reader tells rows apart by their keys.
pub(crate) fn readable(catalog: &Catalog, scope: &Scope, entity: &Entity) -> Option<Vec<usize>> {
    readable_once_guarded(scope, entity).filter(|_| !catalog.unguarded.contains(&entity.name))
}

fn readable_once_guarded(scope: &Scope, entity: &Entity) -> Option<Vec<usize>> {
    let rights = scope.entities.get(&entity.name)?;
    let is_read = |field: &usize| rights.read.get(*field).copied().unwrap_or_default();
    let is_table = entity.kind == EntityKind::Table && entity.events && scope.serves(entity);
    let is_open = is_table && !entity.key.is_empty() && entity.key.iter().all(is_read);
    is_open.then(|| (0..entity.fields.len()).filter(is_read).collect())
}

/// Whether that is what a reader calls the table: by the name of its entity, or as `schema.table`.
pub(crate) fn is_called(asked: &str, name: &EntityName, schema: &Ident, object: &Ident) -> bool {
    asked == name.as_str() || asked.split_once('.') == Some((schema.as_str(), object.as_str()))
}

/// Why the events of these tables cannot be given now, each by the name of its entity or as `schema.table`; `None`: of all that the
/// scope reads. A reader that went on without the one that is closed would never be given its events.
pub(crate) fn hindrance(catalog: &Catalog, scope: &Scope, tables: Option<&[&str]>) -> Option<Problem> {
    let is_asked = |name: &EntityName, schema: &Ident, object: &Ident| {
        tables.is_none_or(|tables| tables.iter().any(|asked| is_called(asked, name, schema, object)))
    };
    if scope.lacks_events(is_asked) {
        return Some(rest::absent());
    }
    let unguarded = catalog.unguarded.iter().filter_map(|name| catalog.entities.get(name));
    let mut unguarded = unguarded.filter(|it| readable_once_guarded(scope, it).is_some());
    if unguarded.any(|it| is_asked(&it.name, &it.schema, &it.object)) {
        return Some(rest::unguarded());
    }
    // a new column of the key, that the operator has not granted yet
    let is_fresh = |it: &Entity| {
        let reads = scope.entities.get(&it.name).is_some_and(|rights| rights.read.contains(&true));
        let of_events = it.kind == EntityKind::Table && it.events && scope.serves(it);
        of_events && reads && it.key.iter().any(|field| !it.fields[*field].granted)
    };
    let mut all = catalog.entities.values();
    all.any(|it| is_fresh(it) && is_asked(&it.name, &it.schema, &it.object)).then(rest::absent)
}

pub(crate) fn sources(
    context: &KeyContext,
    scope: &Scope,
    tables: Option<&str>,
) -> Result<Vec<Source>, Problem> {
    let catalog = &context.snapshot.catalog;
    let names: Option<Vec<&str>> = tables.map(|tables| tables.split(',').map(str::trim).collect());
    if let Some(problem) = hindrance(catalog, scope, names.as_deref()) {
        return Err(problem);
    }
    let readable: Vec<&Entity> = catalog
        .entities
        .values()
        .map(|entity| &**entity)
        .filter(|entity| readable(catalog, scope, entity).is_some())
        .collect();
    let named = |name: &str| {
        let is_it = |it: &&&Entity| is_called(name, &it.name, &it.schema, &it.object);
        readable.iter().find(is_it).copied().ok_or_else(|| {
            let names: Vec<&str> = readable.iter().map(|entity| entity.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            bad(&format!("{name:?} is not a table whose events this API key may read; it may read the events of: {names}"))
        })
    };
    let asked: Vec<&Entity> = match tables {
        None => readable.clone(),
        Some(tables) => tables.split(',').map(|name| named(name.trim())).collect::<Result<_, _>>()?,
    };
    if asked.is_empty() {
        return Err(bad(
            "this API key may read the events of no table; the Tenant captures those of entities with events: true",
        ));
    }
    let mut sources: Vec<Source> = Vec::with_capacity(asked.len());
    for entity in asked {
        let table = entity.relations.first().copied().unwrap_or_default();
        let source = Source { entity: entity.name.clone(), table };
        match sources.iter().find(|it| it.table == source.table) {
            None => sources.push(source),
            // of several entities over one table the first stands for it where none is named
            Some(_) if tables.is_none() => {}
            Some(same) => {
                let what =
                    format!("{} and {} are the same table; name one of them", same.entity, source.entity);
                return Err(bad(&what));
            }
        }
    }
    Ok(sources)
}

pub(crate) fn stored(ops: Option<&str>) -> Result<Vec<String>, Problem> {
    let Some(ops) = ops else { return Ok(OPS.iter().map(|(_, stored)| (*stored).to_owned()).collect()) };
    let one = |op: &str| {
        let found = OPS.iter().find(|(name, _)| *name == op.trim());
        found.map(|(_, stored)| (*stored).to_owned()).ok_or_else(|| {
            bad(&format!(
                "{op:?} is not an op; name some of insert, update, delete and truncate, separated by commas"
            ))
        })
    };
    ops.split(',').map(one).collect()
}

/// What callers call an op.
pub(crate) fn op_name(stored: &str) -> &'static str {
    OPS.iter().find(|(_, it)| *it == stored).map_or("update", |(name, _)| name)
}

pub(crate) fn position(after: Option<&str>) -> Result<After, Problem> {
    let text = match after {
        None => return Ok(After::Now),
        Some("start") => return Ok(After::Start),
        Some(text) => text,
    };
    let parts: Vec<&str> = text.split('.').collect();
    let whole = |part: &str| part.parse::<i64>().ok().filter(|number| 0 <= *number && *number < i64::MAX);
    if let [generation, tick, seq] = parts[..]
        && let (Some(generation), Some(tick), Some(seq)) = (generation.parse().ok(), whole(tick), whole(seq))
    {
        return Ok(After::Position { generation, at: Position { tick, seq } });
    }
    let what = "after takes the cursor of a page, an EventId, or start; leave it out to begin with what happens from now on";
    Err(Problem::new(Code::InvalidCursor, what))
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    text: Option<&str>,
    name: &str,
    default: T,
    least: T,
    most: T,
) -> Result<T, Problem> {
    let Some(text) = text else { return Ok(default) };
    let number = text.parse().ok().filter(|number| least <= *number && *number <= most);
    number.ok_or_else(|| bad(&format!("{name} takes a whole number from {least} to {most}")))
}
