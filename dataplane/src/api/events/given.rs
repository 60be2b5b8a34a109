//! What of a page a key is given: PostgreSQL is asked, as the role of the key.

use std::collections::{BTreeMap, HashMap};

use rowgate_core::problem::Problem;
use rowgate_pg::tenant::events::{Change, Page, Position};
use rowgate_pg::wire::{Failure, Piece, ReadPage};
use rowgate_sql::catalog::Entity;
use rowgate_sql::compile::image;
use rowgate_sql::rest;
use serde_json::json;
use serde_json::value::RawValue;

use super::cursor;
use super::request::{Source, hindrance, op_name, readable};
use crate::api::rest::wording::WORDING;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::tenants::event_tail::EventCounts;

/// Images in one statement.
const MAX_IMAGES: usize = 250;

/// Events as JSON, in their order, with their generations and positions.
pub(crate) struct Given {
    events: Vec<(i32, Position, String)>,
    /// Rows that row-level security does not show, as they were or as they are now.
    n_hidden: u64,
    /// Rows of which PostgreSQL refused to decide.
    n_undecided: u64,
}

impl Given {
    pub(crate) async fn ask(caller: &Caller, sources: &[Source], page: &Page) -> Result<Given, Problem> {
        let mut given: BTreeMap<usize, String> = BTreeMap::new();
        let (mut n_hidden, mut n_undecided) = (0, 0);
        for source in sources {
            let of_it = page.changes.iter().enumerate().filter(|(_, change)| change.table == source.table);
            let changes: Vec<(usize, &Change)> = of_it.collect();
            for changes in changes.chunks(MAX_IMAGES) {
                // the key as it is known by now: it may have died since the page was read
                let context = caller.reauthenticate().await?;
                let wanted = Images { source, changes };
                let answered = retry::run(caller, context, &wanted).await?;
                given.extend(answered.events);
                n_hidden += answered.n_hidden;
                n_undecided += answered.n_undecided;
            }
        }
        let at = |n: usize| page.changes.get(n).map(|change| (change.generation, change.at));
        let placed = |(n, event)| at(n).map(|(generation, at)| (generation, at, event));
        Ok(Given { events: given.into_iter().filter_map(placed).collect(), n_hidden, n_undecided })
    }

    /// Counts them for a reader that is given them.
    pub(crate) fn count(&self, counts: &EventCounts) {
        counts.given.add(self.events.len() as u64);
        counts.hidden.add(self.n_hidden);
        counts.undecided.add(self.n_undecided);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn json(&self) -> String {
        self.events().map(|(_, event)| event).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = (Position, &str)> {
        self.events.iter().map(|(_, at, event)| (*at, event.as_str()))
    }

    /// Those behind a position, with their cursors.
    pub(crate) fn behind(&self, from: Position) -> impl Iterator<Item = (Position, String, &str)> {
        let first = self.events.partition_point(|(_, at, _)| *at <= from);
        let left = self.events[first..].iter();
        left.map(|(generation, at, event)| (*at, cursor(*generation, *at), event.as_str()))
    }

    /// Cursors, and the events.
    pub(crate) fn each(&self) -> impl Iterator<Item = (String, &str)> {
        self.events.iter().map(|(generation, at, event)| (cursor(*generation, *at), event.as_str()))
    }
}

/// Changes of one table, with their numbers in the page.
struct Images<'a> {
    source: &'a Source,
    changes: &'a [(usize, &'a Change)],
}

/// Events by the numbers of their changes in the page, and how many were withheld.
#[derive(Default)]
struct Answered {
    events: Vec<(usize, String)>,
    n_hidden: u64,
    n_undecided: u64,
}

