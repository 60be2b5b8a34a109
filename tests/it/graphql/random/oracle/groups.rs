//! Groups of rows and what they come to.

use serde_json::{Map, Value, json};

use super::rest::Spelling;
use super::{Numbers, Oracle, numbers};
use crate::graphql::random::document::{Aggregate, GroupPart, Groups};
use crate::graphql::random::world::tables::{TABLES, Type};

impl Oracle {
    /// `found`: the rows that the list's filter finds.
    pub(super) fn groups(&self, table: usize, found: &[usize], asked: &Groups) -> Value {
        let by: Vec<(&str, bool)> = asked.by.iter().map(|field| (field.name, false)).collect();
        let ordered = self.list(table, Spelling::order(&by));
        let mut groups: Vec<(Vec<&Value>, Numbers)> = Vec::new();
        if by.is_empty() {
            groups.push((Vec::new(), found.to_vec()));
        } else {
            for row in ordered.iter().filter(|row| found.contains(row)) {
                let key: Vec<&Value> =
                    by.iter().map(|(name, _)| &self.rows[table][*row].values[*name]).collect();
                match groups.iter_mut().find(|(other, _)| *other == key) {
                    Some((_, rows)) => rows.push(*row),
                    None => groups.push((key, vec![*row])),
                }
            }
        }
        let ty = TABLES[table].ty();
        let asked_of = |(key, rows): &(Vec<&Value>, Numbers)| {
            let mut object = Map::new();
            for part in &asked.parts {
                let (name, value) = match part {
                    GroupPart::Typename(name) => (name, json!(format!("{ty}Group"))),
                    GroupPart::Fields(name, fields) => {
                        let value = fields.iter().map(|(name, field)| {
                            let at = asked.by.iter().position(|by| Some(*by) == *field);
                            let value =
                                at.map_or_else(|| json!(format!("{ty}GroupFields")), |at| key[at].clone());
                            (name.clone(), value)
                        });
                        (name, Value::Object(value.collect()))
                    }
                    GroupPart::Aggregations(name, aggregates) => {
                        let mut inner = Map::new();
                        for (name, aggregate) in aggregates {
                            let Some(aggregate) = aggregate else {
                                inner.insert(name.clone(), json!(format!("{ty}Aggregations")));
                                continue;
                            };
                            let value = self.aggregate(table, rows, aggregate);
                            if !aggregate.having.iter().all(|(word, text)| holds(&value, word, text)) {
                                return None;
                            }
                            inner.insert(name.clone(), value);
                        }
                        (name, Value::Object(inner))
                    }
                };
                object.insert(name.clone(), value);
            }
            Some(Value::Object(object))
        };
        groups.iter().filter_map(asked_of).collect()
    }

    fn aggregate(&self, table: usize, rows: &[usize], aggregate: &Aggregate) -> Value {
        let Some(field) = aggregate.field else { return json!(rows.len()) };
        let value = |row: &usize| &self.rows[table][*row].values[field.name];
        let mut values: Vec<&Value> = rows.iter().map(value).filter(|value| !value.is_null()).collect();
        if aggregate.distinct {
            let mut distinct: Vec<&Value> = Vec::new();
            for value in values {
                if !distinct.contains(&value) {
                    distinct.push(value);
                }
            }
            values = distinct;
        }
        let text = match aggregate.function {
            "count" => return json!(values.len()),
            "min" | "max" => {
                let ordered = self.list(table, Spelling::order(&[(field.name, false)]));
                let mut there = ordered.iter().filter(|row| rows.contains(row)).map(value);
                let found = match aggregate.function {
                    "min" => there.find(|value| !value.is_null()),
                    _ => there.rfind(|value| !value.is_null()),
                };
                return found.cloned().unwrap_or(Value::Null);
            }
            _ if values.is_empty() => return Value::Null,
            function => {
                let scale = if field.ty == Type::Decimal { 2 } else { 0 };
                let sum = values.iter().map(|value| numbers::scaled(&value.to_string(), scale)).sum();
                match function {
                    "sum" => numbers::spelt(sum, scale),
                    _ => numbers::divided(sum, scale, values.len()),
                }
            }
        };
        serde_json::from_str(&text).expect("a number")
    }
}

fn holds(value: &Value, word: &str, text: &str) -> bool {
    if word == "isNull" {
        return value.is_null() == (text == "true");
    }
    if value.is_null() {
        return false;
    }
    const SCALE: u32 = 20;
    let order = numbers::scaled(&value.to_string(), SCALE).cmp(&numbers::scaled(text, SCALE));
    match word {
        "eq" => order.is_eq(),
        "neq" => order.is_ne(),
        "gt" => order.is_gt(),
        "gte" => order.is_ge(),
        "lt" => order.is_lt(),
        _ => order.is_le(),
    }
}
