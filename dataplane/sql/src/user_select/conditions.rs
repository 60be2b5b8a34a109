//! What the conditions of a statement do with columns. PostgreSQL may try a condition on a row before those of the view that the row is
//! of, which hide it; where the condition raises, the error tells of the row. So all of a SELECT counts as a condition but what is
//! worked out for rows that a view has given: the columns of the outermost SELECT, and the results of aggregates.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    BinaryOperator as B, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, InTarget,
    Query, SelectItem, SetExpr, UnaryOperator as U, Value,
};

use crate::catalog::{FieldType, TypeKind};

mod constant;
#[cfg(test)]
mod tests;

use constant::{is_constant, is_of_plain_type};

/// Which columns the conditions name, as far as they compare columns, and whether there are others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    /// What is not known to raise for no value.
    others: bool,
    /// Beside a constant, or in an order or a group.
    compared: BTreeSet<String>,
    /// Beside each other.
    joined: BTreeSet<String>,
    /// Names that the text gives itself, which may be those of values that were worked out.
    given: BTreeSet<String>,
    /// Parameters that stand beside a column, with whose type PostgreSQL reads them.
    beside: BTreeSet<String>,
    /// How often the text names each parameter.
    uses: BTreeMap<String, usize>,
}

/// Whether a name may be that of a column of the SELECT.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ByName {
    Yes,
    No,
}

/// A column of a SELECT, as its ORDER BY finds it.
enum Output {
    Column(String),
    /// It raises for no row that the SELECT does not give.
    Total,
    Other,
}

/// Aggregates, which PostgreSQL works out for rows that it was given.
const AGGREGATES: &[&str] =
    &["avg", "bool_and", "bool_or", "count", "every", "max", "min", "string_agg", "sum"];

impl Conditions {
    /// Whether one may raise by what stands in a row. `types` of a name: those of the columns that it may be, none if it may be something else.
    pub(super) fn may_raise<'t>(&self, types: impl Fn(&str) -> Vec<&'t FieldType>) -> bool {
        let are = |names: &BTreeSet<String>, is_plain: fn(&FieldType) -> bool| {
            names.iter().all(|name| {
                let types = types(name);
                !self.given.contains(name) && !types.is_empty() && types.into_iter().all(is_plain)
            })
        };
        let is_used_again = |parameter: &String| self.uses.get(parameter).is_some_and(|uses| 1 < *uses);
        self.others
            || self.beside.iter().any(is_used_again)
            || !are(&self.compared, is_compared_totally)
            || !are(&self.joined, is_joined_totally)
    }

    pub(super) fn give(&mut self, name: &str) {
        self.given.insert(name.to_owned());
    }

    pub(super) fn use_parameter(&mut self, name: &str) {
        *self.uses.entry(name.to_owned()).or_default() += 1;
    }

    pub(super) fn join(&mut self, name: &str) {
        self.joined.insert(name.to_owned());
    }

    /// A column of a SELECT within the statement, which what stands around it may make a condition of.
    pub(super) fn output(&mut self, expr: &Expr) {
        match expr {
            // what stands around it names it
            _ if is_column(expr) => {}
            Expr::Function(function) if is_total_aggregate(function) => {
                function
                    .name
                    .0
                    .last()
                    .and_then(|it| it.as_ident())
                    .into_iter()
                    .for_each(|it| self.give(&it.value));
            }
            _ => self.add(expr),
        }
    }

    /// Something that is not looked into.
    pub(super) fn other(&mut self) {
        self.others = true;
    }

    /// A condition, or a value that one may be made of. Its names are quoted as PostgreSQL folds them; its sub-selects are looked at by
    /// themselves.
    pub(super) fn add(&mut self, expr: &Expr) {
        match expr {
            Expr::Nested(inner) => self.add(inner),
            Expr::UnaryOp { op: U::Not, expr } => self.add(expr),
            Expr::BinaryOp { left, op: B::And | B::Or, right } => {
                self.add(left);
                self.add(right);
            }
            Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner) => {
                // no function of the column's type looks at it
                if column(inner).is_none() {
                    self.add(inner);
                }
            }
            Expr::BinaryOp { left, op, right }
            | Expr::AnyOp { left, compare_op: op, right, is_some: _ }
            | Expr::AllOp { left, compare_op: op, right }
                if is_ordering(op) =>
            {
                self.pair(left, right);
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.pair(left, right);
            }
            Expr::Between { expr, negated: _, low, high } => {
                self.pair(expr, low);
                self.pair(expr, high);
            }
            Expr::In { expr, target: InTarget::List(list), .. } => {
                list.iter().for_each(|value| self.pair(expr, value));
            }
            Expr::In { expr, target: InTarget::Subquery(query), .. } => match only_column(query) {
                Some(within) => self.pair(expr, within),
                None => self.other(),
            },
            Expr::Exists { .. } => {}
            Expr::Function(function) if is_total_aggregate(function) => {}
            _ if is_constant(expr) => {}
            _ => match column(expr) {
                Some(name) => drop(self.compared.insert(name.to_owned())),
                None => self.other(),
            },
        }
    }

    fn pair(&mut self, left: &Expr, right: &Expr) {
        match (left, right) {
            (Expr::Nested(left), right) => return self.pair(left, right),
            (left, Expr::Nested(right)) => return self.pair(left, right),
            (Expr::Tuple(left), Expr::Tuple(right)) if left.len() == right.len() => {
                return left.iter().zip(right).for_each(|(left, right)| self.pair(left, right));
            }
            _ => {}
        }
        let is_aggregate = |expr: &Expr| matches!(expr, Expr::Function(it) if is_total_aggregate(it));
        match (column(left), column(right)) {
            (Some(left), Some(right)) => self.joined.extend([left, right].map(str::to_owned)),
            (Some(column), None) if is_of_plain_type(right) => self.compare(column, right),
            (None, Some(column)) if is_of_plain_type(left) => self.compare(column, left),
            (None, None) if is_constant(left) && is_constant(right) => {}
            (None, None) if is_aggregate(left) && is_of_plain_type(right) => {}
            (None, None) if is_of_plain_type(left) && is_aggregate(right) => {}
            _ => self.other(),
        }
    }

    fn compare(&mut self, column: &str, constant: &Expr) {
        self.compared.insert(column.to_owned());
        if let Expr::Value(value) = constant
            && let Value::Placeholder(name) = &value.value
        {
            self.beside.insert(name.clone());
        }
    }

    /// A term of an ORDER BY or GROUP BY. `columns`: of its SELECT, where a number means one of them.
    pub(super) fn term(&mut self, term: &Expr, columns: Option<&[SelectItem]>, by_name: ByName) {
        let columns = columns.unwrap_or_default();
        let found = match term {
            Expr::Value(value) => match &value.value {
                Value::Number(n, _) => {
                    let n = n.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                    n.and_then(|n| columns.get(n))
                }
                _ => None,
            },
            Expr::Identifier(name) if by_name == ByName::Yes => columns
                .iter()
                .find(|it| matches!(it, SelectItem::ExprWithAlias { alias, .. } if *alias == *name)),
            _ => None,
        };
        match (found.map(output), term) {
            (Some(Output::Column(name)), _) => drop(self.compared.insert(name)),
            (Some(Output::Total), _) => {}
            (Some(Output::Other), _) | (None, Expr::Value(_)) => self.other(),
            (None, _) => self.add(term),
        }
    }

    /// A function in FROM, which is called for rows of what stands before it.
    pub(super) fn call(&mut self, function: &Function) {
        let is_named = |name: &str| {
            function.name.0.last().and_then(|it| it.as_ident()).is_some_and(|it| it.value == name)
        };
        let FunctionArguments::List(list) = &function.args else { return self.other() };
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if is_constant(expr) => {}
                // it raises for no array
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
                    if is_named("unnest") && is_column(expr) => {}
                _ => self.other(),
            }
        }
    }

    /// DISTINCT compares what the SELECT gives.
    pub(super) fn distinct(&mut self, columns: &[SelectItem]) {
        for item in columns {
            match output(item) {
                Output::Column(name) => drop(self.compared.insert(name)),
                Output::Total => {}
                Output::Other => self.other(),
            }
        }
    }
}

