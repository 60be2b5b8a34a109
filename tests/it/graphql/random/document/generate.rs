//! Random queries over what a key reads.

use std::collections::HashSet;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

use super::intruder::{Intruder, Spot};
use super::{Document, List, Member, Part, Root};
use crate::graphql::random::world::drawn::Drawn;
use crate::graphql::random::world::manifest::MAX_PAGE;
use crate::graphql::random::world::rights::Rights;
use crate::graphql::random::world::tables::{FOREMAN, Relationship, TABLES, Type};

/// Rows that all lists around a list may have together.
const MAX_ROWS: i64 = 3_000;
const MAX_LISTS: usize = 30;
const MAX_MEMBERS: usize = 70;

pub(in crate::graphql::random) struct Generator<'a> {
    pub(super) rng: StdRng,
    pub(super) drawn: &'a Drawn,
    pub(super) rights: &'a Rights,
    /// Where one name is to stand that the key may not use, and which one does.
    pub(super) spot: Option<Spot>,
    pub(super) intruder: Option<Intruder>,
    n_aliases: usize,
    n_lists: usize,
    n_members: usize,
    /// Keys of the selection sets around, so that none is there twice.
    keys: Vec<HashSet<String>>,
}

impl<'a> Generator<'a> {
    pub(in crate::graphql::random) fn new(drawn: &'a Drawn, rights: &'a Rights, seed: u64) -> Generator<'a> {
        Generator {
            rng: StdRng::seed_from_u64(seed),
            drawn,
            rights,
            spot: None,
            intruder: None,
            n_aliases: 0,
            n_lists: 0,
            n_members: 0,
            keys: Vec::new(),
        }
    }

    pub(in crate::graphql::random) fn document(&mut self) -> Document {
        self.open();
        let mut roots = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            let tables = self.rights.tables();
            let Some(table) = tables.choose(&mut self.rng).copied() else {
                roots.push(Root::Typename(self.key("__typename")));
                break;
            };
            roots.push(match self.rng.random_range(0..20) {
                0 => Root::Typename(self.key("__typename")),
                1..5 => self.row(table),
                _ => Root::List(self.list(table, None, 0, 1)),
            });
        }
        self.close();
        Document { is_mutation: false, roots }
    }

    fn row(&mut self, table: usize) -> Root {
        let key = self.key(&format!("{}_by_pk", TABLES[table].singular()));
        let of = &TABLES[table];
        let row = self.drawn.rows[table].choose(&mut self.rng).expect("some rows");
        let mut id: Vec<String> = of
            .key
            .iter()
            .map(|name| of.fields.iter().position(|field| field.name == *name).expect("a field"))
            .map(|at| row[at].clone().expect("a key has values"))
            .collect();
        // of a row that is not there
        if self.rng.random_bool(0.1) && of.field(of.key[0]).ty != Type::Uuid {
            id[0] = "104".to_owned();
        }
        let members = self.members(table, 0, 1);
        Root::Row { key, table, id, members }
    }

    /// The members of a row's object.
    fn members(&mut self, table: usize, depth: usize, n_rows: i64) -> Vec<Member> {
        self.open();
        let mut found = Vec::new();
        for field in self.rights.fields(table) {
            if self.rng.random_bool(0.35) {
                found.push(Member::Value { key: self.key(field.name), field });
            }
        }
        for relationship in self.rights.relationships(table) {
            if 4 <= depth || MAX_MEMBERS < self.n_members || !self.rng.random_bool(0.3) {
                continue;
            }
            let key = self.key(relationship.name);
            if !relationship.to_one {
                found.push(Member::Many(self.related(key, relationship, depth, n_rows)));
            } else if relationship.name != FOREMAN || self.n_lists < MAX_LISTS {
                self.n_lists += usize::from(relationship.name == FOREMAN);
                let members = self.members(relationship.to, depth + 1, n_rows);
                found.push(Member::One { key, relationship, members });
            }
        }
        if found.is_empty() || self.rng.random_bool(0.15) {
            found.push(Member::Typename(self.key("__typename")));
        }
        if let Some(intruder) = self.intruder(Spot::Member, table) {
            found.push(Member::Raw(intruder.selection()));
        }
        found.shuffle(&mut self.rng);
        self.n_members += found.len();
        self.close();
        found
    }

    fn list(
        &mut self,
        table: usize,
        relationship: Option<&'static Relationship>,
        depth: usize,
        n_rows: i64,
    ) -> List {
        let name = relationship.map_or(TABLES[table].root(), |it| it.name);
        let key = self.key(name);
        self.list_called(key, table, relationship, (depth, n_rows))
    }

    fn related(&mut self, key: String, it: &'static Relationship, depth: usize, n_rows: i64) -> List {
        self.list_called(key, it.to, Some(it), (depth + 1, n_rows))
    }

    fn list_called(
        &mut self,
        key: String,
        table: usize,
        relationship: Option<&'static Relationship>,
        (depth, n_rows): (usize, i64),
    ) -> List {
        let number = self.n_lists;
        self.n_lists += 1;
        let page = |first: Option<i64>| first.map_or(100, |n| if n < 0 { MAX_PAGE } else { n });
        let firsts = [None, Some(-1), Some(10), Some(5), Some(3), Some(3), Some(2), Some(1)];
        let fits = firsts.into_iter().filter(|first| n_rows * page(*first) <= MAX_ROWS);
        let firsts: Vec<Option<i64>> = fits.collect();
        let first = firsts.choose(&mut self.rng).copied().unwrap_or(Some(1));
        let filter = self.rng.random_bool(0.45) || self.spot == Some(Spot::Filter);
        let filter = filter.then(|| self.conditions(table, 0));
        let order = self.order(table);
        self.open();
        let mut parts = Vec::new();
        let n_inside = n_rows * page(first);
        for kind in 0..6 {
            let share = [0.9, 0.3, 0.3, 0.35, 0.2, 0.1][kind];
            let is_wanted = self.rng.random_bool(share)
                || kind == 4 && matches!(self.spot, Some(Spot::GroupBy | Spot::Aggregate));
            if !is_wanted || MAX_LISTS <= self.n_lists {
                continue;
            }
            parts.push(match kind {
                0 => {
                    let key = self.key("items");
                    Part::Items(key, self.members(table, depth, n_inside))
                }
                1 => Part::EndCursor(self.key("endCursor")),
                2 => Part::HasNextPage(self.key("hasNextPage")),
                3 => {
                    self.n_lists += 1;
                    Part::TotalCount(self.key("totalCount"))
                }
                4 => {
                    self.n_lists += 1;
                    Part::Groups(self.groups(table))
                }
                _ => Part::Typename(self.key("__typename")),
            });
        }
        if parts.is_empty() {
            parts.push(Part::Typename(self.key("__typename")));
        }
        parts.shuffle(&mut self.rng);
        self.close();
        List { number, key, table, relationship, first, after: None, filter, order, parts }
    }

    fn order(&mut self, table: usize) -> Vec<(&'static str, bool)> {
        let n = *[0, 0, 1, 1, 2, 3].choose(&mut self.rng).expect("some");
        let fields = self.rights.fields(table);
        let n = n.min(fields.len());
        let mut order: Vec<(&'static str, bool)> =
            fields.sample(&mut self.rng, n).map(|field| field.name).map(|name| (name, false)).collect();
        if let Some(intruder) = self.intruder(Spot::Order, table) {
            order.push((intruder.word(), false));
        }
        for term in &mut order {
            term.1 = self.rng.random_bool(0.5);
        }
        order
    }

    /// A key of the selection set that is open: the field's name, where that is free, or an alias.
    pub(super) fn key(&mut self, name: &str) -> String {
        let is_plain = self.rng.random_bool(0.75);
        let open = self.keys.last_mut().expect("a set is open");
        if is_plain && open.insert(name.to_owned()) { name.to_owned() } else { self.alias() }
    }

    pub(super) fn alias(&mut self) -> String {
        self.n_aliases += 1;
        format!("a{}", self.n_aliases)
    }

    pub(super) fn open(&mut self) {
        self.keys.push(HashSet::new());
    }

    pub(super) fn close(&mut self) {
        self.keys.pop();
    }
}
