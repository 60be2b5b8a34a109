//! Which columns a view works out, by its definition as PostgreSQL prints it. What a view works out may raise for a row that it hides; a column
//! of a table does not.

use std::collections::{HashMap, HashSet};

use sqlparser::ast::{Expr, Join, ObjectName, Query, SelectItem, SetExpr, TableFactor, TableWithJoins};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// A schema and a name.
pub type RelationName = (String, String);

/// The views of a tenant's entities, and those below them.
#[derive(Debug, Default)]
pub struct Definitions {
    views: HashMap<RelationName, Columns>,
    /// Columns of tables that are worked out when they are read: `GENERATED ALWAYS AS ... VIRTUAL`.
    generated: HashSet<(RelationName, String)>,
}

/// From where each column is, if it is one of another relation.
type Columns = HashMap<String, (RelationName, String)>;

/// Levels of sqlparser's recursion.
const MAX_RECURSION: usize = 100;
/// Views upon views.
const MAX_DEPTH: usize = 64;

impl Definitions {
    /// Of what `pg_get_viewdef` gives with an empty search path. A view that cannot be read works out all that it has.
    #[must_use]
    pub fn new(
        views: Vec<(RelationName, String)>,
        generated: HashSet<(RelationName, String)>,
    ) -> Definitions {
        let views = views.into_iter().map(|(name, text)| (name, columns(&text).unwrap_or_default()));
        Definitions { views: views.collect(), generated }
    }

    /// Whether the column of a view is that of a table, through other views too.
    #[must_use]
    pub fn is_of_table(&self, view: &RelationName, column: &str) -> bool {
        let Some(mut of) = self.views.get(view).and_then(|columns| columns.get(column)) else { return false };
        for _ in 0..MAX_DEPTH {
            let (relation, column) = of;
            match self.views.get(relation) {
                None => return !self.generated.contains(of),
                Some(columns) => match columns.get(column) {
                    Some(next) => of = next,
                    None => return false,
                },
            }
        }
        false
    }
}

/// `None`: it is no SELECT that can be read.
fn columns(definition: &str) -> Option<Columns> {
    let parser = Parser::new(&PostgreSqlDialect {}).with_recursion_limit(MAX_RECURSION);
    let query = parser.try_with_sql(definition).ok()?.parse_query().ok()?;
    let Query { body, .. } = *query;
    let SetExpr::Select(select) = *body else { return None };
    let mut tables = Some(HashMap::new());
    let mut n_factors = 0;
    for table in &select.from {
        add(table, &mut tables, &mut n_factors);
    }
    let tables = tables?;
    let of = |expr: &Expr| match expr {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, column] => {
                Some((column.value.clone(), (tables.get(&table.value)?.clone(), column.value.clone())))
            }
            _ => None,
        },
        Expr::Identifier(column) if n_factors == 1 => {
            let only = tables.values().next()?;
            Some((column.value.clone(), (only.clone(), column.value.clone())))
        }
        _ => None,
    };
    let item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => of(expr),
        SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.clone(), of(expr)?.1)),
        _ => None,
    };
    Some(select.projection.iter().filter_map(item).collect())
}

/// Adds what a name in FROM stands for, where that is a relation; a name that stands for two things ends it all.
fn add(table: &TableWithJoins, tables: &mut Option<HashMap<String, RelationName>>, n_factors: &mut usize) {
    let joined = table.joins.iter().map(|Join { relation, .. }| relation);
    for factor in std::iter::once(&table.relation).chain(joined) {
        *n_factors += 1;
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                *n_factors -= 1;
                add(table_with_joins, tables, n_factors);
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                let named = alias.as_ref().filter(|it| it.columns.is_empty()).map(|it| &it.name.value);
                let (Some(relation), true) = (relation(name), alias.is_none() || named.is_some()) else {
                    continue;
                };
                let name = named.unwrap_or(&relation.1).clone();
                let before = tables.as_mut().and_then(|tables| tables.insert(name, relation));
                if before.is_some() {
                    *tables = None;
                }
            }
            _ => {}
        }
    }
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
            of("within", "SELECT x.id FROM ( SELECT t.id FROM a.t) x"),
            of("both", "SELECT t.id FROM a.t UNION SELECT u.id FROM a.u"),
            of("renamed", "SELECT t.b FROM a.t t(b)"),
            of("unread", "SELECT nonsense ("),
            of("itself", "SELECT i.id FROM a.itself i"),
            of("grouped", "SELECT t.id, sum(t.n) AS sum FROM a.t GROUP BY t.id"),
        ];
        let generated = HashSet::from([(name("t"), "inv".to_owned())]);
        let definitions = Definitions::new(views, generated);
        let are = |view: &str, columns: &[&str]| {
            columns.iter().map(|it| definitions.is_of_table(&name(view), it)).collect::<Vec<_>>()
        };
        assert_eq!(are("one", &["id", "text", "rate", "absent"]), [true, true, false, false]);
        assert_eq!(are("two", &["id", "text", "rate", "x"]), [true, true, false, true]);
        assert_eq!(are("late", &["inv", "id"]), [false, true]);
        assert_eq!(are("several", &["id", "word"]), [false, true]);
        assert_eq!(are("made", &["id", "g"]), [false, false]);
        assert_eq!(are("grouped", &["id", "sum"]), [true, false]);
        for view in ["within", "both", "unread", "itself", "absent"] {
            assert_eq!(are(view, &["id"]), [false], "{view}");
        }
        assert_eq!(are("renamed", &["b"]), [false]);
    }
}
