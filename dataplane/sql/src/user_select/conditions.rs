//! What the conditions of a statement do with columns. PostgreSQL may try a condition on a row before those of the view that the row is
//! of, which hide it; where the condition raises, the error tells of the row. So a view stands by itself only in a statement that is known to
//! raise for no row but those that it gives: one SELECT of tables, whose conditions, order and groups are columns, and whose columns are
//! worked out for rows of the result.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    BinaryOperator as B, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, InTarget,
    SelectItem, UnaryOperator as U,
};

mod constant;
#[cfg(test)]
mod tests;

use super::call;
use super::names::Relation;
use constant::{is_of_plain_type, parameter};

/// The type of a column, or what the domain is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnType {
    pub base_oid: u32,
    pub is_enum: bool,
    /// A view works it out, which may raise.
    pub is_worked_out: bool,
}

/// A column as the text names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    /// What the text calls its table.
    table: Option<String>,
    column: String,
}

/// Which columns the conditions name, as far as they compare columns, and whether there are others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    /// Something that is not looked into.
    others: bool,
    /// A column of the SELECT may raise, which is nothing as long as nothing else means it.
    may_output_raise: bool,
    /// One is `*`, whose columns are not counted here.
    has_wildcard: bool,
    /// Something may mean a column of the SELECT: a name in an order or a group, a number there, DISTINCT.
    means_output: bool,
    /// Whichever column of the SELECT it is.
    means_each: bool,
    /// Columns of the SELECT that are columns of a table.
    outputs: BTreeSet<Named>,
    /// What the text calls columns of the SELECT.
    aliases: BTreeSet<String>,
    /// Names in an order or a group.
    terms: BTreeSet<String>,
    /// Columns beside a constant, in an order or a group, or whose least or greatest value is looked for.
    compared: BTreeSet<Named>,
    /// Columns beside each other.
    joined: BTreeSet<Named>,
    /// Columns of two tables that become one.
    merged: BTreeSet<String>,
    /// What the text calls its tables, which is also the name of a row, and which of them are known.
    tables: BTreeMap<String, Option<Relation>>,
    /// Parameters that stand beside a column, with whose type PostgreSQL reads them.
    beside: BTreeSet<String>,
    /// What a view works out, but for NULLs, is worked out before such a join.
    joins_outer: bool,
    /// All names that may be columns.
    named: BTreeSet<Named>,
    /// How often the text names each parameter.
    uses: BTreeMap<String, usize>,
}

impl Conditions {
    /// Whether one may raise by what stands in a row. `types` of a name: those of the columns that it may be, of this table or of any; none if
    /// it may be something else.
    pub(super) fn may_raise(&self, types: impl Fn(Option<&Relation>, &str) -> Vec<ColumnType>) -> bool {
        // PostgreSQL reads `a.f` as `f(a)` where this table has no such column
        let types_of = |Named { table, column }: &Named| match table {
            None if self.tables.contains_key(column) => Vec::new(),
            None => types(None, column),
            Some(table) => match self.tables.get(table) {
                Some(Some(relation)) => types(Some(relation), column),
                _ => Vec::new(),
            },
        };
        let types = |name: &String| types_of(&Named { table: None, column: name.clone() });
        let is = |types: Vec<ColumnType>, is_plain: fn(ColumnType) -> bool| {
            !types.is_empty() && types.into_iter().all(is_plain)
        };
        let are = |names: &BTreeSet<Named>, is_plain| names.iter().all(|name| is(types_of(name), is_plain));
        let are_equal = |name: &String| types(name).windows(2).all(|two| two[0] == two[1]);
        let is_term = |name: &String| {
            let types = types(name);
            (self.aliases.contains(name) || !types.is_empty()) && types.into_iter().all(is_compared_totally)
        };
        let is_used_again = |parameter: &String| self.uses.get(parameter).is_some_and(|uses| 1 < *uses);
        // the row of a view is made of all that it works out
        let is_worked_out = |name: &Named| {
            let types = types_of(name);
            types.is_empty() || types.iter().any(|ty| ty.is_worked_out)
        };
        self.others
            || self.joins_outer && (self.has_wildcard || self.named.iter().any(is_worked_out))
            || self.means_each && self.has_wildcard
            || self.means_output && (self.may_output_raise || !are(&self.outputs, is_compared_totally))
            || !self.terms.iter().all(is_term)
            || self.beside.iter().any(is_used_again)
            || !are(&self.compared, is_compared_totally)
            || !are(&self.joined, is_joined_totally)
            || !self.merged.iter().all(|name| is(types(name), is_joined_totally))
            || !self.merged.iter().all(are_equal)
    }

    /// What the text calls a table, or something else: `None`.
    pub(super) fn name_table(&mut self, name: &str, relation: Option<&Relation>) {
        let known = self.tables.entry(name.to_owned()).or_insert_with(|| relation.cloned());
        if known.as_ref() != relation {
            *known = None;
        }
    }

    /// A name that may mean the row of a table.
    pub(super) fn name_row(&mut self, name: &str) {
        self.tables.entry(name.to_owned()).or_insert(None);
    }

    pub(super) fn use_parameter(&mut self, name: &str) {
        *self.uses.entry(name.to_owned()).or_default() += 1;
    }

    pub(super) fn join_outer(&mut self) {
        self.joins_outer = true;
    }

    /// What may be a column.
    pub(super) fn name_column(&mut self, expr: &Expr) {
        self.named.extend(column(expr));
    }

