//! Which columns a view works out, by its definition as PostgreSQL prints it. What a view works out may raise for a row that it hides; a column
//! of a table does not.

use std::collections::{HashMap, HashSet};

use sqlparser::ast::{
    Expr, Join, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// A schema and a name.
pub type RelationName = (String, String);

/// The views of a tenant's entities, and those below them.
#[derive(Debug, Default)]
pub struct Definitions {
    views: HashMap<RelationName, Vec<Output>>,
    /// Columns of tables that are worked out when they are read: `GENERATED ALWAYS AS ... VIRTUAL`.
    generated: HashSet<Origin>,
    /// The oids of the types of all columns.
    types: HashMap<Origin, u32>,
}

/// A column of a relation.
type Origin = (RelationName, String);
/// The name of a column, and all that it is where it is nothing else: of several where SELECTs are joined by UNION.
type Output = (String, Option<Vec<Origin>>);

/// Views upon views.
const MAX_DEPTH: usize = 64;
/// Of a definition, in bytes and in words: sqlparser's tree of `a or a or ...` is as deep as there are terms, and is dropped level by level.
const MAX_BYTES: usize = 1 << 16;
const MAX_WORDS: usize = 4_000;
/// Levels of sqlparser's recursion.
const MAX_RECURSION: usize = 100;

impl Definitions {
    /// Of what `pg_get_viewdef` gives with an empty search path. A view that cannot be read works out all that it has.
    #[must_use]
    pub fn new(
        views: Vec<(RelationName, String)>,
        generated: HashSet<Origin>,
        types: HashMap<Origin, u32>,
    ) -> Definitions {
        let views = views.into_iter().map(|(name, text)| (name, columns(&text).unwrap_or_default()));
        Definitions { views: views.collect(), generated, types }
    }

    pub fn extend(&mut self, more: Definitions) {
        self.views.extend(more.views);
        self.generated.extend(more.generated);
        self.types.extend(more.types);
    }

    /// Whether the column of a view is that of a table, through other views too.
    #[must_use]
    pub fn is_of_table(&self, view: &RelationName, column: &str) -> bool {
        self.views.contains_key(view) && self.is_plain(&(view.clone(), column.to_owned()), MAX_DEPTH)
    }

    fn is_plain(&self, of: &Origin, depth: usize) -> bool {
        let Some(columns) = self.views.get(&of.0) else { return !self.generated.contains(of) };
        let origins =
            columns.iter().find(|(name, _)| *name == of.1).and_then(|(_, origins)| origins.as_ref());
        let Some(depth) = depth.checked_sub(1) else { return false };
        // PostgreSQL does not print the casts by which SELECTs of a UNION come to have one type
        let is_cast = |origin: &Origin| self.types.get(origin) != self.types.get(of);
        origins.is_some_and(|origins| {
            origins.iter().all(|origin| self.is_plain(origin, depth))
                && (origins.len() == 1 || !origins.iter().any(is_cast))
        })
    }
}

/// `None`: it cannot be read.
fn columns(definition: &str) -> Option<Vec<Output>> {
    if MAX_BYTES < definition.len() || MAX_WORDS < definition.split_whitespace().count() {
        return None;
    }
    let parser = Parser::new(&PostgreSqlDialect {}).with_recursion_limit(MAX_RECURSION);
    let mut parser = parser.try_with_sql(definition).ok()?;
    let query = parser.parse_query().ok()?;
    // sqlparser ends where it reads no further
    while parser.consume_token(&Token::SemiColon) {}
    if parser.peek_token().token != Token::EOF {
        return None;
    }
    outputs(&query, &HashMap::new())
}

/// What a query gives. `ctes`: what common table expressions around it give.
fn outputs(query: &Query, ctes: &HashMap<String, Vec<Output>>) -> Option<Vec<Output>> {
    let mut ctes = ctes.clone();
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        let is_recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let given = if is_recursive { None } else { outputs(&cte.query, &ctes) };
        ctes.insert(cte.alias.name.value.clone(), renamed(given.unwrap_or_default(), &cte.alias));
    }
    of_body(&query.body, &ctes)
}

