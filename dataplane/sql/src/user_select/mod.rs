//! The SELECT of an API caller, of the SQL endpoint or of a subscription's payloadQuery: text becomes a checked tree, and SQL is written
//! from that tree, never from the text. This is the third wall; the first is the session, which can become no other role.
//!
//! [`tokens`] (bounds, `@name`) → sqlparser → [`check`](walk) (an allow-list of everything that may stand in the tree; each
//! name is quoted, each function is `pg_catalog`'s) → text, which is read again and must give the same tree.

mod allowed;
mod bounded;
mod call;
mod conditions;
mod expr;
mod from;
mod names;
mod query;
mod refusal;
mod stand_in;
mod tokens;
pub(crate) mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use sqlparser::ast::{Query, Spanned as _, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

pub use conditions::ColumnType;
pub use names::Relation;
pub use refusal::Refusal;
pub(crate) use refusal::{Checked, TextPosition};
pub use stand_in::Readable;
use stand_in::StandIns;
pub use tokens::{MAX_BYTES, MAX_NESTING, MAX_OPERATORS};
pub(crate) use tokens::{Parameters, read};

use crate::text::Sql;
use bounded::json_path::JsonPath;
use conditions::Conditions;
use walk::Walk;

/// Levels of sqlparser's recursion. Each bracket takes up to three.
const MAX_RECURSION: usize = 3 * MAX_NESTING + 16;

/// What a text may read beside the tenant's own tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// The SQL endpoint: `WITH RECURSIVE` too, which its deadline bounds, and four views of `information_schema`, which
    /// show a role only what it may read.
    SqlEndpoint,
    /// payloadQuery: no catalog and no recursion, since it runs for each event.
    PayloadQuery,
}

/// A SELECT that passed the checks, written from its tree. Who asks decides what stands for its tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSelect {
    text: StandIns,
    /// The name of `$n` at n - 1, as first written in the text. The database finds their types.
    pub parameters: Vec<String>,
    /// What it reads, common table expressions apart, each once.
    pub relations: Vec<Relation>,
    /// Names of `pg_catalog`, and of the grammar such as `coalesce`.
    pub functions: BTreeSet<String>,
    pub operators: BTreeSet<String>,
    /// Types of casts.
    pub types: BTreeSet<String>,
    /// What the value of a parameter may be, of `$n` at n - 1.
    pub given: Vec<Given>,
    conditions: Conditions,
}

/// Values of a parameter for which PostgreSQL does not take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    pub max_bytes: Option<usize>,
    /// It stands where a `jsonpath` does.
    pub is_json_path: bool,
}

/// Whether a text compares two paths, if it is a `jsonpath`.
pub(crate) fn compares_paths(text: &str) -> bool {
    JsonPath::read(text).compares_paths
}

/// A part of SQL that was written from a checked tree: only this module makes one. [`Sql::checked`] takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedText(String);

impl CheckedText {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl UserSelect {
    /// The statement, where `readable` says what stands for each of its tables; `None`: the relation itself, such as a view of
    /// `information_schema`. Its parameters are bound by who runs it, in the order of [`UserSelect::parameters`].
    #[must_use]
    pub fn sql(&self, readable: impl Fn(&Relation) -> Option<Readable>) -> Sql {
        let mut sql = Sql::new();
        self.text.write(&self.relations, readable, &mut sql);
        sql
    }

    /// The statement that shows how PostgreSQL would run it, as one column of json. Nothing runs.
    #[must_use]
    pub fn explain(&self, readable: impl Fn(&Relation) -> Option<Readable>) -> Sql {
        let mut sql = Sql::new();
        sql.lit("explain (format json) ");
        self.text.write(&self.relations, readable, &mut sql);
        sql
    }

    /// Whether a condition may raise by what stands in a row: an error would tell of rows that a view hides, if it were tried before the
    /// view's own conditions. `types` of a name: those of the columns that it may be, of this table or of any; none if it may be something
    /// else.
    #[must_use]
    pub fn may_raise(&self, types: impl Fn(Option<&Relation>, &str) -> Vec<ColumnType>) -> bool {
        self.conditions.may_raise(types)
    }

    pub(crate) fn new(text: StandIns, parameters: Vec<String>, walk: Walk<'_>) -> UserSelect {
        let Walk { mut conditions, relations, functions, operators, types, short, json_paths, .. } = walk;
        // a name may mean the row of a table
        relations.iter().for_each(|relation| conditions.name_row(&relation.name));
        let given = |n| {
            let name = format!("${n}");
            Given { max_bytes: short.get(&name).copied(), is_json_path: json_paths.contains(&name) }
        };
        let given = (1..=parameters.len()).map(given).collect();
        UserSelect { text, parameters, relations, functions, operators, types, given, conditions }
    }
}

/// One SELECT that does nothing but read, or the rule that the text breaks.
pub fn check(text: &str, rules: Rules) -> Result<UserSelect, Refusal> {
    let tokens = read(text, Parameters::Any)?;
    let mut query = parse(tokens.tokens)?;
    let mut walk = Walk::new(rules, None);
    walk.statement(&mut query)?;
    let text = write(&query)?;
    Ok(UserSelect::new(text, tokens.parameters, walk))
}

/// Exactly one statement, and that a query.
pub(crate) fn parse(tokens: Vec<TokenWithSpan>) -> Checked<Query> {
    let first = tokens.first().map_or(Location::empty(), |it| it.span.start);
    let semicolon = tokens.iter().position(|it| it.token == Token::SemiColon);
    if let Some(second) = semicolon.and_then(|at| tokens.get(at + 1)) {
        return Err(Refusal::new(
            "statements",
            second.span,
            "one statement is allowed, and a second begins here",
        ));
    }
    let mut parser = parser().with_tokens_with_locations(tokens);
    let parsed = parser.parse_statements();
    let here = parser.peek_token().span.start;
    let mut statements = parsed.map_err(|_| {
        let message = "the text cannot be read here; one SELECT in PostgreSQL's syntax is expected";
        let at = if here.line == 0 { first } else { here };
        Refusal::new("syntax", at, message)
    })?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Statement::Query(query)), true) => Ok(*query),
        (None, _) => {
            Err(Refusal::new("statement", first, "the text holds no statement; one SELECT is expected"))
        }
        (Some(second), false) => Err(Refusal::new(
            "statements",
            second.span(),
            "one statement is allowed, and a second begins here",
        )),
        (Some(_), true) => Err(Refusal::new("statement", first, "only a SELECT is allowed here")),
    }
}

pub(crate) fn parser() -> Parser<'static> {
    Parser::new(&PostgreSqlDialect {}).with_recursion_limit(MAX_RECURSION)
}

/// The tree as text. sqlparser's own writing is trusted as far as it reads back as the same tree.
pub(crate) fn write(query: &Query) -> Checked<StandIns> {
    let text = query.to_string();
    let refusal = || {
        let message = "the SELECT cannot be written back unchanged; write it in a simpler form";
        Refusal::new("round trip", TextPosition::default(), message)
    };
    let mut tokens = tokens::tokens_of(&text).map_err(|_| refusal())?;
    tokens.retain(|it| !matches!(it.token, Token::Whitespace(_)));
    match parse(tokens) {
        Ok(again) if again == *query => StandIns::split(&text).ok_or_else(refusal),
        _ => Err(refusal()),
    }
}
