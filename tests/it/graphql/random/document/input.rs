//! Values of arguments with their types, so that each may be written down or become a variable.

use serde_json::{Number, Value, json};

use crate::graphql::random::document::{Condition, Operand};
use crate::graphql::random::world::tables::{Field, TABLES, Type};

/// A value, and the type that a variable with it has.
pub(super) struct Input {
    pub(super) ty: String,
    pub(super) value: InputValue,
}

pub(super) enum InputValue {
    Enum(String),
    Json(Value),
    List(Vec<Input>),
    Object(Vec<(String, Input)>),
}

impl Input {
    pub(super) fn new(ty: impl Into<String>, value: InputValue) -> Input {
        Input { ty: ty.into(), value }
    }

    /// As variables have it.
    pub(super) fn json(&self) -> Value {
        match &self.value {
            InputValue::Enum(name) => json!(name),
            InputValue::Json(value) => value.clone(),
            InputValue::List(items) => items.iter().map(Input::json).collect(),
            InputValue::Object(fields) => {
                Value::Object(fields.iter().map(|(name, of)| (name.clone(), of.json())).collect())
            }
        }
    }
}

pub(super) fn scalar(ty: Type) -> &'static str {
    match ty {
        Type::Int => "Int",
        Type::Long => "Long",
        Type::Decimal => "Decimal",
        Type::Bool => "Boolean",
        Type::Text | Type::Mood => "String",
        Type::Uuid => "UUID",
        Type::Instant => "DateTime",
        Type::Date => "Date",
        Type::Json | Type::Texts => "JSON",
    }
}

fn filter_of(ty: Type) -> String {
    match ty {
        Type::Mood => "TextFormFilterInput".to_owned(),
        other => format!("{}FilterInput", scalar(other)),
    }
}

/// `as_text`: where the scalar takes numbers as strings, it is one.
pub(super) fn constant(ty: Type, text: &str, as_text: bool) -> Input {
    let whole = text;
    // a document keeps the number and not its last zeros
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    let value = match ty {
        Type::Long | Type::Decimal if as_text => json!(text),
        Type::Int | Type::Long | Type::Decimal => number(text),
        Type::Bool => json!(text == "true"),
        _ => json!(whole),
    };
    Input::new(scalar(ty), InputValue::Json(value))
}

pub(super) fn number(text: &str) -> Value {
    Value::Number(serde_json::from_str::<Number>(text).expect("digits"))
}

/// The filter input of a table.
pub(super) fn filter(table: usize, conditions: &[Condition], as_text: bool) -> Input {
    let ty = format!("{}FilterInput", TABLES[table].ty());
    let several = |each: &Vec<Vec<Condition>>| {
        let each = each.iter().map(|conditions| filter(table, conditions, as_text));
        let each = each.map(|input| Input { ty: format!("{ty}!"), ..input });
        Input::new(format!("[{ty}!]"), InputValue::List(each.collect()))
    };
    let one = |condition: &Condition| match condition {
        Condition::And(each) => ("and".to_owned(), several(each)),
        Condition::Or(each) => ("or".to_owned(), several(each)),
        Condition::Not(inner) => ("not".to_owned(), filter(table, inner, as_text)),
        Condition::Field(field, operators) => (field.name.to_owned(), of_field(field, operators, as_text)),
        Condition::Related(it, inner) => (it.name.to_owned(), filter(it.to, inner, as_text)),
    };
    Input::new(ty.clone(), InputValue::Object(conditions.iter().map(one).collect()))
}

fn of_field(field: &Field, operators: &[(&'static str, Operand)], as_text: bool) -> Input {
    let one = |(word, operand): &(&'static str, Operand)| {
        let input = match operand {
            Operand::Null => {
                let ty = match *word {
                    "in" => format!("[{}]", scalar(field.ty)),
                    "isNull" => "Boolean".to_owned(),
                    _ => scalar(field.ty).to_owned(),
                };
                Input::new(ty, InputValue::Json(Value::Null))
            }
            Operand::Flag(flag) => Input::new("Boolean", InputValue::Json(json!(flag))),
            Operand::One(text) => constant(field.ty, text, as_text),
            Operand::Several(texts) => {
                let each = texts.iter().map(|text| constant(field.ty, text, as_text)).collect();
                Input::new(format!("[{}]", scalar(field.ty)), InputValue::List(each))
            }
        };
        ((*word).to_owned(), input)
    };
    Input::new(filter_of(field.ty), InputValue::Object(operators.iter().map(one).collect()))
}