fn of_body(body: &SetExpr, ctes: &HashMap<String, Vec<Output>>) -> Option<Vec<Output>> {
    match body {
        SetExpr::Select(select) => of_select(select, ctes),
        SetExpr::Query(query) => outputs(query, ctes),
        SetExpr::SetOperation { left, right, .. } => {
            let (left, right) = (of_body(left, ctes)?, of_body(right, ctes)?);
            let both = left.into_iter().zip(right).map(|((name, one), (_, other))| {
                let all = one.zip(other).map(|(one, other)| [one, other].concat());
                (name, all)
            });
            Some(both.collect())
        }
        _ => None,
    }
}

/// What a name in FROM stands for.
enum Source {
    Relation(RelationName),
    Query(Vec<Output>),
}

impl Source {
    fn column(&self, name: &str) -> Option<Vec<Origin>> {
        match self {
            Source::Relation(relation) => Some(vec![(relation.clone(), name.to_owned())]),
            Source::Query(outputs) => outputs.iter().find(|(known, _)| known == name)?.1.clone(),
        }
    }
}

fn of_select(select: &Select, ctes: &HashMap<String, Vec<Output>>) -> Option<Vec<Output>> {
    let (mut sources, mut n_factors) = (HashMap::new(), 0);
    for table in &select.from {
        add(table, ctes, &mut sources, &mut n_factors)?;
    }
    let of = |expr: &Expr| match expr {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, column] => {
                (column.value.clone(), sources.get(&table.value).and_then(|it| it.column(&column.value)))
            }
            _ => (String::new(), None),
        },
        Expr::Identifier(column) => {
            let only = sources.values().next().filter(|_| n_factors == 1);
            (column.value.clone(), only.and_then(|it| it.column(&column.value)))
        }
        // PostgreSQL prints a name wherever it needs one
        _ => (String::new(), None),
    };
    let item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => Some(of(expr)),
        SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.clone(), of(expr).1)),
        _ => None,
    };
    select.projection.iter().map(item).collect()
}

/// Adds what names in FROM stand for; `None`: one stands for two things. A function stands for nothing that is known.
fn add(
    table: &TableWithJoins,
    ctes: &HashMap<String, Vec<Output>>,
    sources: &mut HashMap<String, Source>,
    n_factors: &mut usize,
) -> Option<()> {
    let joined = table.joins.iter().map(|Join { relation, .. }| relation);
    for factor in std::iter::once(&table.relation).chain(joined) {
        *n_factors += 1;
        let found = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                *n_factors -= 1;
                add(table_with_joins, ctes, sources, n_factors)?;
                None
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                let named = alias.as_ref().map(|it| it.name.value.clone());
                match (relation(name), name.0.as_slice(), alias) {
                    (Some(relation), _, None) => Some((relation.1.clone(), Source::Relation(relation))),
                    (Some(relation), _, Some(alias)) if alias.columns.is_empty() => {
                        named.map(|named| (named, Source::Relation(relation)))
                    }
                    (None, [cte], alias) => {
                        let cte = &cte.as_ident()?.value;
                        let outputs = ctes.get(cte).cloned().unwrap_or_default();
                        let outputs = match alias {
                            Some(alias) => renamed(outputs, alias),
                            None => outputs,
                        };
                        Some((named.unwrap_or_else(|| cte.clone()), Source::Query(outputs)))
                    }
                    _ => None,
                }
            }
            TableFactor::Derived { subquery, alias: Some(alias), .. } => {
                let given = renamed(outputs(subquery, ctes).unwrap_or_default(), alias);
                Some((alias.name.value.clone(), Source::Query(given)))
            }
            _ => None,
        };
        if let Some((name, source)) = found
            && sources.insert(name, source).is_some()
        {
            return None;
        }
    }
    Some(())
}

/// As an alias with a list of columns calls them.
fn renamed(outputs: Vec<Output>, alias: &TableAlias) -> Vec<Output> {
    let mut names = alias.columns.iter().map(|it| it.name.value.clone());
    outputs.into_iter().map(|(name, origins)| (names.next().unwrap_or(name), origins)).collect()
}

