//! What a query gives, worked out from rows that the same key reads over REST: a list for each table, each order and each single
//! comparison, and no relationship. Joins, the logic of filters, pages and groups are this test's own.

mod conditions;
mod groups;
mod numbers;
pub(super) mod rest;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::document::{Document, List, Member, Part, Root};
use super::world::tables::{RELATIONSHIPS, Relationship, TABLES};
use rest::{Rest, Row, Spelling};

/// Rows by number, of one table, in the order of their keys.
type Numbers = Vec<usize>;

/// What one key reads. Nothing changes while it asks.
pub(super) struct Oracle {
    pub(super) rest: Rest,
    /// By table.
    pub(super) rows: Vec<Vec<Row>>,
    /// By relationship and row: the rows that it leads to.
    links: HashMap<&'static str, Vec<Numbers>>,
    /// Lists that were asked, by table and options.
    lists: HashMap<(usize, String), Numbers>,
    /// Those that the document needs besides.
    missing: RefCell<BTreeSet<(usize, String)>>,
    /// Requests for single lists of the document, with the rows, their number and whether there are more.
    pub(super) each: RefCell<Vec<(usize, String, EachList)>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct EachList {
    pub(super) rows: Vec<String>,
    pub(super) count: usize,
    pub(super) has_more: bool,
}

/// Begins the text that stands for a cursor, before the number of its list and the row where the page ends.
pub(super) const CURSOR: &str = "\u{1}cursor ";

impl Oracle {
    /// `between`: the key that reads what links rows.
    pub(super) async fn open(rest: Rest, between: Rest, tables: &[usize]) -> Oracle {
        let mut rows = Vec::new();
        for at in 0..TABLES.len() {
            rows.push(if tables.contains(&at) { rest.all(at).await } else { Vec::new() });
        }
        let links_of = between.all(super::world::tables::MASTERIES).await;
        let link = |it: &'static Relationship| {
            let of = rows[it.from].iter().map(|from| {
                let leads = |to: &Row| match it.through {
                    None => it.pairs.iter().all(|(a, b)| equal(from, a, to, b)),
                    Some((a, b)) => links_of.iter().any(|link| {
                        let (mine, its) = (it.pairs[0].0, it.pairs[0].1);
                        equal(from, mine, link, a[0]) && equal(link, b[0], to, its)
                    }),
                };
                (0..rows[it.to].len()).filter(|at| leads(&rows[it.to][*at])).collect()
            });
            (it.name, of.collect())
        };
        let links = RELATIONSHIPS.iter().map(link).collect();
        Oracle {
            rest,
            rows,
            links,
            lists: HashMap::new(),
            missing: RefCell::default(),
            each: RefCell::default(),
        }
    }

    /// The data that a query gives, with [`CURSOR`] for each cursor.
    pub(super) async fn data(&mut self, document: &Document) -> Value {
        loop {
            self.each.borrow_mut().clear();
            let data = self.document(document);
            let missing = std::mem::take(&mut *self.missing.borrow_mut());
            if missing.is_empty() {
                return data;
            }
            for (table, options) in missing {
                let found = self.rest.list(table, &options).await;
                let number = |row: &Row| self.rows[table].iter().position(|other| other.id == row.id);
                let found =
                    found.iter().map(|row| number(row).expect("the key reads the row without options"));
                self.lists.insert((table, options), found.collect());
            }
        }
    }

    /// The rows of a list with these options, which is empty until they were asked.
    fn list(&self, table: usize, options: String) -> &[usize] {
        let known = self.lists.get(&(table, options.clone()));
        if known.is_none() {
            self.missing.borrow_mut().insert((table, options));
        }
        known.map_or(&[], Vec::as_slice)
    }

    fn document(&self, document: &Document) -> Value {
        let mut data = Map::new();
        for root in &document.roots {
            let (key, value) = match root {
                Root::Typename(key) => (key.clone(), json!("Query")),
                Root::Raw(_) => continue,
                Root::List(list) => (list.key.clone(), self.connection(list, None)),
                Root::Row { key, table, id, members } => {
                    let row = self.rows[*table].iter().position(|row| row.is_named(*table, id));
                    (key.clone(), row.map_or(Value::Null, |row| self.object(*table, row, members)))
                }
            };
            data.insert(key, value);
        }
        Value::Object(data)
    }

    fn object(&self, table: usize, row: usize, members: &[Member]) -> Value {
        let mut object = Map::new();
        for member in members {
            let (key, value) = match member {
                Member::Raw(_) => continue,
                Member::Typename(key) => (key, json!(TABLES[table].ty())),
                Member::Value { key, field } => (key, self.rows[table][row].values[field.name].clone()),
                Member::One { key, relationship, members } => {
                    let to = self.links[relationship.name][row].first();
                    (key, to.map_or(Value::Null, |to| self.object(relationship.to, *to, members)))
                }
                Member::Many(list) => (&list.key, self.connection(list, Some(row))),
            };
            object.insert(key.clone(), value);
        }
        Value::Object(object)
    }

    /// `around`: the row that holds the list.
    fn connection(&self, list: &List, around: Option<usize>) -> Value {
        let table = list.table;
        let passes = self.passing(table, list.filter.as_deref().unwrap_or_default());
        let belongs = |row: &usize| match (list.relationship, around) {
            (Some(it), Some(around)) => self.links[it.name][around].contains(row),
            _ => true,
        };
        let found: Numbers = (0..self.rows[table].len()).filter(|row| passes[*row] && belongs(row)).collect();
        let ordered = self.list(table, Spelling::order(&list.order));
        let begin = list.after.as_ref().map_or(0, |after| {
            let at = ordered.iter().position(|row| self.rows[table][*row].id == after.row);
            at.map_or(0, |at| at + 1)
        });
        let mut rest = ordered[begin.min(ordered.len())..].iter().copied().filter(|row| found.contains(row));
        let take = list.first.map_or(100, |first| usize::try_from(first).unwrap_or(usize::MAX));
        let page: Numbers = rest.by_ref().take(take).collect();
        let has_more = rest.next().is_some();
        if let (Some(it), Some(around), None) = (list.relationship, around, &list.after) {
            let id = |row: &usize| self.rows[table][*row].id.clone();
            let each = EachList { rows: page.iter().map(id).collect(), count: found.len(), has_more };
            if let Some(options) = Spelling::each(it, &self.rows[it.from][around], list) {
                self.each.borrow_mut().push((table, options, each));
            }
        }
        let mut object = Map::new();
        for part in &list.parts {
            let (key, value) = match part {
                Part::Typename(key) => (key, json!(format!("{}Connection", TABLES[table].ty()))),
                Part::Items(key, members) => {
                    (key, page.iter().map(|row| self.object(table, *row, members)).collect())
                }
                Part::EndCursor(key) => {
                    let cursor =
                        |row: &usize| json!(format!("{CURSOR}{} {}", list.number, self.rows[table][*row].id));
                    (key, page.last().map_or(Value::Null, cursor))
                }
                Part::HasNextPage(key) => (key, json!(has_more)),
                Part::TotalCount(key) => (key, json!(found.len())),
                Part::Groups(groups) => (&groups.key, self.groups(table, &found, groups)),
            };
            object.insert(key.clone(), value);
        }
        Value::Object(object)
    }
}

fn equal(one: &Row, a: &str, other: &Row, b: &str) -> bool {
    match (one.values.get(a), other.values.get(b)) {
        (Some(a), Some(b)) => !a.is_null() && a == b,
        // the key does not follow it
        _ => false,
    }
}
