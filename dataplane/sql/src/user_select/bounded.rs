//! What PostgreSQL does not look up from: functions and operators that take as long as two of their values are long, one times the other,
//! and that no deadline ends. `translate` of two texts of a megabyte takes hours. One of the two is short as it is written, or the sizes
//! of both are looked at first; `docs/decisions/query-sessions.md` has which these are and how they were found.

use std::mem::replace;

use sqlparser::ast::{
    BinaryOperator as B, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SelectItem,
    SetExpr,
};

pub(super) mod counted;
mod given;
pub(crate) mod json_path;
mod search;

use super::allowed::functions::IN_FROM;
use super::call;
use super::refusal::Checked;
use super::walk::Walk;
use given::{is_given, is_of_given, is_scalar, is_stored, placeholders};

/// The sizes of two values in bytes, one times the other: 3 seconds of `strpos`.
const MAX_PRODUCT: u64 = 500_000_000;
/// Of a value that is written in the text, or given for a parameter, beside a text of any length. In bytes.
const MAX_SHORT: usize = 1_000;
/// Likewise beside an array or `jsonb`.
const MAX_SHORT_SET: usize = 10_000;
/// Beside what the statement itself makes, and may make of hundreds of megabytes, so many times less.
const SHORTER: usize = 33;
/// Of all that is short in a statement, in hundredths of what one may have.
const MAX_SHARES: usize = 200;

/// Names of the operands once they are worked out.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// How PostgreSQL says how large a value is.
#[derive(Clone, Copy)]
struct Size {
    function: &'static str,
    max_short: usize,
}

const OF_TEXT: Size = Size { function: "octet_length", max_short: MAX_SHORT };
/// Of a value from a table it is the size as it is stored, which may be compressed.
const OF_SET: Size = Size { function: "pg_column_size", max_short: MAX_SHORT_SET };

/// Functions whose first argument is gone through for each part of the second.
const BY_SECOND: &[&str] = &[
    "btrim",
    "ltrim",
    "position",
    "replace",
    "rtrim",
    "split_part",
    "string_to_array",
    "string_to_table",
    "strpos",
    "to_date",
    "to_number",
    "to_timestamp",
    "translate",
];

