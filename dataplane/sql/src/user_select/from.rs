//! What stands in FROM: tables, sub-selects, joins, and a short list of functions.

use sqlparser::ast::{
    Expr, FunctionArg, Ident, Join, JoinConstraint, JoinOperator, ObjectName, SelectItem, SetExpr,
    TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, TableWithJoins,
};
use sqlparser::parser::Parser;

use super::allowed::functions::IN_FROM;
use super::names::{Relation, parts, place, quote, relation};
use super::refusal::{Checked, Refusal, TextPosition};
use super::stand_in;
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn table_with_joins(&mut self, table: &mut TableWithJoins) -> Checked {
        let TableWithJoins { relation, joins } = table;
        self.factor(relation)?;
        for Join { relation, global, join_operator } in joins {
            self.need(!*global, "join", "GLOBAL is not PostgreSQL")?;
            self.factor(relation)?;
            match join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::CrossJoin(on) => {
                    self.on(on)?
                }
                JoinOperator::Left(on)
                | JoinOperator::LeftOuter(on)
                | JoinOperator::Right(on)
                | JoinOperator::RightOuter(on)
                | JoinOperator::FullOuter(on) => {
                    self.conditions.join_outer();
                    self.on(on)?;
                }
                _ => {
                    return self
                        .refuse("join", "only inner, left, right, full and cross joins are PostgreSQL");
                }
            }
        }
        Ok(())
    }

    fn on(&mut self, constraint: &mut JoinConstraint) -> Checked {
        match constraint {
            JoinConstraint::On(expr) => self.condition(expr),
            JoinConstraint::Using(columns) => {
                let at = self.at;
                self.long_calls += columns.len();
                for column in columns {
                    let names = parts(column, at)?;
                    names.iter().for_each(|name| self.conditions.join(name));
                }
                Ok(())
            }
            JoinConstraint::UsingAlias(..) => self.refuse("join", "a USING clause has no alias here"),
            JoinConstraint::Natural => {
                self.long_calls += self.columns_met;
                self.conditions.other();
                Ok(())
            }
            JoinConstraint::None => Ok(()),
        }
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Checked {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives,
                inheritance,
            } => {
                self.at = place(name, self.at);
                let is_plain = version.is_none()
                    && partitions.is_empty()
                    && json_path.is_none()
                    && index_directives.is_empty();
                self.need(is_plain, "syntax", "only an alias may follow a table's name")?;
                self.need(
                    with_hints.is_empty(),
                    "hint",
                    "table hints such as WITH (NOLOCK) are not PostgreSQL: leave them out",
                )?;
                self.need(
                    sample.is_none(),
                    "sample",
                    "TABLESAMPLE is not allowed: its method may be a function of the database",
                )?;
                self.need(
                    inheritance.is_none(),
                    "table",
                    "ONLY and * are not allowed around a table's name",
                )?;
                let Some(TableFunctionArgs { args, settings }) = args else {
                    self.need(!*with_ordinality, "syntax", "WITH ORDINALITY follows a function")?;
                    return self.table(name, alias);
                };
                self.need(settings.is_none(), "syntax", "SETTINGS is not PostgreSQL")?;
                let call = (name.clone(), std::mem::take(args), *with_ordinality, alias.take());
                *factor = self.function_in_from(call)?;
                Ok(())
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                self.at = place(name, self.at);
                let call = (name.clone(), std::mem::take(args), *with_ordinality, alias.take());
                *factor = self.function_in_from(call)?;
                Ok(())
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset, with_offset_alias, with_ordinality } => {
                let is_plain = !*with_offset && with_offset_alias.is_none();
                self.need(is_plain, "syntax", "write WITH ORDINALITY for WITH OFFSET")?;
                let args = std::mem::take(array_exprs);
                let args = args.into_iter().map(|expr| FunctionArg::Unnamed(expr.into())).collect();
                let call = (ObjectName::from(Ident::new("unnest")), args, *with_ordinality, alias.take());
                *factor = self.function_in_from(call)?;
                Ok(())
            }
            TableFactor::Derived { lateral: _, subquery, alias, sample } => {
                self.need(sample.is_none(), "sample", "TABLESAMPLE is not allowed")?;
                self.query(subquery)?;
                self.make_values();
                self.optional_alias(alias.as_mut(), None)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.table_with_joins(table_with_joins)?;
                self.optional_alias(alias.as_mut(), None)
            }
            _ => self.refuse(
                "from",
                "only tables, sub-selects, joins and functions such as generate_series may stand in FROM",
            ),
        }
    }

    /// A table gets a stand-in's name, and keeps its own as alias: what stands for it depends on who asks.
    fn table(&mut self, name: &mut ObjectName, alias: &mut Option<TableAlias>) -> Checked {
        let at = self.at;
        let parts = parts(name, at)?;
        let found = relation(&parts, self.rules, at)?;
        let is_cte = found.schema.is_none() && self.ctes.iter().flatten().any(|cte| *cte == found.name);
        self.optional_alias(alias.as_mut(), (!is_cte).then_some(&found))?;
        if is_cte {
            self.make_values();
            return Ok(());
        }
        if alias.is_none() {
            self.conditions.name_table(&found.name, Some(&found));
            let name = Ident::with_quote('"', &found.name);
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        let known = self.relations.iter().position(|relation| *relation == found);
        let n = known.unwrap_or_else(|| {
            self.relations.push(found);
            self.relations.len() - 1
        });
        *name = ObjectName::from(Ident::with_quote('"', stand_in::name(n)));
        Ok(())
    }

    /// `f(x) as a` becomes `lateral (select * from f(x) as a) as a`. In PostgreSQL `a.g` calls `g(a)` where a is a scalar that f gave, and
    /// `select a.pg_sleep from generate_series(1, 9) as a` waits; the row of a sub-select is a record, which no such function takes.
    fn function_in_from(
        &mut self,
        (name, args, ordinality, alias): (ObjectName, Vec<FunctionArg>, bool, Option<TableAlias>),
    ) -> Checked<TableFactor> {
        self.make_values();
        let mut call = super::call::plain(name, args);
        let function = self.call(&mut call)?;
        self.bounded_in_from(&mut call)?;
        self.conditions.other();
        let at = self.at;
        if !IN_FROM.contains(&function.as_str()) {
            let message = format!("{function} may not stand in FROM; {} may", IN_FROM.join(", "));
            return Err(Refusal::new("function", at, message));
        }
        let mut inner = alias.unwrap_or_else(|| TableAlias {
            explicit: true,
            name: Ident::new(function),
            columns: Vec::new(),
            at: None,
        });
        inner.explicit = true;
        self.alias(&mut inner, None)?;
        let ordinality = if ordinality { " WITH ORDINALITY" } else { "" };
        let text =
            format!("SELECT * FROM LATERAL (SELECT * FROM {call}{ordinality} {inner}) AS {}", inner.name);
        let refusal = || Refusal::new("from", at, "this function cannot stand in FROM as it is written");
        let query =
            super::parser().try_with_sql(&text).and_then(|mut parser: Parser<'_>| parser.parse_query());
        let body = query.map_err(|_| refusal())?.body;
        match *body {
            SetExpr::Select(select) => {
                let is_all = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]);
                let mut from = select.from.into_iter();
                match (from.next(), from.next(), is_all) {
                    (Some(TableWithJoins { relation, joins }), None, true) if joins.is_empty() => {
                        Ok(relation)
                    }
                    _ => Err(refusal()),
                }
            }
            _ => Err(refusal()),
        }
    }

    fn optional_alias(&mut self, alias: Option<&mut TableAlias>, of: Option<&Relation>) -> Checked {
        alias.map_or(Ok(()), |alias| self.alias(alias, of).map(|_| ()))
    }

    /// `of`: the table that it is another name of.
    pub(super) fn alias(&mut self, alias: &mut TableAlias, of: Option<&Relation>) -> Checked<String> {
        let TableAlias { explicit: _, name, columns, at } = alias;
        self.at = TextPosition::from(name.span).or(self.at);
        self.need(at.is_none(), "alias", "AT is not PostgreSQL")?;
        for TableAliasColumnDef { name, data_type } in columns {
            quote(name)?;
            self.conditions.other();
            if let Some(ty) = data_type {
                self.ty(ty)?;
            }
        }
        let given = quote(name)?;
        self.conditions.name_table(&given, of);
        Ok(given)
    }

    pub(super) fn exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e mut Expr>) -> Checked {
        exprs.into_iter().try_for_each(|expr| self.expr(expr))
    }
}
