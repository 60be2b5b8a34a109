//! Calls of functions, aggregates and window functions.

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    Value, WindowFrame, WindowFrameBound, WindowSpec, WindowType,
};

use super::allowed::functions::{
    BOUNDED, GRAMMAR, IN_FROM, MAX_LENGTH, NOW, is_aggregate, is_allowed, is_long, makes_long, multiplies,
    postgres_way,
};
use super::bounded::counted::n_values;
use super::conditions::column;
use super::names::{parts, place, quote};
use super::refusal::{Checked, Refusal};
use super::walk::Walk;

/// A call without anything special.
pub(super) fn plain(name: ObjectName, args: Vec<FunctionArg>) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    }
}

/// A call that sqlparser reads as syntax and PostgreSQL as a function.
pub(super) fn of(name: &str, args: impl IntoIterator<Item = Expr>) -> Function {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    plain(ObjectName::from(Ident::new(name)), args)
}

/// The list of `all (list)`, which sqlparser reads as a function where no comparison stands before it.
pub(super) fn within_all(expr: &mut Expr) -> Option<&mut Expr> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else {
        return None;
    };
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
    let is_all = ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("all");
    match list.args.as_mut_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] if is_all => Some(list),
        _ => None,
    }
}

/// The name without its schema.
pub(super) fn name(function: &Function) -> Option<&str> {
    function.name.0.last().and_then(|it| it.as_ident()).map(|it| it.value.as_str())
}