    /// The argument of `min` or `max`: PostgreSQL may look for the row with the least or greatest value that is not NULL.
    pub(super) fn look_for(&mut self, column: Named) {
        self.compared.insert(column);
    }

    /// Of USING.
    pub(super) fn join(&mut self, name: &str) {
        self.merged.insert(name.to_owned());
    }

    /// Something that is not looked into: sub-selects, functions in FROM, windows.
    pub(super) fn other(&mut self) {
        self.others = true;
    }

    /// A column of the SELECT.
    pub(super) fn output(&mut self, item: &SelectItem) {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            self.has_wildcard = true;
            return;
        };
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            self.aliases.insert(alias.value.clone());
        }
        match (column(expr), expr) {
            (Some(name), _) => drop(self.outputs.insert(name)),
            (None, Expr::Value(_)) => {}
            (None, Expr::Function(function)) if is_aggregate_of_columns(function) => {}
            _ => self.may_output_raise = true,
        }
    }

    /// A term of an ORDER BY or GROUP BY.
    pub(super) fn term(&mut self, term: &Expr) {
        match term {
            Expr::Nested(inner) => self.term(inner),
            // the number of a column
            Expr::Value(_) => self.each_output(),
            Expr::Identifier(name) => {
                self.means_output = true;
                self.terms.insert(name.value.clone());
            }
            Expr::Function(function) if is_aggregate_of_columns(function) => {}
            _ => match column(term) {
                Some(name) => drop(self.compared.insert(name)),
                None => self.other(),
            },
        }
    }

    /// Whichever column of the SELECT is meant, or all of them.
    pub(super) fn each_output(&mut self) {
        self.means_output = true;
        self.means_each = true;
    }

    /// Of LIMIT and OFFSET.
    pub(super) fn number(&mut self, expr: &Expr) {
        self.others |= !matches!(expr, Expr::Value(_));
    }

    /// A condition. Its names are quoted as PostgreSQL folds them.
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
            | Expr::IsNotUnknown(inner) => self.add(inner),
            Expr::BinaryOp { left, op, right } if is_ordering(op) => self.pair(left, right),
            Expr::AnyOp { left, compare_op: op, right, is_some: _ }
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
            Expr::Value(_) => {}
            _ => match column(expr) {
                Some(name) => drop(self.compared.insert(name)),
                None => self.other(),
            },
        }
    }

    fn pair(&mut self, left: &Expr, right: &Expr) {
        match (left, right) {
            (Expr::Nested(left), right) => return self.pair(left, right),
            (left, Expr::Nested(right)) => return self.pair(left, right),
            (Expr::Tuple(left), Expr::Tuple(right)) if left.len() == right.len() => {
                // one within another is a record, which is compared as a whole
                self.others |= left.iter().chain(right).any(is_tuple);
                return left.iter().zip(right).for_each(|(left, right)| self.pair(left, right));
            }
            _ => {}
        }
        // PostgreSQL works it out for rows of the result, and a condition with one is tried on nothing else
        let is_aggregate = |expr: &Expr| matches!(expr, Expr::Function(it) if is_aggregate_of_columns(it));
        match (column(left), column(right)) {
            (Some(left), Some(right)) => self.joined.extend([left, right]),
            (Some(column), None) if is_of_plain_type(right) => self.compare(column, right),
            (None, Some(column)) if is_of_plain_type(left) => self.compare(column, left),
            (None, None) if is_aggregate(left) && is_of_plain_type(right) => {}
            (None, None) if is_of_plain_type(left) && is_aggregate(right) => {}
            _ => self.other(),
        }
    }

    fn compare(&mut self, column: Named, constant: &Expr) {
        self.compared.insert(column);
        if let Some(name) = parameter(constant) {
            // one that is written once may be compared several times: @x between a and b
            self.others |= !self.beside.insert(name.to_owned());
        }
    }
}

fn is_tuple(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_tuple(inner),
        _ => matches!(expr, Expr::Tuple(_)),
    }
}

/// The name of a column. PostgreSQL may find a table of this name, or a function: which is why the types of columns are asked for.
pub(super) fn column(expr: &Expr) -> Option<Named> {
    let name = |ident: &Ident| ident.value.clone();
    match expr {
        Expr::Nested(inner) => column(inner),
        Expr::Identifier(column) => Some(Named { table: None, column: name(column) }),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., table, column] => Some(Named { table: Some(name(table)), column: name(column) }),
            _ => None,
        },
        _ => None,
    }
}

/// An aggregate of columns, by whose order PostgreSQL sorts nothing.
fn is_aggregate_of_columns(function: &Function) -> bool {
    const AGGREGATES: &[&str] = &["avg", "bool_and", "bool_or", "count", "every", "max", "min", "sum"];
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => column(expr).is_some(),
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => true,
        _ => false,
    };
    function.over.is_none()
        && function.filter.is_none()
        && list.duplicate_treatment.is_none()
        && list.clauses.is_empty()
        && call::name(function).is_some_and(|name| AGGREGATES.contains(&name))
        && list.args.iter().all(is_plain)
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

fn is_compared_totally(ty: ColumnType) -> bool {
    !ty.is_worked_out && (ty.is_enum || COMPARED.contains(&ty.base_oid))
}

fn is_joined_totally(ty: ColumnType) -> bool {
    !ty.is_worked_out && JOINED.contains(&ty.base_oid)
}