/// One without a schema is a common table expression, or of `pg_catalog`.
fn relation(name: &ObjectName) -> Option<RelationName> {
    match name.0.as_slice() {
        [schema, name] => Some((schema.as_ident()?.value.clone(), name.as_ident()?.value.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_a_table_is_known_through_views() {
        let name = |name: &str| ("a".to_owned(), name.to_owned());
        let of = |view: &str, text: &str| (name(view), text.to_owned());
        let views = vec![
            of("one", " SELECT id,\n    word AS text,\n    (100 / n) AS rate\n   FROM a.t;"),
            of(
                "two",
                " SELECT o.id,\n    o.text,\n    o.rate,\n    u.x\n   FROM (a.one o\n     JOIN a.t u USING (id))\n  WHERE (o.id > 1);",
            ),
            of("late", "SELECT t.inv, t.id FROM a.t"),
            of("several", "SELECT id, t.word FROM (a.t FULL JOIN a.u USING (id))"),
            of(
                "made",
                "WITH t AS (SELECT 1 AS id) SELECT t.id, g.g FROM t, LATERAL generate_series(1, 2) g(g)",
            ),
            of("within", "SELECT x.id, x.a FROM ( SELECT t.id, 1 / t.n AS a FROM a.t) x"),
            of(
                "with",
                "WITH c AS (SELECT t.id, t.word, 1 / t.n AS a FROM a.t), d(k, w, x) AS (SELECT c.id, c.word, c.a FROM c) SELECT d.k AS id, d.w, d.x FROM d",
            ),
            of(
                "counted",
                "WITH RECURSIVE c AS (SELECT t.id FROM a.t UNION SELECT 1 / c.id FROM c) SELECT c.id FROM c",
            ),
            of("long", &format!("SELECT t.id FROM a.t WHERE t.id = 1{}", " OR t.id = 2".repeat(5_000))),
            of("both", "SELECT t.id, t.n AS a, t.m FROM a.t UNION ALL SELECT u.id, 1 / u.n, u.m FROM a.u"),
            of("renamed", "SELECT t.b FROM a.t t(b)"),
            of(
                "cut",
                "SELECT t.id FROM a.t GROUP BY DISTINCT ROLLUP(t.id, t.n) UNION ALL SELECT 1 / u.n FROM a.u;",
            ),
            of("unread", "SELECT nonsense ("),
            of("itself", "SELECT i.id FROM a.itself i"),
            of("grouped", "SELECT t.id, sum(t.n) AS sum FROM a.t GROUP BY t.id"),
        ];
        let generated = HashSet::from([(name("t"), "inv".to_owned())]);
        let types = [
            ("both", "id", 23),
            ("t", "id", 23),
            ("u", "id", 23),
            ("both", "m", 701),
            ("t", "m", 1700),
            ("u", "m", 701),
        ];
        let types = types.map(|(relation, column, oid)| ((name(relation), column.to_owned()), oid));
        let definitions = Definitions::new(views, generated, types.into());
        let are = |view: &str, columns: &[&str]| {
            columns.iter().map(|it| definitions.is_of_table(&name(view), it)).collect::<Vec<_>>()
        };
        assert_eq!(are("one", &["id", "text", "rate", "absent"]), [true, true, false, false]);
        assert_eq!(are("two", &["id", "text", "rate", "x"]), [true, true, false, true]);
        assert_eq!(are("late", &["inv", "id"]), [false, true]);
        assert_eq!(are("several", &["id", "word"]), [false, true]);
        assert_eq!(are("made", &["id", "g"]), [false, false]);
        assert_eq!(are("grouped", &["id", "sum"]), [true, false]);
        assert_eq!(are("within", &["id", "a"]), [true, false]);
        assert_eq!(are("both", &["id", "a", "m"]), [true, false, false]);
        assert_eq!(are("with", &["id", "w", "x"]), [true, true, false]);
        assert_eq!(are("counted", &["id"]), [false]);
        for view in ["cut", "long", "unread", "itself", "absent"] {
            assert_eq!(are(view, &["id"]), [false], "{view}");
        }
        assert_eq!(are("renamed", &["b"]), [false]);
    }
}