impl Walk<'_> {
    /// Gives the function's name, which is `pg_catalog`'s from here on.
    pub(super) fn call(&mut self, function: &mut Function) -> Checked<String> {
        let Function { name, uses_odbc_syntax, parameters, args, within_group, filter, null_treatment, over } =
            function;
        self.at = place(name, self.at);
        let at = self.at;
        let is_plain =
            !*uses_odbc_syntax && *parameters == FunctionArguments::None && null_treatment.is_none();
        self.need(is_plain, "syntax", "this call has a clause that PostgreSQL does not know")?;
        let called = self.function_name(name, args)?;
        if let FunctionArguments::List(list) = args {
            self.arguments(list)?;
            if BOUNDED.contains(&called.as_str()) && !has_bounded_length(list) {
                let message = format!(
                    "the second argument of {called} is a number of at most {MAX_LENGTH}, written in the text"
                );
                return Err(Refusal::new("length", at, message));
            }
        }
        if let FunctionArguments::Subquery(query) = args {
            self.query(query)?;
        }
        if !within_group.is_empty() || over.is_some() {
            self.conditions.other();
        }
        self.order_terms(within_group)?;
        self.exprs(filter.as_deref_mut())?;
        match over {
            Some(WindowType::WindowSpec(spec)) => self.window(spec)?,
            Some(WindowType::NamedWindow(name)) => quote(name).map(|_| ())?,
            None => {}
        }
        let is_of_rows = over.is_some() || is_aggregate(&called) || IN_FROM.contains(&called.as_str());
        self.aggregates += usize::from(is_of_rows);
        let compares = ["max", "min"].contains(&called.as_str());
        self.long_calls += match args {
            FunctionArguments::List(list) if ["greatest", "least", "nullif"].contains(&called.as_str()) => {
                list.args.iter().map(n_values_of).sum()
            }
            _ => usize::from(is_long(&called) || compares),
        };
        if compares && over.is_none() && filter.is_none() {
            *filter = self.look_for(args);
        }
        self.products += usize::from(multiplies(&called));
        self.has_made |= makes_long(&called);
        self.functions.insert(called.clone());
        Ok(called)
    }

    /// The filter of `min` or `max`, which PostgreSQL may turn into a condition that the argument is not NULL. It does so for none with a
    /// filter.
    fn look_for(&mut self, args: &FunctionArguments) -> Option<Box<Expr>> {
        let column = match args {
            FunctionArguments::List(list) => match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => column(expr),
                _ => None,
            },
            _ => None,
        };
        match column {
            Some(column) => {
                self.conditions.look_for(column);
                None
            }
            None => Some(Box::new(Expr::Value(Value::Boolean(true).with_empty_span()))),
        }
    }

    fn function_name(&mut self, name: &mut ObjectName, args: &FunctionArguments) -> Checked<String> {
        let at = self.at;
        let was_quoted =
            matches!(name.0.first(), Some(ObjectNamePart::Identifier(it)) if it.quote_style.is_some());
        let parts = parts(name, at)?;
        let (called, is_qualified) = match parts.as_slice() {
            [called] => (called.clone(), false),
            [schema, called] if schema == "pg_catalog" => (called.clone(), true),
            _ => {
                let message = format!(
                    "the function {} is not allowed here: only listed functions of PostgreSQL are",
                    parts.join(".")
                );
                return Err(Refusal::new("function", at, message));
            }
        };
        let is_word = !is_qualified && !was_quoted;
        let as_word = |name: &mut ObjectName| *name = ObjectName::from(Ident::new(called.clone()));
        match args {
            FunctionArguments::None if is_word && NOW.contains(&called.as_str()) => as_word(name),
            FunctionArguments::Subquery(_) if is_word && called == "array" => as_word(name),
            FunctionArguments::List(_) if is_word && GRAMMAR.contains(&called.as_str()) => as_word(name),
            FunctionArguments::List(list)
                if is_word
                    && NOW.contains(&called.as_str())
                    && called != "current_date"
                    && list.args.len() == 1 =>
            {
                as_word(name);
            }
            FunctionArguments::List(_) if is_allowed(&called) => {
                let quoted = |name: &str| Ident::with_quote('"', name);
                *name = ObjectName::from(vec![quoted("pg_catalog"), quoted(&called)]);
            }
            _ => {
                let shown: String = called.chars().take(63).collect();
                let message = match postgres_way(&called) {
                    Some(way) => format!(
                        "{shown} is not a function of PostgreSQL that may be called here: write {way}"
                    ),
                    None => format!("the function {shown} is not allowed here"),
                };
                return Err(Refusal::new("function", at, message));
            }
        }
        Ok(called)
    }

    fn arguments(&mut self, list: &mut FunctionArgumentList) -> Checked {
        let FunctionArgumentList { duplicate_treatment, args, clauses } = list;
        if *duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            self.conditions.other();
        }
        for arg in args {
            let arg = match arg {
                FunctionArg::Named { name, arg, operator: FunctionArgOperator::RightArrow } => {
                    quote(name)?;
                    arg
                }
                FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg,
                    operator: FunctionArgOperator::RightArrow,
                } => {
                    quote(name)?;
                    arg
                }
                FunctionArg::Unnamed(arg) => arg,
                _ => return self.refuse("argument", "a named argument is written name => value"),
            };
            match arg {
                FunctionArgExpr::Expr(expr) => self.expr(expr)?,
                FunctionArgExpr::Wildcard => {}
                _ => return self.refuse("argument", "only a value or * may stand in a call"),
            }
        }
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(terms) => {
                    self.conditions.other();
                    self.order_terms(terms)?;
                }
                _ => {
                    return self.refuse("argument", "only ORDER BY may follow the arguments of an aggregate");
                }
            }
        }
        Ok(())
    }

    pub(super) fn window(&mut self, spec: &mut WindowSpec) -> Checked {
        let WindowSpec { window_name, partition_by, order_by, window_frame } = spec;
        if let Some(name) = window_name {
            quote(name)?;
        }
        self.exprs(partition_by)?;
        self.order_terms(order_by)?;
        let Some(WindowFrame { units: _, start_bound, end_bound }) = window_frame else { return Ok(()) };
        for bound in std::iter::once(start_bound).chain(end_bound.as_mut()) {
            match bound {
                WindowFrameBound::CurrentRow => {}
                WindowFrameBound::Preceding(expr) | WindowFrameBound::Following(expr) => {
                    self.exprs(expr.as_deref_mut())?;
                }
            }
        }
        Ok(())
    }
}

fn n_values_of(arg: &FunctionArg) -> usize {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => n_values(expr),
        _ => 1,
    }
}

fn has_bounded_length(list: &FunctionArgumentList) -> bool {
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(length)))) = list.args.get(1) else {
        return false;
    };
    match &length.value {
        Value::Number(digits, _) => digits.parse::<u64>().is_ok_and(|length| length <= MAX_LENGTH),
        _ => false,
    }
}
