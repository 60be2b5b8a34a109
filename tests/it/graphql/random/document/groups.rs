//! Random groups of a list's rows.

use rand::RngExt as _;
use rand::seq::IndexedRandom as _;

use super::generate::Generator;
use super::intruder::Spot;
use super::{Aggregate, GroupPart, Groups};
use crate::graphql::random::world::tables::{Field, Type};

impl Generator<'_> {
    pub(super) fn groups(&mut self, table: usize) -> Groups {
        let fields = self.rights.fields(table);
        let simple: Vec<&'static Field> =
            fields.iter().copied().filter(|field| !matches!(field.ty, Type::Json | Type::Texts)).collect();
        let n = self.rng.random_range(0..3).min(simple.len());
        let mut by: Vec<&'static Field> = simple.sample(&mut self.rng, n).copied().collect();
        if let Some(intruder) = self.intruder(Spot::GroupBy, table) {
            by.push(intruder.field());
        }
        let key = self.key("groupBy");
        self.open();
        let mut parts = Vec::new();
        if self.rng.random_bool(0.2) {
            parts.push(GroupPart::Typename(self.key("__typename")));
        }
        if !by.is_empty() && self.rng.random_bool(0.8) {
            let key = self.key("fields");
            self.open();
            let mut keys = Vec::new();
            for field in by.clone() {
                if self.rng.random_bool(0.8) || keys.is_empty() {
                    keys.push((self.key(field.name), Some(field)));
                }
            }
            if self.rng.random_bool(0.1) {
                keys.push((self.key("__typename"), None));
            }
            self.close();
            parts.push(GroupPart::Fields(key, keys));
        }
        let is_needed = by.is_empty() || parts.is_empty();
        if is_needed || self.rng.random_bool(0.8) {
            let key = self.key("aggregations");
            self.open();
            let mut aggregates = Vec::new();
            for _ in 0..self.rng.random_range(1..4) {
                let aggregate = self.aggregate(&fields);
                aggregates.push((self.alias(), Some(aggregate)));
            }
            if let Some(intruder) = self.intruder(Spot::Aggregate, table) {
                let function = *["count", "min", "max"].choose(&mut self.rng).expect("some");
                let field = Some(intruder.field());
                let hidden = Aggregate { function, field, distinct: false, having: Vec::new() };
                aggregates.push((self.alias(), Some(hidden)));
            }
            if self.rng.random_bool(0.1) {
                aggregates.push((self.key("__typename"), None));
            }
            self.close();
            parts.push(GroupPart::Aggregations(key, aggregates));
        }
        self.close();
        let first = self.rng.random_bool(0.2).then_some(149);
        Groups { key, by, first, parts }
    }

    fn aggregate(&mut self, fields: &[&'static Field]) -> Aggregate {
        let function = *["count", "count", "sum", "avg", "min", "max"].choose(&mut self.rng).expect("some");
        let suits = |field: &&&'static Field| match function {
            "sum" | "avg" => is_numeric(field.ty),
            "min" | "max" => !matches!(field.ty, Type::Json | Type::Texts | Type::Uuid | Type::Bool),
            _ => !matches!(field.ty, Type::Json | Type::Texts),
        };
        let some: Vec<&&'static Field> = fields.iter().filter(suits).collect();
        let field = some.choose(&mut self.rng).map(|field| **field);
        let field = field.filter(|_| function != "count" || self.rng.random_bool(0.7));
        if field.is_none() {
            return Aggregate {
                function: "count",
                field,
                distinct: false,
                having: self.having("count", None),
            };
        }
        let distinct = self.rng.random_bool(0.25);
        Aggregate { function, field, distinct, having: self.having(function, field) }
    }

    /// Conditions on an aggregate that is a number, or null.
    fn having(&mut self, function: &str, field: Option<&'static Field>) -> Vec<(&'static str, String)> {
        let is_number =
            matches!(function, "count" | "sum" | "avg") || field.is_some_and(|it| is_numeric(it.ty));
        if !self.rng.random_bool(0.25) {
            return Vec::new();
        }
        if !is_number || self.rng.random_bool(0.15) {
            return vec![("isNull", self.rng.random_bool(0.5).to_string())];
        }
        let word = *["eq", "neq", "gt", "gte", "lt", "lte"].choose(&mut self.rng).expect("some");
        let value = match (function, field.map(|field| field.ty)) {
            ("count", _) => self.rng.random_range(0..5_i32).to_string(),
            (_, Some(Type::Long)) => "7000500000000000".to_owned(),
            (_, Some(Type::Decimal)) => format!("{}.5", self.rng.random_range(-9..60_i32)),
            _ => self.rng.random_range(-2..6_i32).to_string(),
        };
        vec![(word, value)]
    }
}

pub(super) fn is_numeric(ty: Type) -> bool {
    matches!(ty, Type::Int | Type::Long | Type::Decimal)
}
