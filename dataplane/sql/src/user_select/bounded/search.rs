//! Text search: `ts_rank`, which goes through the places of each word for each other word of the query, and the options of `ts_headline`, which
//! looks at all that it found once for each fragment that it may give.

use sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use super::given::{is_given, placeholders};
use super::{Columns, MAX_SHARES, OF_SET, set_aside};
use crate::user_select::call;
use crate::user_select::refusal::Checked;
use crate::user_select::walk::Walk;

/// Of a query that is written, in bytes: a hundred words take `ts_rank` 3 seconds beside the longest vector.
const MAX_SHORT: usize = 300;
/// Of one with prefixes, its function included.
const MAX_SHORT_OF_PREFIXES: usize = 100;
/// How much longer prefixes take, at most, as measured.
const OF_PREFIXES: u32 = 64;
/// Of the numbers in the options.
const MAX_DIGITS: usize = 3;

impl Walk<'_> {
    /// `ts_rank([weights,] vector, query [, normalization])`: the vector or the query is the second argument, the other one of the rest.
    pub(super) fn bounded_rank(&mut self, expr: &mut Expr, has_aggregate: bool) -> Checked {
        let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = expr else {
            return Ok(());
        };
        let operands: Vec<&mut Expr> = list
            .args
            .iter_mut()
            .filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            })
            .collect();
        let short: Vec<usize> =
            operands.iter().filter(|it| is_short(it)).map(|it| it.to_string().len()).collect();
        // several beside the values of one row add up
        self.shares[1] += 100 * short.iter().sum::<usize>() / MAX_SHORT;
        if self.shares[1] <= MAX_SHARES && operands.len() < short.len() + 2 {
            return Ok(());
        }
        let factor = if operands.iter().any(|it| looks_for_words(it)) { 1 } else { OF_PREFIXES };
        let Columns { values, mut sizes } = set_aside(operands, OF_SET, |_| true);
        if values.is_empty() || sizes.len() < 2 {
            return Ok(());
        }
        let second = sizes.remove(1);
        let rest = sizes.iter().map(|size| format!("coalesce({size}, 0)")).collect::<Vec<_>>().join(" + ");
        self.enclose(
            expr,
            Some(Columns { values, sizes: vec![second, format!("({factor}::BIGINT * ({rest}))")] }),
            has_aggregate,
        )
    }

    /// The last argument is the options or the query to look for: what is not written is read as the latter.
    pub(super) fn bounded_headline(&mut self, function: &mut Function) -> Checked {
        let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
        let has_configuration_and_options = 3 < list.args.len();
        if list.args.len() < 3 {
            return Ok(());
        }
        let last = match list.args.last_mut() {
            Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(last))) => last,
            _ => return self.refuse("length", "the arguments of ts_headline have no names"),
        };
        match written(last) {
            Some(options) => self.need(
                are_small(options),
                "length",
                "numbers in the options of ts_headline have at most 3 digits",
            ),
            None => {
                let message = "the options of ts_headline are written in the query, as a string";
                self.need(!has_configuration_and_options, "length", message)?;
                let query = Box::new(std::mem::replace(last, Expr::value(Value::Null)));
                let data_type = DataType::TsQuery;
                *last = Expr::Cast { kind: CastKind::Cast, expr: query, data_type, format: None };
                Ok(())
            }
        }
    }
}

fn is_short(expr: &Expr) -> bool {
    let mut parameters = Vec::new();
    placeholders(expr, &mut parameters);
    let text = expr.to_string();
    let max = if text.contains('*') { MAX_SHORT_OF_PREFIXES } else { MAX_SHORT };
    is_given(expr) && parameters.is_empty() && text.len() <= max
}

/// A query of whole words: a prefix stands for each word that begins so.
fn looks_for_words(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => looks_for_words(inner),
        Expr::Function(function) => match call::name(function) {
            Some("plainto_tsquery" | "phraseto_tsquery" | "websearch_to_tsquery") => true,
            Some("to_tsquery") => is_short(expr) && !expr.to_string().contains('*'),
            _ => false,
        },
        _ => false,
    }
}

/// The text of a string.
pub(super) fn written(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => written(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn are_small(options: &str) -> bool {
    // PostgreSQL ends an option by white space too, and reads hexadecimal numbers
    options.split(',').all(|option| {
        let option = option.trim().to_ascii_lowercase();
        let names_number = ["max", "min", "short"].iter().any(|it| option.contains(it));
        let is_plain = |(name, value): (&str, &str)| {
            let value = value.trim();
            let is_word = name.trim().chars().all(|it| it.is_ascii_alphabetic());
            is_word && value.len() <= MAX_DIGITS && value.chars().all(|it| it.is_ascii_digit())
        };
        !names_number || option.split_once('=').is_none_or(is_plain)
    })
}
