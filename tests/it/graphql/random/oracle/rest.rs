//! Reads over REST, without a relationship in them.

use rowgate_tests::client::Client;
use serde_json::{Map, Value};

use super::EachList;
use crate::graphql::random::document::{Condition, List, Operand};
use crate::graphql::random::world::tables::{Relationship, TABLES, Type};
use crate::reads::paging::question::escape;

/// A row as REST gives it.
#[derive(Debug, Clone)]
pub(in crate::graphql::random) struct Row {
    /// Its key as text.
    pub(in crate::graphql::random) id: String,
    pub(in crate::graphql::random) values: Map<String, Value>,
}

impl Row {
    fn new(table: usize, value: Value) -> Row {
        let Value::Object(values) = value else { panic!("a row is an object, and not {value}") };
        let id: Vec<String> = TABLES[table].key.iter().map(|name| text(&values[*name])).collect();
        Row { id: id.join(" "), values }
    }

    pub(super) fn is_named(&self, table: usize, id: &[String]) -> bool {
        TABLES[table].key.iter().zip(id).all(|(name, value)| text(&self.values[*name]) == *value)
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A key that asks.
pub(in crate::graphql::random) struct Rest {
    pub(in crate::graphql::random) client: Client,
    /// The address above entities.
    pub(in crate::graphql::random) url: String,
    pub(in crate::graphql::random) key: String,
}

impl Rest {
    /// All rows of a table that the key sees.
    pub(super) async fn all(&self, table: usize) -> Vec<Row> {
        self.list(table, "").await
    }

    /// All rows of a list with these options, beside the size of the page.
    pub(super) async fn list(&self, table: usize, options: &str) -> Vec<Row> {
        let answer = self.get(&format!("{}?$first=-1{options}", TABLES[table].entity)).await;
        assert!(answer["nextLink"].is_null(), "a table fits a page: {answer}");
        rows(table, answer)
    }

    /// One page.
    pub(in crate::graphql::random) async fn each(&self, table: usize, options: &str) -> EachList {
        let answer = self.get(&format!("{}?$count=true{options}", TABLES[table].entity)).await;
        let (has_more, count) = (!answer["nextLink"].is_null(), answer["count"].as_u64().expect("a number"));
        let rows = rows(table, answer).into_iter().map(|row| row.id).collect();
        EachList { rows, count: usize::try_from(count).expect("few rows"), has_more }
    }

    /// The row of a key.
    pub(in crate::graphql::random) async fn row(&self, table: usize, row: &Row) -> Option<Value> {
        let parts =
            TABLES[table].key.iter().map(|name| format!("/{name}/{}", escape(&text(&row.values[*name]))));
        let path = format!("{}{}", TABLES[table].entity, parts.collect::<String>());
        rows(table, self.get(&path).await).pop().map(|row| Value::Object(row.values))
    }

    async fn get(&self, path: &str) -> Value {
        let url = format!("{}/{path}", self.url);
        let reply = self.client.get(&url, &[("X-API-Key", &self.key)]).await;
        assert_eq!(reply.status, 200, "{url}: {reply:?}");
        reply.json()
    }
}

fn rows(table: usize, mut answer: Value) -> Vec<Row> {
    let Value::Array(rows) = answer["value"].take() else { panic!("no rows in {answer}") };
    rows.into_iter().map(|row| Row::new(table, row)).collect()
}

/// How options are written.
pub(super) struct Spelling;

impl Spelling {
    pub(super) fn order(terms: &[(&str, bool)]) -> String {
        if terms.is_empty() {
            return String::new();
        }
        let term = |(name, descending): &(&str, bool)| {
            format!("{name} {}", if *descending { "desc" } else { "asc" })
        };
        let terms: Vec<String> = terms.iter().map(term).collect();
        format!("&$orderby={}", escape(&terms.join(",")))
    }

    pub(super) fn filter(condition: &str) -> String {
        format!("&$filter={}", escape(condition))
    }

    /// One comparison.
    pub(super) fn comparison(name: &str, ty: Type, word: &str, operand: &Operand) -> String {
        let literal = |text: &str| literal(ty, text);
        match (word, operand) {
            (_, Operand::Flag(true)) => format!("{name} eq null"),
            (_, Operand::Flag(false)) => format!("{name} ne null"),
            ("contains", Operand::One(text)) => format!("contains({name},{})", literal(text)),
            ("notContains", Operand::One(text)) => format!("not contains({name},{})", literal(text)),
            ("icontains", Operand::One(text)) => {
                format!("contains(tolower({name}),tolower({}))", literal(text))
            }
            ("startsWith", Operand::One(text)) => format!("startswith({name},{})", literal(text)),
            ("endsWith", Operand::One(text)) => format!("endswith({name},{})", literal(text)),
            (_, Operand::One(text)) => {
                let word = match word {
                    "neq" => "ne",
                    "gte" => "ge",
                    "lte" => "le",
                    other => other,
                };
                format!("{name} {word} {}", literal(text))
            }
            (_, Operand::Several(texts)) => {
                let each: Vec<String> = texts.iter().map(|text| literal(text)).collect();
                format!("{name} in ({})", each.join(","))
            }
            (_, Operand::Null) => unreachable!("null counts as absent"),
        }
    }

    /// The list of a row by a request of its own. `None`: it needs a relationship.
    pub(super) fn each(it: &Relationship, around: &Row, list: &List) -> Option<String> {
        if it.through.is_some() {
            return None;
        }
        let mut parts = Vec::new();
        for (mine, its) in it.pairs {
            // nothing equals null
            let value = around.values.get(*mine).filter(|value| !value.is_null())?;
            parts.push(format!("{its} eq {}", literal(TABLES[it.to].field(its).ty, &text(value))));
        }
        if let Some(conditions) = &list.filter {
            parts.push(all(conditions)?);
        }
        let first = list.first.map(|first| format!("&$first={first}")).unwrap_or_default();
        Some(format!("{}{}{first}", Spelling::filter(&parts.join(" and ")), Spelling::order(&list.order)))
    }
}

fn literal(ty: Type, text: &str) -> String {
    match ty {
        Type::Int | Type::Long | Type::Decimal | Type::Bool => text.to_owned(),
        _ => format!("'{}'", text.replace('\'', "''")),
    }
}

/// Of no relationship.
fn all(conditions: &[Condition]) -> Option<String> {
    let each: Option<Vec<String>> = conditions.iter().map(one).collect();
    let each = each?;
    Some(if each.is_empty() { "1 eq 1".to_owned() } else { format!("({})", each.join(" and ")) })
}

fn one(condition: &Condition) -> Option<String> {
    let several = |each: &[Vec<Condition>], word: &str| {
        let each: Option<Vec<String>> = each.iter().map(|conditions| all(conditions)).collect();
        let each = each?;
        Some(if each.is_empty() { "1 eq 2".to_owned() } else { format!("({})", each.join(word)) })
    };
    match condition {
        Condition::And(each) => several(each, " and "),
        Condition::Or(each) => several(each, " or "),
        Condition::Not(inner) => Some(format!("not ({})", all(inner)?)),
        Condition::Related(..) => None,
        Condition::Field(field, operators) => {
            let given = operators.iter().filter(|(_, operand)| !matches!(operand, Operand::Null));
            let each: Vec<String> = given
                .map(|(word, operand)| match operand {
                    Operand::Several(texts) if texts.is_empty() => "1 eq 2".to_owned(),
                    _ => Spelling::comparison(field.name, field.ty, word, operand),
                })
                .collect();
            Some(if each.is_empty() { "1 eq 1".to_owned() } else { format!("({})", each.join(" and ")) })
        }
    }
}
