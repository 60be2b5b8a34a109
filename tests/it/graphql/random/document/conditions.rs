//! Random filters over what a key reads.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use super::generate::Generator;
use super::intruder::Spot;
use super::{Condition, Operand};
use crate::graphql::random::world::tables::{Field, TABLES, Type};

impl Generator<'_> {
    /// The members of a filter on rows of a table.
    pub(super) fn conditions(&mut self, table: usize, depth: usize) -> Vec<Condition> {
        let n = *[0, 1, 1, 1, 1, 2, 2].choose(&mut self.rng).expect("some");
        let mut found: Vec<Condition> = Vec::new();
        for _ in 0..n {
            let one = self.condition(table, depth);
            // an object has each name once
            if found.iter().all(|other| name(other) != name(&one)) {
                found.push(one);
            }
        }
        if let Some(intruder) = self.intruder(Spot::Filter, table) {
            found.extend(self.hidden_condition(table, intruder));
        }
        found
    }

    fn condition(&mut self, table: usize, depth: usize) -> Condition {
        let relationships = self.rights.relationships(table);
        match self.rng.random_range(0..12) {
            kind @ 0..3 if depth < 3 => {
                let n = self.rng.random_range(0..3);
                let each: Vec<_> = (0..n).map(|_| self.conditions(table, depth + 1)).collect();
                match kind {
                    0 => Condition::And(each),
                    1 => Condition::Or(each),
                    _ => Condition::Not(self.conditions(table, depth + 1)),
                }
            }
            3..6 if depth < 4 && !relationships.is_empty() => {
                let relationship = *relationships.choose(&mut self.rng).expect("some");
                Condition::Related(relationship, self.conditions(relationship.to, depth + 1))
            }
            _ => {
                let field = *self.rights.fields(table).choose(&mut self.rng).expect("it reads one at least");
                self.of_field(table, field)
            }
        }
    }

    pub(super) fn of_field(&mut self, table: usize, field: &'static Field) -> Condition {
        let n = *[1, 1, 1, 2].choose(&mut self.rng).expect("some");
        let mut operators: Vec<(&'static str, Operand)> = Vec::new();
        for _ in 0..n {
            let word = operator(&mut self.rng, field.ty);
            if operators.iter().any(|(other, _)| *other == word) {
                continue;
            }
            let operand = match word {
                _ if self.rng.random_bool(0.04) => Operand::Null,
                "isNull" => Operand::Flag(self.rng.random_bool(0.5)),
                "in" => {
                    let n = self.rng.random_range(0..4);
                    Operand::Several((0..n).map(|_| self.constant(table, field)).collect())
                }
                "contains" | "notContains" | "icontains" | "startsWith" | "endsWith" => {
                    let value = self.constant(table, field);
                    Operand::One(part(&mut self.rng, &value))
                }
                _ => Operand::One(self.constant(table, field)),
            };
            operators.push((word, operand));
        }
        Condition::Field(field, operators)
    }

    /// A value of some row, which need not be visible.
    pub(super) fn constant(&mut self, table: usize, field: &Field) -> String {
        let at = TABLES[table].fields.iter().position(|other| other == field).expect("a field of the table");
        let values: Vec<&String> = self.drawn.rows[table].iter().filter_map(|row| row[at].as_ref()).collect();
        values.choose(&mut self.rng).map_or_else(|| "0".to_owned(), |value| (*value).clone())
    }
}

fn name(condition: &Condition) -> &'static str {
    match condition {
        Condition::And(_) => "and",
        Condition::Or(_) => "or",
        Condition::Not(_) => "not",
        Condition::Field(field, _) => field.name,
        Condition::Related(relationship, _) => relationship.name,
    }
}

fn operator(rng: &mut StdRng, ty: Type) -> &'static str {
    let words: &[&'static str] = match ty {
        Type::Json | Type::Texts => &["isNull"],
        Type::Bool => &["eq", "neq", "in", "isNull"],
        Type::Text => &[
            "eq",
            "neq",
            "gt",
            "gte",
            "lt",
            "lte",
            "in",
            "isNull",
            "contains",
            "notContains",
            "icontains",
            "startsWith",
            "endsWith",
        ],
        _ => &["eq", "neq", "gt", "gte", "lt", "lte", "in", "isNull"],
    };
    words.choose(rng).expect("some")
}

/// Some letters of a text.
fn part(rng: &mut StdRng, text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let begin = rng.random_range(0..=letters.len().min(3));
    let n = rng.random_range(0..4);
    letters.into_iter().skip(begin).take(n).collect()
}
