//! A payloadQuery: one SELECT with T-SQL's FOR JSON around PostgreSQL's expressions, as a statement that gives one value of
//! type json, or NULL where the SELECT has no rows.
//!
//! As in T-SQL: keys keep their case, PATH nests at dots, NULL is left out at each level unless INCLUDE_NULL_VALUES says otherwise (so is an object
//! all of whose members are NULL), a nested FOR JSON is embedded, and with WITHOUT_ARRAY_WRAPPER it is a string unless JSON_QUERY
//! stands around it. Other than in T-SQL: AUTO reads one table, columns are named one by one, values are written as
//! PostgreSQL's `to_json` writes them (bytea as base64), whatever has type json is embedded, through CASE and coalesce too, and WITHOUT_ARRAY_WRAPPER with
//! several rows ends with SQLSTATE 21000 at the outside.

mod clause;
mod keys;
mod object;

#[cfg(test)]
mod tests;

use sqlparser::ast::{DataType, Expr, ForClause, Query};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::text::Sql;
use crate::user_select::walk::{ForJson, Walk};
use crate::user_select::{
    Checked, Parameters, Refusal, Rules, TextPosition, UserSelect, parse, parser, read, write,
};

/// A name after `@` in the text, and the type that its value is cast to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// As `format_type` prints it, a type of the tenant included.
    pub ty: String,
}

/// A payloadQuery that passed the checks, as a statement with one row of one column, `data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadQuery(UserSelect);

impl Variable {
    #[must_use]
    pub fn new(name: impl Into<String>, ty: impl Into<String>) -> Variable {
        Variable { name: name.into(), ty: ty.into() }
    }

    /// The variables that each payloadQuery has beside the key columns. Their values are text.
    #[must_use]
    pub fn of_every_event() -> Vec<Variable> {
        ["dl_op", "dl_table", "dl_schema", "dl_rowKeyJson"].map(|name| Variable::new(name, "text")).into()
    }
}

impl PayloadQuery {
    /// The statement over whole tables, which a key that may read all of them would run. `$n` is cast to its variable's type, so its
    /// value is bound in any form that PostgreSQL casts, such as text.
    #[must_use]
    pub fn sql(&self) -> Sql {
        self.0.sql(|_| None)
    }

    /// The name of `$n` at n - 1, spelt as in the list of variables. What the text does not name is not here.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.0.parameters
    }

    /// What it reads and calls.
    #[must_use]
    pub fn select(&self) -> &UserSelect {
        &self.0
    }
}

/// Checks and translates the text. `variables` are the key columns that every table in the subscription's filter has, and
/// [`Variable::of_every_event`].
pub fn translate(text: &str, variables: &[Variable]) -> Result<PayloadQuery, Refusal> {
    let names: Vec<String> = variables.iter().map(|it| it.name.clone()).collect();
    let mut tokens = read(text, Parameters::Of(&names))?;
    clause::complete(&mut tokens.tokens)?;
    let end = tokens.tokens.last().map(|it| TextPosition::from(it.span)).unwrap_or_default();
    let mut query = parse(tokens.tokens)?;
    let Some(clause) = query.for_clause.take() else {
        let message = "a payloadQuery ends with FOR JSON PATH or FOR JSON AUTO";
        return Err(Refusal::new("for json", end, message));
    };
    let of_name = |name: &String| variables.iter().find(|it| it.name == *name).map_or("text", |it| &it.ty);
    let types = tokens.parameters.iter().map(|name| data_type(of_name(name))).collect::<Checked<Vec<_>>>()?;
    let keys = keys::of(&query, &clause)?;
    let for_json = ForJson { types: &types, keys: keys::of, nested };
    let mut walk = Walk::new(Rules::PayloadQuery, Some(for_json));
    walk.statement(&mut query)?;
    let value = object::value(&query, &keys, &clause, object::Level::Outside)?;
    let text = format!("SELECT {value} AS \"data\"");
    let statement = parsed(&text, TextPosition::default(), |parser| parser.parse_query().ok())?;
    Ok(PayloadQuery(UserSelect::new(write(&statement)?, tokens.parameters, walk)))
}

fn nested(query: &Query, keys: &[String], clause: &ForClause, at: TextPosition) -> Checked<Expr> {
    let text = object::value(query, keys, clause, object::Level::Nested)?;
    parsed(&text, at, |parser| parser.parse_expr().ok())
}

fn data_type(text: &str) -> Checked<DataType> {
    parsed(text, TextPosition::default(), |parser| parser.parse_data_type().ok())
}

/// Reads text of ours, to its end.
fn parsed<T>(
    text: &str,
    at: TextPosition,
    read: impl FnOnce(&mut sqlparser::parser::Parser<'static>) -> Option<T>,
) -> Checked<T> {
    let refusal = || {
        Refusal::new(
            "translation",
            at,
            "this SELECT is too deep or too odd to be translated; write it in a simpler form",
        )
    };
    let mut parser = parser().try_with_sql(text).map_err(|_| refusal())?;
    let value = read(&mut parser).ok_or_else(refusal)?;
    match parser.next_token() {
        TokenWithSpan { token: Token::EOF, .. } => Ok(value),
        _ => Err(refusal()),
    }
}
