//! Random requests of a key: what it asks, as a path and as SQL over the relation.

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

use super::world::{Drawn, Entity, Relation};
use crate::reads::paging::columns::Column;
use crate::reads::paging::question::{escape, literal};

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) key: usize,
    pub(super) entity: usize,
    pub(super) question: Question,
}

#[derive(Debug)]
pub(super) enum Question {
    Rows(Rows),
    /// As `Rows`, by HEAD.
    Head(Rows),
    /// One row; which one is chosen among all there are, seen or not.
    Row {
        nth: usize,
        select: Option<Vec<&'static Column>>,
    },
    /// An option that names a column which this key does not read, or which nobody has: the option's text, and the
    /// column where there is one.
    Hidden {
        option: String,
        column: Option<&'static str>,
    },
    /// The list of entities.
    Entities,
}

#[derive(Debug)]
pub(super) struct Rows {
    pub(super) select: Option<Vec<&'static Column>>,
    /// Over exposed names, and over columns.
    filter: Option<(String, String)>,
    order: Vec<(&'static Column, bool)>,
    first: Option<usize>,
    pub(super) count: bool,
}

impl Case {
    pub(super) fn draw(drawn: &Drawn, seed: u64) -> Case {
        let mut rng = StdRng::seed_from_u64(seed);
        let rng = &mut rng;
        let key = rng.random_range(0..drawn.keys.len());
        let entity = rng.random_range(0..drawn.entities.len());
        let readable = drawn.readable(&drawn.keys[key], entity);
        let all = &drawn.relation(&drawn.entities[entity]).columns;
        // Where nothing is readable, nothing that is named is.
        let names = if readable.is_empty() { all } else { &readable };
        let of = &drawn.entities[entity];
        let question = match rng.random_range(0..20) {
            0..12 => Question::Rows(Rows::draw(rng, of, names)),
            12 => Question::Head(Rows::draw(rng, of, names)),
            13..16 => {
                let nth = rng.random_range(0..1000);
                Question::Row { nth, select: select(rng, names) }
            }
            16 => Question::Entities,
            _ => {
                let hidden = all.iter().filter(|c| !readable.iter().any(|r| r.name == c.name));
                let column = hidden.collect::<Vec<_>>().choose(rng).map(|column| column.name);
                let name = column.map_or("never_there", |column| of.exposed(column));
                let option = match rng.random_range(0..4) {
                    0 => format!("$select={name}"),
                    1 => format!("$orderby={name}"),
                    2 => format!("$filter={name}%20eq%20null"),
                    _ => format!("$filter=not%20({name}%20ne%20null)"),
                };
                Question::Hidden { option, column }
            }
        };
        Case { key, entity, question }
    }
}

impl Rows {
    fn draw(rng: &mut StdRng, entity: &Entity, columns: &[&'static Column]) -> Rows {
        let mut order: Vec<&Column> = columns.iter().copied().filter(|c| c.name != "doc").collect();
        order.shuffle(rng);
        let n = rng.random_range(0..4);
        Rows {
            select: select(rng, columns),
            filter: rng.random_bool(0.45).then(|| condition(rng, entity, columns, 2)),
            order: order.into_iter().take(n).map(|column| (column, rng.random())).collect(),
            first: rng.random_bool(0.5).then(|| rng.random_range(1..12)),
            count: rng.random_bool(0.2),
        }
    }

    /// The query string.
    pub(super) fn options(&self, entity: &Entity) -> String {
        let mut options = vec![selected(self.select.as_deref(), entity)];
        if let Some((filter, _)) = &self.filter {
            options.push(format!("$filter={}", escape(filter)));
        }
        if !self.order.is_empty() {
            let term = |(column, descending): &(&Column, bool)| {
                format!("{}{}", entity.exposed(column.name), if *descending { "%20desc" } else { "" })
            };
            options.push(format!("$orderby={}", self.order.iter().map(term).collect::<Vec<_>>().join(",")));
        }
        if let Some(first) = self.first {
            options.push(format!("$first={first}"));
        }
        if self.count {
            options.push("$count=true".to_owned());
        }
        options.retain(|option| !option.is_empty());
        options.join("&")
    }

    /// What follows `from`, over columns.
    pub(super) fn rest(&self, relation: &Relation) -> String {
        let terms = self.order.iter().map(|(column, descending)| {
            format!("r.{} {}", column.name, if *descending { "desc nulls first" } else { "asc nulls last" })
        });
        let key = relation.key.iter().map(|name| format!("r.{name} asc nulls last"));
        let condition = self.filter.as_ref().map_or("true", |(_, sql)| sql);
        format!("where {condition} order by {}", terms.chain(key).collect::<Vec<_>>().join(", "))
    }

    /// How many rows each page but the last has to have.
    pub(super) fn page(&self) -> usize {
        self.first.unwrap_or(100)
    }
}

/// `$select`, or nothing.
pub(super) fn selected(select: Option<&[&Column]>, entity: &Entity) -> String {
    let Some(columns) = select else { return String::new() };
    let names: Vec<&str> = columns.iter().map(|column| entity.exposed(column.name)).collect();
    format!("$select={}", names.join(","))
}

fn select(rng: &mut StdRng, columns: &[&'static Column]) -> Option<Vec<&'static Column>> {
    let mut some = columns.to_vec();
    some.shuffle(rng);
    some.truncate(rng.random_range(1..=some.len()));
    rng.random_bool(0.5).then_some(some)
}

fn condition(
    rng: &mut StdRng,
    entity: &Entity,
    columns: &[&'static Column],
    depth: usize,
) -> (String, String) {
    match rng.random_range(0..if depth == 0 { 4 } else { 7 }) {
        4 => {
            let (filter, sql) = condition(rng, entity, columns, depth - 1);
            (format!("not ({filter})"), format!("not ({sql})"))
        }
        word @ 5..7 => {
            let word = if word == 5 { "and" } else { "or" };
            let [a, b] = [(); 2].map(|()| condition(rng, entity, columns, depth - 1));
            (format!("({}) {word} ({})", a.0, b.0), format!("(({}) {word} ({}))", a.1, b.1))
        }
        _ => {
            let column = columns.choose(rng).expect("some");
            let (field, name) = (entity.exposed(column.name), format!("r.{}", column.name));
            if rng.random_bool(0.2) {
                return (format!("{field} eq null"), format!("{name} is null"));
            }
            let value = column.values.choose(rng).expect("every column has some");
            let (word, operator) =
                *[("eq", "="), ("ne", "<>"), ("ge", ">="), ("lt", "<")].choose(rng).expect("some");
            (
                format!("{field} {word} {}", literal(rng, column, value)),
                format!("{name} {operator} {}", format_args!("'{}'", value.replace('\'', "''"))),
            )
        }
    }
}
