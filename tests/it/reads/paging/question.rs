//! Random questions, each in two spellings: the query string of a request, and SQL that this file writes by itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

use super::columns::{Column, Writing};
use super::fixture::{ENTITIES, Entity};

/// A condition as a filter and as SQL.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) filter: String,
    pub(super) sql: String,
}

/// One seeded case.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) entity: &'static Entity,
    /// Field and whether descending, without the key.
    pub(super) order: Vec<(&'static str, bool)>,
    pub(super) condition: Option<Condition>,
    /// `None`: all.
    pub(super) select: Option<Vec<&'static str>>,
    pub(super) first: u32,
}

impl Question {
    pub(super) fn seeded(seed: u64) -> Question {
        let mut rng = StdRng::seed_from_u64(seed);
        let entity = ENTITIES.choose(&mut rng).expect("there are some");
        let mut names: Vec<&str> = entity.columns.iter().map(|c| c.name).chain(["n", "owner"]).collect();
        names.extend(entity.key);
        names.shuffle(&mut rng);
        let n_terms = rng.random_range(0..5);
        let order = names.iter().take(n_terms).map(|name| (*name, rng.random())).collect();
        let condition = rng.random_bool(0.4).then(|| condition(&mut rng, entity, 2));
        names.shuffle(&mut rng);
        let select = rng.random_bool(0.7).then(|| names[..rng.random_range(1..=names.len().min(8))].to_vec());
        Question { entity, order, condition, select, first: rng.random_range(1..=40) }
    }

    /// The query string without `$select` and `$first`.
    pub(super) fn options(&self) -> String {
        let terms: Vec<String> = self
            .order
            .iter()
            .map(|(name, descending)| format!("{name}{}", if *descending { " desc" } else { "" }))
            .collect();
        let mut options = String::new();
        if !terms.is_empty() {
            options += &format!("&$orderby={}", terms.join(",").replace(' ', "%20"));
        }
        if let Some(condition) = &self.condition {
            options += &format!("&$filter={}", escape(&condition.filter));
        }
        options
    }

    /// `select n` of the rows wanted, in their order.
    pub(super) fn sql(&self) -> String {
        let Entity { name, key, .. } = self.entity;
        let rest = key.iter().filter(|key| self.order.iter().all(|(name, _)| name != *key));
        let terms: Vec<String> = self
            .order
            .iter()
            .map(|(name, descending)| {
                format!("{name} {}", if *descending { "desc nulls first" } else { "asc" })
            })
            .chain(rest.map(|name| format!("{name} asc nulls last")))
            .collect();
        let condition = self.condition.as_ref().map_or("true", |condition| &condition.sql);
        format!("select n from t.{name} where {condition} order by {}", terms.join(", "))
    }
}

/// A random condition of at most so many levels.
pub(super) fn condition(rng: &mut StdRng, entity: &Entity, depth: usize) -> Condition {
    if entity.columns.is_empty() {
        let n = rng.random_range(0..8);
        return Condition { filter: format!("n le {n}"), sql: format!("n <= {n}") };
    }
    match rng.random_range(0..if depth == 0 { 5 } else { 8 }) {
        5 => {
            let inner = condition(rng, entity, depth - 1);
            Condition { filter: format!("not ({})", inner.filter), sql: format!("not ({})", inner.sql) }
        }
        word @ 6..8 => {
            let word = if word == 6 { "and" } else { "or" };
            let [a, b] = [condition(rng, entity, depth - 1), condition(rng, entity, depth - 1)];
            Condition {
                filter: format!("({}) {word} ({})", a.filter, b.filter),
                sql: format!("({}) {word} ({})", a.sql, b.sql),
            }
        }
        _ => comparison(rng, entity),
    }
}

fn comparison(rng: &mut StdRng, entity: &Entity) -> Condition {
    let column = entity.columns.choose(rng).expect("there are some");
    let name = column.name;
    match rng.random_range(0..10) {
        0 => {
            let (op, is) = *[("eq", "is null"), ("ne", "is not null")].choose(rng).expect("two");
            Condition { filter: format!("{name} {op} null"), sql: format!("{name} {is}") }
        }
        1..3 => {
            let values: Vec<&str> = (0..rng.random_range(1..4)).map(|_| value(rng, column)).collect();
            let filter: Vec<String> = values.iter().map(|value| literal(rng, column, value)).collect();
            let sql: Vec<String> =
                values.iter().map(|v| format!("{name} = {}", constant(column, v))).collect();
            Condition {
                filter: format!("{name} in ({})", filter.join(",")),
                sql: format!("({})", sql.join(" or ")),
            }
        }
        3 => {
            let others: Vec<&Column> = entity.columns.iter().filter(|c| column.compares_with(c)).collect();
            let other = others.choose(rng).expect("itself").name;
            let (word, operator) = operator(rng);
            Condition { filter: format!("{name} {word} {other}"), sql: format!("{name} {operator} {other}") }
        }
        _ => {
            let value = value(rng, column);
            let (word, operator) = operator(rng);
            let (filter, sql) = (literal(rng, column, value), constant(column, value));
            match rng.random_bool(0.2) {
                true => Condition {
                    filter: format!("{filter} {word} {name}"),
                    sql: format!("{sql} {operator} {name}"),
                },
                false => Condition {
                    filter: format!("{name} {word} {filter}"),
                    sql: format!("{name} {operator} {sql}"),
                },
            }
        }
    }
}

fn operator(rng: &mut StdRng) -> (&'static str, &'static str) {
    *[("eq", "="), ("ne", "<>"), ("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")]
        .choose(rng)
        .expect("six")
}

fn value(rng: &mut StdRng, column: &Column) -> &'static str {
    column.values.choose(rng).expect("every column has values")
}

pub(super) fn constant(column: &Column, value: &str) -> String {
    format!("'{}'::{}", value.replace('\'', "''"), column.ty)
}

pub(crate) fn literal(rng: &mut StdRng, column: &Column, value: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let bare: bool = rng.random();
    match (column.writing, value) {
        (Writing::Bytes, _) => {
            let hex = value.trim_start_matches("\\x");
            let byte = |i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal digits");
            quoted(&STANDARD.encode((0..hex.len()).step_by(2).map(byte).collect::<Vec<u8>>()))
        }
        (Writing::Number, "Infinity") if bare => "INF".to_owned(),
        (Writing::Number, "-Infinity") if bare => "-INF".to_owned(),
        (Writing::Number, _) if bare => value.to_owned(),
        (Writing::Bare, _) if bare && !value.contains("infinity") && !value.contains(' ') => value.to_owned(),
        _ => quoted(value),
    }
}

/// Everything but letters and digits, percent-encoded.
pub(crate) fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
