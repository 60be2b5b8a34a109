//! Queries: common table expressions, set operations, SELECT and what stands around it.

use sqlparser::ast::{
    Cte, Distinct, Fetch, GroupByExpr, LimitClause, NamedWindowExpr, Offset, OrderBy, OrderByExpr,
    OrderByKind, OrderBySort, Query, Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, SetOperator, SetQuantifier, Spanned as _, Values, WildcardAdditionalOptions, With,
};

use super::Rules;
use super::names::{parts, place, quote};
use super::refusal::{Checked, Refusal, TextPosition};
use super::walk::Walk;

impl Walk<'_> {
    /// A query without FOR.
    pub(crate) fn query(&mut self, query: &mut Query) -> Checked {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        self.need(for_clause.is_none(), "for", "FOR JSON may stand at the end of a payloadQuery and of a sub-select that is a value, nowhere else")?;
        self.need(
            locks.is_empty(),
            "locking",
            "FOR UPDATE and FOR SHARE are not allowed: a SELECT here only reads",
        )?;
        let plain = settings.is_none() && format_clause.is_none() && pipe_operators.is_empty();
        self.need(plain, "syntax", "SETTINGS, FORMAT and pipe operators are not PostgreSQL")?;
        if !self.ctes.is_empty() || !matches!(**body, SetExpr::Select(_)) {
            self.conditions.other();
        }
        let (aggregates, makes_values) = (self.aggregates, self.makes_values);
        self.ctes.push(Vec::new());
        if let Some(with) = with {
            self.with(with)?;
        }
        match &mut **body {
            SetExpr::Select(select) => self.select(select)?,
            other => self.body(other)?,
        }
        if let Some(order_by) = order_by {
            self.order_by(order_by)?;
        }
        if let Some(limit) = limit_clause {
            self.limit(limit)?;
        }
        if let Some(Fetch { with_ties: _, percent, quantity }) = fetch {
            self.need(!*percent, "fetch", "FETCH ... PERCENT is not PostgreSQL")?;
            self.exprs(quantity.as_mut())?;
            quantity.iter().for_each(|it| self.conditions.number(it));
        }
        self.ctes.pop();
        // its own, which are worked out within it
        self.aggregates = aggregates;
        self.makes_values = makes_values;
        Ok(())
    }

    fn with(&mut self, With { with_token, recursive, cte_tables }: &mut With) -> Checked {
        let at = TextPosition::from(with_token.0.span).or(self.at);
        if *recursive && self.rules == Rules::PayloadQuery {
            return Err(Refusal::new(
                "recursive",
                at,
                "WITH RECURSIVE is not allowed in a payloadQuery, which runs for each event",
            ));
        }
        if *recursive {
            for cte in cte_tables.iter_mut() {
                self.name_cte(cte)?;
            }
        }
        for cte in cte_tables {
            let Cte { alias: _, query, from, materialized: _, closing_paren_token: _ } = &mut *cte;
            self.need(
                from.is_none(),
                "syntax",
                "FROM after a common table expression's name is not PostgreSQL",
            )?;
            self.query(query)?;
            // within its own query the name is still a table's
            if !*recursive {
                self.name_cte(cte)?;
            }
        }
        Ok(())
    }

    fn name_cte(&mut self, cte: &mut Cte) -> Checked {
        let name = self.alias(&mut cte.alias, None)?;
        if name.starts_with("pg_") {
            return self.refuse(
                "catalog",
                format!("a common table expression may not be named {name}: pg_ belongs to PostgreSQL"),
            );
        }
        if let Some(names) = self.ctes.last_mut() {
            names.push(name);
        }
        Ok(())
    }

    fn body(&mut self, body: &mut SetExpr) -> Checked {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let is_known =
                    matches!(op, SetOperator::Union | SetOperator::Except | SetOperator::Intersect)
                        && matches!(
                            set_quantifier,
                            SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None
                        );
                self.need(
                    is_known,
                    "set operation",
                    "only UNION, EXCEPT and INTERSECT, with ALL or DISTINCT, join two SELECTs",
                )?;
                self.body(left)?;
                self.body(right)
            }
            SetExpr::Values(Values { explicit_row, value_keyword, rows }) => {
                self.need(!*explicit_row && !*value_keyword, "values", "write VALUES (1), (2)")?;
                rows.iter_mut().flat_map(|row| &mut row.content).try_for_each(|value| self.condition(value))
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                let at = TextPosition::from(body.span()).or(self.at);
                Err(Refusal::new(
                    "data change",
                    at,
                    "INSERT, UPDATE, DELETE and MERGE are not allowed: a SELECT here only reads",
                ))
            }
            SetExpr::Table(_) => self.refuse("table", "write select ... from instead of TABLE"),
        }
    }

    fn select(&mut self, select: &mut Select) -> Checked {
        let Select {
            select_token,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        self.at = TextPosition::from(select_token.0.span).or(self.at);
        if let Some(into) = into {
            self.at =
                into.targets.first().map(|it| TextPosition::from(it.span())).unwrap_or_default().or(self.at);
        }
        self.need(into.is_none(), "into", "SELECT ... INTO makes a table and is not allowed")?;
        self.need(top.is_none(), "top", "TOP is not PostgreSQL: write limit 10 at the end of the SELECT")?;
        let is_plain = optimizer_hints.is_empty()
            && select_modifiers.is_none()
            && exclude.is_none()
            && lateral_views.is_empty()
            && prewhere.is_none()
            && connect_by.is_empty()
            && cluster_by.is_empty()
            && distribute_by.is_empty()
            && sort_by.is_empty()
            && qualify.is_none()
            && value_table_mode.is_none()
            && *flavor == SelectFlavor::Standard;
        self.need(is_plain, "syntax", "this SELECT has a clause that PostgreSQL does not know")?;
        self.need(!projection.is_empty(), "columns", "name at least one column after SELECT")?;
        from.iter_mut().try_for_each(|table| self.table_with_joins(table))?;
        if let Some(Distinct::On(exprs)) = distinct {
            self.exprs(&mut *exprs)?;
            exprs.iter().for_each(|term| self.conditions.term(term));
        }
        self.columns_met += projection.len();
        projection.iter_mut().try_for_each(|item| self.item(item))?;
        if *distinct == Some(Distinct::Distinct) {
            self.conditions.each_output();
        }
        match group_by {
            GroupByExpr::Expressions(exprs, modifiers) if modifiers.is_empty() => {
                self.exprs(&mut *exprs)?;
                exprs.iter().for_each(|term| self.conditions.term(term));
            }
            _ => return self.refuse("group by", "write the columns of GROUP BY one by one"),
        }
        for condition in selection.iter_mut().chain(having) {
            self.condition(condition)?;
        }
        for window in named_window {
            self.conditions.other();
            quote(&mut window.0)?;
            match &mut window.1 {
                NamedWindowExpr::NamedWindow(_) => {
                    return self.refuse("window", "write a window in brackets: window w as (order by a)");
                }
                NamedWindowExpr::WindowSpec(spec) => self.window(spec)?,
            }
        }
        Ok(())
    }

    fn item(&mut self, item: &mut SelectItem) -> Checked {
        self.output(item)?;
        self.conditions.output(item);
        Ok(())
    }

    fn output(&mut self, item: &mut SelectItem) -> Checked {
        match item {
            SelectItem::UnnamedExpr(expr) => self.expr(expr),
            SelectItem::ExprWithAlias { expr, alias } => {
                self.expr(expr)?;
                quote(alias).map(|_| ())
            }
            SelectItem::ExprWithAliases { .. } => self.refuse("alias", "a column has one name"),
            SelectItem::Wildcard(options) => self.wildcard(options),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                self.at = place(name, self.at);
                if parts(name, self.at)?.len() != 1 {
                    return self.refuse("columns", "write the table's alias before .*");
                }
                self.wildcard(options)
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _) => {
                self.refuse("columns", "only a table's alias may stand before .*")
            }
        }
    }

    fn wildcard(&mut self, options: &WildcardAdditionalOptions) -> Checked {
        let WildcardAdditionalOptions {
            wildcard_token: _,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let is_plain = opt_ilike.is_none()
            && opt_exclude.is_none()
            && opt_except.is_none()
            && opt_replace.is_none()
            && opt_rename.is_none()
            && opt_alias.is_none();
        self.need(is_plain, "columns", "nothing may follow * in PostgreSQL")
    }

    fn order_by(&mut self, OrderBy { kind, interpolate }: &mut OrderBy) -> Checked {
        self.need(interpolate.is_none(), "order by", "INTERPOLATE is not PostgreSQL")?;
        match kind {
            OrderByKind::All(_) => self.refuse("order by", "write the columns of ORDER BY one by one"),
            OrderByKind::Expressions(terms) => self.order_terms(terms),
        }
    }

    pub(super) fn order_terms(&mut self, terms: &mut [OrderByExpr]) -> Checked {
        terms.iter_mut().try_for_each(|term| self.order_term(term))
    }

    fn order_term(&mut self, OrderByExpr { expr, options, with_fill }: &mut OrderByExpr) -> Checked {
        self.expr(expr)?;
        self.conditions.term(expr);
        let is_plain = !matches!(options.sort, Some(OrderBySort::Using(_))) && with_fill.is_none();
        self.need(
            is_plain,
            "order by",
            "only ASC, DESC and NULLS FIRST or LAST may follow a term of ORDER BY",
        )
    }

    fn limit(&mut self, limit: &mut LimitClause) -> Checked {
        match limit {
            LimitClause::LimitOffset { limit, offset, limit_by } if limit_by.is_empty() => {
                let offset = offset.as_mut().map(|Offset { value, rows: _ }| value);
                for number in limit.iter_mut().chain(offset) {
                    self.expr(number)?;
                    self.conditions.number(number);
                }
                Ok(())
            }
            _ => self.refuse("limit", "write limit 10 offset 20"),
        }
    }
}