impl Walk<'_> {
    /// The expression, once the sizes of its operands were looked at where they may be large. `has_aggregate`: one of them is made of rows.
    pub(super) fn bounded(&mut self, expr: &mut Expr, has_aggregate: bool) -> Checked {
        self.long_calls += if is_given(expr) { 0 } else { counted::n_long(expr) };
        self.products += usize::from(counted::is_product(expr));
        match expr {
            Expr::Like { expr: text, pattern, escape_char, .. }
            | Expr::ILike { expr: text, pattern, escape_char, .. } => {
                let mut operands = vec![&mut **text, &mut **pattern];
                operands.extend(escape_char.as_deref_mut());
                let columns = self.columns(operands, OF_TEXT)?;
                self.enclose(expr, columns, has_aggregate)
            }
            Expr::BinaryOp { left: _, op: B::Minus, right } => self.not_an_array(right),
            Expr::BinaryOp { op: B::AtQuestion | B::AtAt, .. } => self.bounded_json_path(expr, has_aggregate),
            Expr::BinaryOp { left, op, right } => {
                let Some(size) = size_for(op) else { return Ok(()) };
                let columns = self.columns(vec![&mut **left, &mut **right], size)?;
                self.enclose(expr, columns, has_aggregate)
            }
            Expr::AnyOp { compare_op: op, left, right, .. } | Expr::AllOp { compare_op: op, left, right } => {
                let is_of_rows = matches!(**right, Expr::Subquery(_));
                let is_stored = !self.makes_values && is_stored(left);
                let Some(size) = size_for(op) else {
                    // the rows of a query are ones between which PostgreSQL looks up, and equality begins with the lengths
                    let is_quick = is_stored || matches!(op, B::Eq | B::NotEq);
                    if is_of_rows || is_quick && is_of_given(right) {
                        return Ok(());
                    }
                    let columns = self.columns(vec![&mut **left, &mut **right], OF_SET)?;
                    return self.enclose(expr, columns, has_aggregate);
                };
                let message = "beside any and all such an operator needs a list that is written in the query, or given for a parameter";
                let is_short = self.is_short(right, size, true)?;
                self.need(is_short, "length", message)?;
                let columns =
                    (!is_stored).then(|| set_aside(vec![&mut **left, &mut **right], OF_SET, |_| true));
                self.enclose(expr, columns, has_aggregate)
            }
            Expr::Position { expr: part, r#in } => {
                let columns = self.columns(vec![&mut **r#in, &mut **part], OF_TEXT)?;
                self.enclose(expr, columns, has_aggregate)
            }
            Expr::Trim { expr: text, trim_what, trim_characters, .. } => {
                let mut operands = vec![&mut **text];
                operands.extend(trim_what.as_deref_mut());
                operands.extend(trim_characters.iter_mut().flatten());
                let columns = self.columns(operands, OF_TEXT)?;
                self.enclose(expr, columns, has_aggregate)
            }
            Expr::Function(function) if gives_rows(function) => self.bounded_in_from(function),
            Expr::Function(function) if call::name(function).is_some_and(json_path::takes_one) => {
                self.bounded_json_path(expr, has_aggregate)
            }
            Expr::Function(function) if call::name(function) == Some("ts_rank") => {
                self.bounded_rank(expr, has_aggregate)
            }
            Expr::Function(function) if call::name(function) == Some("ts_headline") => {
                self.bounded_headline(function)
            }
            Expr::Function(function) => {
                let Some(operands) = long_arguments(function) else { return Ok(()) };
                let columns = self.columns(operands, OF_TEXT)?;
                self.enclose(expr, columns, has_aggregate)
            }
            _ => Ok(()),
        }
    }

    /// As [`Walk::bounded`], of a function in FROM, whose arguments no sub-select may stand for.
    pub(super) fn bounded_in_from(&mut self, function: &mut Function) -> Checked {
        if call::name(function).is_some_and(json_path::takes_one) {
            return self.short_json_path(function);
        }
        let Some(operands) = long_arguments(function) else { return Ok(()) };
        let message = "the second argument of a function that gives rows is written in the query, or given for a parameter";
        let [first, second, ..] = operands.as_slice() else { return Ok(()) };
        let is_stored = !self.makes_values && is_stored(first);
        let is_short = self.is_short(second, OF_TEXT, is_stored)?;
        self.need(is_short, "length", message)
    }

    /// Puts columns of a sub-select in place of the operands; `None`: the second one is short, or there is none.
    fn columns(&mut self, operands: Vec<&mut Expr>, size: Size) -> Checked<Option<Columns>> {
        let [first, second, ..] = operands.as_slice() else { return Ok(None) };
        let is_stored = !self.makes_values && is_stored(first);
        if self.is_short(second, size, is_stored)? {
            return Ok(None);
        }
        let is_long = size.max_short < second.to_string().len() || is_given(first);
        let is_aside = size.max_short == MAX_SHORT && is_long;
        let mut columns = set_aside(operands, size, |i| i != 1 || !is_aside);
        columns.sizes.truncate(2);
        let message = "this constant is too long here: give it for a parameter";
        self.need(!columns.values.is_empty(), "length", message)?;
        Ok(Some(columns))
    }

    fn enclose(&mut self, expr: &mut Expr, columns: Option<Columns>, has_aggregate: bool) -> Checked {
        let Some(Columns { values, sizes }) = columns else { return Ok(()) };
        let message = "beside a value that is not written in the query this needs one of a row: work out the aggregate, the window function or the function that gives rows in a sub-select";
        self.need(!has_aggregate, "length", message)?;
        let [a, b] = sizes.as_slice() else { return Ok(()) };
        // PostgreSQL raises 54000 for a text that is too long for any; of a constant it would do so while it plans
        let text = format!(
            "(SELECT {expr} FROM (SELECT {} OFFSET 0) AS \"sized\" WHERE CASE WHEN coalesce({a}::BIGINT * {b}, 0) <= {MAX_PRODUCT} THEN true \
             ELSE \"pg_catalog\".\"repeat\"(' ', least(1073741823::BIGINT + coalesce({a}, 0) + coalesce({b}, 0), 2147483647)::INT) IS NULL END)",
            values.join(", ")
        );
        *expr = self.read_again(&text)?;
        Ok(())
    }

    /// The right side of `-`, which PostgreSQL refuses to read if it is an array: `jsonb - text[]` looks through the array for each part of the
    /// `jsonb`. What is never worked out here is gone once the statement is planned.
    fn not_an_array(&mut self, right: &mut Expr) -> Checked {
        if is_scalar(right) {
            return Ok(());
        }
        let value = right.to_string();
        let message = "what follows - is long: work it out in a sub-select";
        self.need(value.len() <= MAX_SHORT, "length", message)?;
        let text = format!(
            "(CASE WHEN false AND \"pg_catalog\".\"textanycat\"('', {value}) IS NULL THEN NULL ELSE {value} END)"
        );
        *right = self.read_again(&text)?;
        Ok(())
    }

    /// Written in the text, or to be given for parameters that are looked at then. `is_stored`: what it stands beside is.
    fn is_short(&mut self, expr: &Expr, size: Size, is_stored: bool) -> Checked<bool> {
        let max_short = if is_stored { size.max_short } else { size.max_short / SHORTER };
        if !is_given(expr) || max_short < expr.to_string().len() {
            return Ok(false);
        }
        let mut parameters = Vec::new();
        placeholders(expr, &mut parameters);
        // several beside the values of one row add up
        let share = &mut self.shares[usize::from(!is_stored)];
        *share += 100 * expr.to_string().len() / max_short + 10 * parameters.len();
        if MAX_SHARES < *share {
            return Ok(false);
        }
        // of a payloadQuery they are values of a row
        if (self.for_json.is_some() || !is_stored) && !parameters.is_empty() {
            return Ok(false);
        }
        // they may all be as long, and one may stand there several times
        let each = max_short / parameters.len().max(1);
        for parameter in parameters {
            let max = self.short.entry(parameter).or_insert(each);
            *max = each.min(*max);
        }
        Ok(true)
    }

    fn read_again(&self, text: &str) -> Checked<Expr> {
        let query =
            super::parser().try_with_sql(&format!("SELECT {text}")).and_then(|mut it| it.parse_query());
        let body = query.ok().map(|query| query.body);
        match body.map(|it| *it) {
            Some(SetExpr::Select(mut select)) => match select.projection.pop() {
                Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
                _ => self.refuse("nesting", "this stands too deep within the query"),
            },
            _ => self.refuse("nesting", "this stands too deep within the query"),
        }
    }
}

struct Columns {
    /// The operands under their names.
    values: Vec<String>,
    /// The sizes of the two that count.
    sizes: Vec<String>,
}

/// Puts columns of a sub-select in place of the operands, but for what is given, whose type is found by what it stands beside, as far as the
/// operand of this number may stay (`may_stay`): a long constant would be worked out while planning.
fn set_aside(operands: Vec<&mut Expr>, size: Size, may_stay: impl Fn(usize) -> bool) -> Columns {
    let mut columns = Columns { values: Vec::new(), sizes: Vec::new() };
    for (i, (operand, name)) in operands.into_iter().zip(NAMES).enumerate() {
        let operand = within_collation(operand);
        if !is_given(operand) || !may_stay(i) {
            let ident = |name| Ident::with_quote('"', name);
            let column = Expr::CompoundIdentifier(vec![ident("sized"), ident(name)]);
            let value = replace(operand, column);
            columns.values.push(format!("{value} AS \"{name}\""));
        }
        columns.sizes.push(format!("\"pg_catalog\".\"{}\"({operand})", size.function));
    }
    columns
}

fn size_for(op: &B) -> Option<Size> {
    match op {
        B::PGLikeMatch | B::PGILikeMatch | B::PGNotLikeMatch | B::PGNotILikeMatch => Some(OF_TEXT),
        B::PGOverlap | B::AtArrow | B::ArrowAt | B::QuestionAnd | B::QuestionPipe => Some(OF_SET),
        _ => None,
    }
}

/// The arguments, where the second one counts.
fn long_arguments(function: &mut Function) -> Option<Vec<&mut Expr>> {
    let name = call::name(function)?.to_owned();
    let FunctionArguments::List(list) = &mut function.args else { return None };
    if !BY_SECOND.contains(&name.as_str()) || list.args.len() < 2 || NAMES.len() < list.args.len() {
        return None;
    }
    let arguments = list.args.iter_mut().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. } => Some(expr),
        _ => None,
    });
    Some(arguments.collect())
}

/// A collation that is written holds for what stands beside, which one of a sub-select's column would not.
fn within_collation(expr: &mut Expr) -> &mut Expr {
    match expr {
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => within_collation(inner),
        other => other,
    }
}

fn gives_rows(function: &Function) -> bool {
    call::name(function).is_some_and(|name| IN_FROM.contains(&name))
}