impl Attempt for Images<'_> {
    type Answer = Answered;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> Result<Self::Answer, RetryReason> {
        let (catalog, scope) = (&context.snapshot.catalog, context.snapshot.scope(&context.key));
        let found = catalog.entities.get(&self.source.entity);
        let found = found.filter(|entity| entity.relations.first() == Some(&self.source.table));
        let open = found.and_then(|entity| Some((entity, readable(catalog, &scope, entity)?)));
        let Some((entity, fields)) = open else {
            let name = self.source.entity.as_str();
            let problem = hindrance(catalog, &scope, Some(&[name]));
            let problem = problem.unwrap_or_else(|| rest::not_found(catalog, &scope, name));
            return Err(RetryReason::Refused(problem));
        };
        let mut answer = Answered::default();
        let is_truncate = |change: &Change| change.image.is_none();
        for (n, change) in self.changes.iter().filter(|(_, change)| is_truncate(change)) {
            answer.events.push((*n, self.event(entity, change, None)));
        }
        let rows: Vec<(usize, &Change)> =
            self.changes.iter().filter(|(_, change)| !is_truncate(change)).copied().collect();
        // an image that PostgreSQL refuses is withheld, and no other one because of it
        let mut todo: Vec<&[(usize, &Change)]> = if rows.is_empty() { Vec::new() } else { vec![&rows] };
        while let Some(rows) = todo.pop() {
            match ask(caller, context, entity, &fields, rows, !is_last).await {
                Ok(data) => {
                    answer.n_hidden += rows.len().saturating_sub(data.len()) as u64;
                    for (i, data) in data {
                        let Some((n, change)) = rows.get(i) else { continue };
                        answer.events.push((*n, self.event(entity, change, Some(&data))));
                    }
                }
                Err(Failure::Invalid(_) | Failure::Internal(_)) if rows.len() == 1 => {
                    answer.n_undecided += 1;
                    caller.trace.fault("an event was withheld", "PostgreSQL refused its image");
                }
                Err(Failure::Invalid(_) | Failure::Internal(_)) => {
                    let (first, second) = rows.split_at(rows.len() / 2);
                    todo.extend([first, second]);
                }
                Err(failure) => {
                    return Err(problem_of(caller, context, &WORDING, entity, failure, |_| None));
                }
            }
        }
        Ok(answer)
    }
}

/// The fields of those rows that the key may have, as JSON, by their numbers from 0 on.
async fn ask(
    caller: &Caller,
    context: &KeyContext,
    entity: &Entity,
    fields: &[usize],
    rows: &[(usize, &Change)],
    watches: bool,
) -> Result<HashMap<usize, String>, Failure> {
    let images: Vec<&str> = rows.iter().filter_map(|(_, change)| change.image.as_deref()).collect();
    let deleted = rows.iter().enumerate().filter(|(_, (_, change))| change.op == "d");
    let deleted: Vec<usize> = deleted.map(|(i, _)| i + 1).collect();
    let statement = image::images(entity, fields, format!("[{}]", images.join(",")), &deleted);
    let page = retry::read(caller, context, watches, statement, rows.len()).await?;
    let json = whole(page).await?;
    let text = format!("[{}]", String::from_utf8_lossy(&json));
    let objects: Vec<Box<RawValue>> = serde_json::from_str(&text).unwrap_or_default();
    Ok(objects.iter().filter_map(|object| numbered(object.get())).collect())
}

/// All of a long answer.
async fn whole(page: ReadPage) -> Result<Vec<u8>, Failure> {
    let mut json = page.json;
    let Some(mut rest) = page.rest else { return Ok(json) };
    while let Piece::Json(more) = rest.next().await? {
        json.extend(more);
    }
    Ok(json)
}

/// `{"#":3,"id":7}` is `{"id":7}` of the third row.
fn numbered(object: &str) -> Option<(usize, String)> {
    let rest = object.strip_prefix("{\"#\":")?;
    let (number, members) = rest.split_once(',')?;
    let number: usize = number.parse().ok()?;
    Some((number.checked_sub(1)?, format!("{{{members}")))
}

impl Images<'_> {
    fn event(&self, entity: &Entity, change: &Change, data: Option<&str>) -> String {
        let op = op_name(&change.op);
        let name = entity.name.as_str();
        let mut event = json!({
            "EventId": cursor(change.generation, change.at),
            "type": format!("{name}.{op}"),
            "op": op,
            "schema": entity.schema.as_str(),
            "table": entity.object.as_str(),
            "entity": name,
            "occurredAt": change.occurred_at,
        });
        if let Some(cause) = change.cause {
            event["cause"] = json!(cause.to_string());
        }
        let mut text = event.to_string();
        if let Some(data) = data {
            text.pop();
            text.push_str(&format!(",\"key\":{},\"data\":{data}}}", key(entity, data)));
        }
        text
    }
}

/// The values of the key, as they stand in the data.
fn key(entity: &Entity, data: &str) -> String {
    let values: HashMap<String, Box<RawValue>> = serde_json::from_str(data).unwrap_or_default();
    let member = |field: &usize| {
        let name = &entity.fields[*field].name;
        let value = values.get(name.as_str()).map_or("null", |value| value.get());
        format!("{}:{value}", json!(name.as_str()))
    };
    format!("{{{}}}", entity.key.iter().map(member).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_given_by_its_number() {
        assert_eq!(numbered("{\"#\":3,\"id\":7}"), Some((2, "{\"id\":7}".to_owned())));
        assert_eq!(numbered("{\"id\":7}"), None);
    }
}