/// The name of a column. PostgreSQL may find a table of this name, or a function: which is why the types of columns are asked for.
fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => column(inner),
        Expr::Identifier(Ident { value, .. }) => Some(value),
        Expr::CompoundIdentifier(parts) => parts.last().map(|it| it.value.as_str()),
        _ => None,
    }
}

pub(super) fn is_column(expr: &Expr) -> bool {
    column(expr).is_some()
}

fn output(item: &SelectItem) -> Output {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return Output::Other;
    };
    match (column(expr), expr) {
        (Some(name), _) => Output::Column(name.to_owned()),
        (None, Expr::Function(function)) if is_total_aggregate(function) => Output::Total,
        _ if is_constant(expr) => Output::Total,
        _ => Output::Other,
    }
}

/// The column that a SELECT gives, if it gives nothing else.
fn only_column(query: &Query) -> Option<&Expr> {
    match &*query.body {
        SetExpr::Select(select) => match select.projection.as_slice() {
            [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] if is_column(expr) => {
                Some(expr)
            }
            _ => None,
        },
        _ => None,
    }
}

/// An aggregate of columns.
fn is_total_aggregate(function: &Function) -> bool {
    let is_named = |it: &sqlparser::ast::ObjectNamePart| {
        it.as_ident().is_some_and(|it| AGGREGATES.contains(&it.value.as_str()))
    };
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => is_column(expr) || is_constant(expr),
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => true,
        _ => false,
    };
    function.over.is_none() && function.name.0.last().is_some_and(is_named) && list.args.iter().all(is_plain)
}

fn is_ordering(op: &B) -> bool {
    matches!(op, B::Gt | B::Lt | B::GtEq | B::LtEq | B::Eq | B::NotEq)
}

/// Of `boolean`, `bytea`, `name`, `bigint`, `smallint`, `integer`, `text`, `cidr`, `real`, `double precision`, `macaddr`, `inet`,
/// `character`, `character varying`, `date`, `time`, `timestamp`, `timestamptz`, `interval`, `numeric` and `uuid`.
const COMPARED: &[u32] = &[
    16, 17, 19, 20, 21, 23, 25, 650, 700, 701, 829, 869, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950,
];

/// Two of them beside each other are cast to no type whose range is smaller, and have no collation.
const JOINED: &[u32] = &[16, 17, 20, 21, 23, 1082, 1083, 1114, 1184, 1186, 1700, 2950];

fn is_compared_totally(ty: &FieldType) -> bool {
    ty.kind == TypeKind::Enum || COMPARED.contains(&ty.base_oid)
}

fn is_joined_totally(ty: &FieldType) -> bool {
    JOINED.contains(&ty.base_oid)
}
