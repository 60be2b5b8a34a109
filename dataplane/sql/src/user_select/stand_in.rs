//! What stands for the tables of a SELECT. Where a key may not read all columns of a table, that is a sub-select of those that it may:
//! PostgreSQL then finds no other, whatever names it looks for, and says of a hidden column what it says of an absent one.

use super::{CheckedText, Relation, tokens};
use crate::text::{Ident, Sql};
use sqlparser::tokenizer::Token;

/// Longer than any name that a text may hold.
const PREFIX: &str = "the name of a table that stands here until it is known who asks for its rows: ";

/// A table as a key may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    pub schema: Ident,
    pub table: Ident,
    /// `None`: all that there are.
    pub columns: Option<Vec<Ident>>,
    /// A view whose own conditions are tried before any of the SELECT.
    pub is_fenced: bool,
    /// Rows that are true here are hidden.
    pub hidden_by: Option<Ident>,
    /// The view works that flag out.
    pub works_out_flag: bool,
}

/// A checked text, cut where its tables stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StandIns {
    first: CheckedText,
    /// Which table, and what follows on it.
    rest: Vec<(usize, CheckedText)>,
}

/// The name that table `n` of a SELECT has in its tree.
pub(super) fn name(n: usize) -> String {
    format!("{PREFIX}{n}")
}

impl StandIns {
    /// `None`: a constant of the text looks like a stand-in.
    pub(super) fn split(text: &str) -> Option<StandIns> {
        let opening = format!("\"{PREFIX}");
        let mut pieces = text.split(&opening);
        let first = CheckedText(pieces.next()?.to_owned());
        let rest: Option<Vec<_>> = pieces
            .map(|piece| {
                let (n, text) = piece.split_once('"')?;
                Some((n.parse().ok()?, CheckedText(text.to_owned())))
            })
            .collect();
        let rest = rest?;
        let is_stand_in = |token: &Token| matches!(token, Token::Word(word) if word.quote_style == Some('"') && word.value.starts_with(PREFIX));
        let tokens = tokens::tokens_of(text).ok()?;
        let n_names = tokens.iter().filter(|it| is_stand_in(&it.token)).count();
        (n_names == rest.len()).then_some(StandIns { first, rest })
    }

    pub(super) fn write(
        &self,
        relations: &[Relation],
        readable: impl Fn(&Relation) -> Option<Readable>,
        sql: &mut Sql,
    ) {
        sql.checked(&self.first);
        for (n, text) in &self.rest {
            let relation = &relations[*n];
            match readable(relation) {
                Some(readable) => table(&readable, sql),
                None => itself(relation, sql),
            }
            sql.checked(text);
        }
    }

    /// The text with its stand-ins.
    #[cfg(test)]
    pub(super) fn joined(&self) -> String {
        let rest = self.rest.iter().map(|(n, text)| format!("\"{}\"{}", name(*n), text.as_str()));
        [self.first.as_str().to_owned()].into_iter().chain(rest).collect()
    }
}

/// Below it PostgreSQL tries nothing that stands around it.
const FENCE: &str = " offset 0)";

fn table(
    Readable { schema, table, columns, is_fenced, hidden_by, works_out_flag }: &Readable,
    sql: &mut Sql,
) {
    if columns.is_none() && !is_fenced && hidden_by.is_none() {
        sql.ident(schema).lit(".").ident(table);
        return;
    }
    let select = |sql: &mut Sql, and: Option<&Ident>| {
        sql.lit("(select ");
        let listed = columns.iter().flatten();
        let and = and.filter(|and| columns.as_ref().is_some_and(|listed| !listed.contains(and)));
        for (i, column) in listed.chain(and).enumerate() {
            sql.lit(if i == 0 { "" } else { ", " }).ident(column);
        }
        sql.lit(if columns.is_none() { "*" } else { "" }).lit(" from ");
    };
    select(sql, None);
    // its flag is looked at for rows that the view shows
    if *works_out_flag {
        select(sql, hidden_by.as_ref());
    }
    sql.ident(schema).lit(".").ident(table);
    sql.lit(if *works_out_flag { " offset 0) t" } else { "" });
    if let Some(flag) = hidden_by {
        sql.lit(" where ").ident(flag).lit(" is not true");
    }
    sql.lit(if *is_fenced { FENCE } else { ")" });
}

/// Of `information_schema.columns`, without the expression of a generated column, which names others.
const COLUMNS: &str = "table_catalog, table_schema, table_name, column_name, ordinal_position, column_default, is_nullable, data_type, \
    character_maximum_length, character_octet_length, numeric_precision, numeric_precision_radix, numeric_scale, datetime_precision, \
    interval_type, collation_schema, collation_name, domain_schema, domain_name, udt_schema, udt_name, is_identity, \
    identity_generation, is_generated, is_updatable";

/// A relation under the very name that the text gives it. The views of the catalog hide what others may read, as views of a tenant do.
fn itself(relation: &Relation, sql: &mut Sql) {
    let is_of_catalog = relation.schema.as_deref() == Some("information_schema");
    if is_of_catalog {
        sql.lit("(select ").lit(if relation.name == "columns" { COLUMNS } else { "*" }).lit(" from ");
    }
    let name = |name: &String| CheckedText(format!("\"{name}\""));
    if let Some(schema) = &relation.schema {
        sql.checked(&name(schema)).lit(".");
    }
    sql.checked(&name(&relation.name));
    if is_of_catalog {
        sql.lit(FENCE);
    }
}
