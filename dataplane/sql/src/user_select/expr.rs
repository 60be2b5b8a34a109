//! Expressions: what is not listed here is refused.

use std::mem::replace;

use sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CastKind, CeilFloorKind, DataType, DateTimeField, Expr, InTarget,
    Interval, ObjectNamePart, Query, Spanned as _, Subscript, TypedString, UnaryOperator, Value,
    ValueWithSpan,
};

use super::allowed::operators::{is_binary_allowed, is_unary_allowed};
use super::allowed::types;
use super::bounded::counted::n_values;
use super::bounded::json_path::is_json_path;
use super::call;
use super::names::{column, parts, quote};
use super::refusal::{Checked, Refusal, TextPosition};
use super::walk::Walk;

impl Walk<'_> {
    /// One that a row may be tried by.
    pub(super) fn condition(&mut self, expr: &mut Expr) -> Checked {
        self.expr(expr)?;
        self.conditions.add(expr);
        Ok(())
    }

    pub(super) fn expr(&mut self, expr: &mut Expr) -> Checked {
        let aggregates = self.aggregates;
        like_of_list(expr);
        self.parts(expr)?;
        self.bounded(expr, self.aggregates != aggregates)
    }

    fn parts(&mut self, expr: &mut Expr) -> Checked {
        match expr {
            Expr::Identifier(ident) => {
                self.at = TextPosition::from(ident.span).or(self.at);
                quote(ident)?;
                self.conditions.name_column(expr);
                Ok(())
            }
            Expr::CompoundIdentifier(parts) => {
                self.at = parts.first().map(|it| TextPosition::from(it.span)).unwrap_or_default().or(self.at);
                column(parts, self.rules)?;
                self.conditions.name_column(expr);
                Ok(())
            }
            Expr::Value(_) => self.value(expr),
            Expr::Nested(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner) => self.expr(inner),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.exprs([left.as_mut(), right.as_mut()])
            }
            Expr::Between { expr, negated: _, low, high } => self.exprs([expr.as_mut(), low, high]),
            Expr::In { expr, target, negated: _, global: false } => {
                self.expr(expr)?;
                match target {
                    InTarget::List(list) => self.exprs(list),
                    InTarget::Subquery(query) => self.query(query),
                    _ => self.refuse("in", "a list of values or a sub-select follows IN"),
                }
            }
            Expr::BinaryOp { left, op, right } => {
                self.expr(left)?;
                if !is_binary_allowed(op) {
                    return self.refuse("operator", format!("the operator {op} is not allowed here"));
                }
                self.operators.insert(op.to_string().to_lowercase());
                self.expr(right)
            }
            Expr::AnyOp { left, compare_op, right, is_some: _ } | Expr::AllOp { left, compare_op, right } => {
                self.expr(left)?;
                if !is_binary_allowed(compare_op) {
                    return self.refuse("operator", format!("the operator {compare_op} is not allowed here"));
                }
                self.operators.insert(compare_op.to_string().to_lowercase());
                self.expr(right)
            }
            Expr::UnaryOp { op, expr: inner } => {
                if !is_unary_allowed(op) {
                    return self
                        .refuse("operator", format!("the operator {op} is not allowed before a value"));
                }
                self.operators.insert(op.to_string().to_lowercase());
                // "- -1" would be written "--1", which begins a comment, and in brackets it might be another number
                if *op != UnaryOperator::Not && matches!(**inner, Expr::UnaryOp { .. }) {
                    let message = "two operators before a value need brackets: write -(-a)";
                    return Err(Refusal::new(
                        "operator",
                        TextPosition::from(inner.span()).or(self.at),
                        message,
                    ));
                }
                self.expr(inner)
            }
            Expr::Like { negated: _, any: false, expr, pattern, escape_char }
            | Expr::ILike { negated: _, any: false, expr, pattern, escape_char }
            | Expr::SimilarTo { negated: _, expr, pattern, escape_char } => {
                self.exprs([expr.as_mut(), pattern.as_mut()])?;
                self.exprs(escape_char.as_deref_mut())
            }
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                // each is compared with the operand
                self.long_calls += operand.iter().map(|it| n_values(it) * conditions.len()).sum::<usize>();
                self.exprs(operand.as_deref_mut())?;
                for when in conditions {
                    self.exprs([&mut when.condition, &mut when.result])?;
                }
                self.exprs(else_result.as_deref_mut())
            }
            Expr::Exists { subquery, negated: _ } => self.query(subquery),
            Expr::Subquery(_) => self.scalar(expr),
            Expr::Tuple(exprs) => self.exprs(exprs),
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.exprs(sets.iter_mut().flatten())
            }
            Expr::Array(Array { elem, named: _ }) => self.exprs(elem),
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expr(root)?;
                access_chain.iter_mut().try_for_each(|access| self.access(access))
            }
            Expr::AtTimeZone { timestamp, time_zone } => self.exprs([timestamp.as_mut(), time_zone.as_mut()]),
            Expr::Collate { expr, collation } => {
                self.expr(expr)?;
                let at = self.at;
                match parts(collation, at)?.as_slice() {
                    [_] => Ok(()),
                    _ => self.refuse("collation", "a collation is named without a schema, such as \"C\""),
                }
            }
            Expr::Cast { kind, expr, data_type, format } => {
                self.expr(expr)?;
                let is_known = matches!(kind, CastKind::Cast | CastKind::DoubleColon) && format.is_none();
                self.need(is_known, "cast", "write cast(a as type) or a::type")?;
                self.ty(data_type)
            }
            Expr::Convert { .. } => self.refuse_at(
                expr,
                "function",
                "CONVERT is not PostgreSQL: write cast(a as type), or to_char(a, 'format')",
            ),
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }) => {
                self.ty(data_type)?;
                match &value.value {
                    Value::SingleQuotedString(text) if !text.contains(['\'', '\\', '\0']) => Ok(()),
                    _ => self.refuse("string", "a plain string in single quotes follows the type"),
                }
            }
            Expr::Interval(interval) => self.interval(interval),
            Expr::Extract { field, syntax: _, expr } => {
                self.expr(expr)?;
                self.field(field)
            }
            Expr::Ceil { .. } | Expr::Floor { .. } | Expr::Substring { .. } => self.as_function(expr),
            Expr::Position { expr, r#in } => self.exprs([expr.as_mut(), r#in.as_mut()]),
            Expr::Trim { trim_where: _, trim_what, expr, trim_characters } => {
                self.exprs(trim_what.as_deref_mut())?;
                self.expr(expr)?;
                self.exprs(trim_characters.iter_mut().flatten())
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                self.exprs([expr.as_mut(), overlay_what, overlay_from])?;
                self.exprs(overlay_for.as_deref_mut())
            }
            Expr::Function(_) => self.function(expr),
            _ => self.refuse_at(expr, "expression", "this expression is not allowed here"),
        }
    }

    fn refuse_at(&self, expr: &Expr, rule: &'static str, message: &'static str) -> Checked {
        Err(Refusal::new(rule, TextPosition::from(expr.span()).or(self.at), message))
    }

    pub(super) fn ty(&mut self, ty: &mut DataType) -> Checked {
        let name = types::check(ty, self.at)?;
        self.n_json_paths += usize::from(is_json_path(ty));
        self.types.insert(name);
        Ok(())
    }

    fn value(&mut self, expr: &mut Expr) -> Checked {
        let Expr::Value(ValueWithSpan { value, span }) = expr else { return Ok(()) };
        self.at = TextPosition::from(*span).or(self.at);
        match value {
            Value::Number(digits, false)
                if digits.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c)) =>
            {
                Ok(())
            }
            Value::Boolean(_) | Value::Null => Ok(()),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                self.need(!text.contains('\0'), "string", "a string holds no NUL character")?;
                // one meaning whatever standard_conforming_strings says, and quotes that sqlparser writes back as they were
                let text = std::mem::take(text);
                *value = if text.contains(['\'', '\\']) {
                    Value::EscapedStringLiteral(text)
                } else {
                    Value::SingleQuotedString(text)
                };
                Ok(())
            }
            Value::Placeholder(name) => {
                // of a payloadQuery each use has the one type that is known
                if self.for_json.is_none() {
                    self.conditions.use_parameter(name);
                }
                let n = name
                    .strip_prefix('$')
                    .and_then(|n| n.parse::<usize>().ok())
                    .and_then(|n| n.checked_sub(1));
                let Some(types) = self.for_json.as_ref().map(|it| it.types) else { return Ok(()) };
                let Some(ty) = n.and_then(|n| types.get(n)) else {
                    return self.refuse("parameter", "this parameter has no type");
                };
                let data_type = ty.clone();
                let value = Box::new(replace(expr, Expr::value(Value::Null)));
                let cast = Expr::Cast { kind: CastKind::DoubleColon, expr: value, data_type, format: None };
                *expr = Expr::Nested(Box::new(cast));
                Ok(())
            }
            _ => self.refuse("string", "write strings in single quotes: 'text', or E'text' with escapes"),
        }
    }

    /// `a[1]` and `a[1:2]`. After a dot PostgreSQL would call any function of one argument: `('work_mem'::text).current_setting`.
    fn access(&mut self, access: &mut AccessExpr) -> Checked {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) => self.expr(index),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                self.exprs(lower_bound.as_mut())?;
                self.exprs(upper_bound.as_mut())
            }
            AccessExpr::Subscript(Subscript::Slice { .. }) => self.refuse("subscript", "a slice has two bounds"),
            AccessExpr::Dot(_) => {
                self.refuse("attribute", "a dot after a bracket is not allowed, since PostgreSQL could read it as a call: read the column by its table's alias")
            }
        }
    }

    fn interval(&mut self, interval: &mut Interval) -> Checked {
        let Interval { value, leading_field, leading_precision, last_field, fractional_seconds_precision } =
            interval;
        let is_text =
            matches!(value.as_ref(), Expr::Value(it) if matches!(it.value, Value::SingleQuotedString(_)));
        let is_plain = is_text && leading_precision.is_none() && fractional_seconds_precision.is_none();
        self.need(is_plain, "interval", "write an interval as a string: interval '1 day'")?;
        self.expr(value)?;
        let fields = leading_field.as_mut().into_iter().chain(last_field.as_mut());
        fields.into_iter().try_for_each(|field| self.field(field))
    }

    fn field(&mut self, field: &mut DateTimeField) -> Checked {
        match field {
            DateTimeField::Custom(ident) => quote(ident).map(|_| ()),
            DateTimeField::Week(Some(_)) => self.refuse("field", "WEEK has no argument in PostgreSQL"),
            _ => Ok(()),
        }
    }

    /// CEIL, FLOOR and SUBSTRING are functions, which PostgreSQL would look up by the search path.
    fn as_function(&mut self, expr: &mut Expr) -> Checked {
        let function = match replace(expr, Expr::value(Value::Null)) {
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                call::of("ceil", [*expr])
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                call::of("floor", [*expr])
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let from = substring_from
                    .unwrap_or_else(|| Box::new(Expr::value(Value::Number("1".to_owned(), false))));
                let rest = std::iter::once(from).chain(substring_for).map(|it| *it);
                call::of("substring", std::iter::once(*expr).chain(rest))
            }
            _ => return self.refuse("function", "CEIL and FLOOR take one value"),
        };
        *expr = Expr::Function(function);
        self.function(expr)
    }

    fn function(&mut self, expr: &mut Expr) -> Checked {
        let Expr::Function(function) = expr else { return Ok(()) };
        if self.for_json.is_some() && is_json_query(&function.name.0) {
            return self.json_query(expr);
        }
        self.call(function).map(|_| ())
    }

    /// `JSON_QUERY(a)` is a value that is embedded as JSON, in T-SQL the mark for text that holds JSON: a cast.
    fn json_query(&mut self, expr: &mut Expr) -> Checked {
        use std::mem::replace;

        use sqlparser::ast::{FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments};
        let at = TextPosition::from(expr.span()).or(self.at);
        let refusal = || {
            let message = "JSON_QUERY takes one value here, which is embedded as JSON; for a part of it write a -> 'name'";
            Refusal::new("json_query", at, message)
        };
        let Expr::Function(function) = replace(expr, Expr::value(Value::Null)) else { return Err(refusal()) };
        let is_plain =
            function.over.is_none() && function.filter.is_none() && function.within_group.is_empty();
        let FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, mut args, clauses }) =
            function.args
        else {
            return Err(refusal());
        };
        match (args.pop(), args.is_empty() && clauses.is_empty() && is_plain) {
            (Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(mut value))), true) => {
                self.expr(&mut value)?;
                *expr = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(value),
                    data_type: DataType::JSON,
                    format: None,
                };
                Ok(())
            }
            _ => Err(refusal()),
        }
    }

    /// A sub-select that is a value; with FOR JSON it becomes the translation.
    fn scalar(&mut self, expr: &mut Expr) -> Checked {
        let Expr::Subquery(query) = expr else { return Ok(()) };
        let Query { for_clause: Some(_), .. } = query.as_ref() else { return self.query(query) };
        let Some(for_json) = &self.for_json else { return self.query(query) };
        let at = TextPosition::from(query.span()).or(self.at);
        let (keys, nested) = (for_json.keys, for_json.nested);
        let Some(clause) = query.for_clause.take() else { return Ok(()) };
        let keys = keys(query, &clause)?;
        self.query(query)?;
        *expr = nested(query, &keys, &clause, at)?;
        Ok(())
    }
}

/// `a like any (list)` becomes `a ~~ any (list)`, as PostgreSQL reads it.
fn like_of_list(expr: &mut Expr) {
    use BinaryOperator as B;
    let (op, any, text, pattern) = match expr {
        Expr::Like { negated, any, expr: text, pattern, escape_char: None } => {
            (if *negated { B::PGNotLikeMatch } else { B::PGLikeMatch }, *any, text, pattern)
        }
        Expr::ILike { negated, any, expr: text, pattern, escape_char: None } => {
            (if *negated { B::PGNotILikeMatch } else { B::PGILikeMatch }, *any, text, pattern)
        }
        _ => return,
    };
    let list = if any { Some(&mut **pattern) } else { call::within_all(pattern) };
    let Some(list) = list else { return };
    let take = |of: &mut Expr| Box::new(replace(of, Expr::value(Value::Null)));
    let (right, left) = (take(list), take(text));
    *expr = match any {
        true => Expr::AnyOp { left, compare_op: op, right, is_some: false },
        false => Expr::AllOp { left, compare_op: op, right },
    };
}

fn is_json_query(name: &[ObjectNamePart]) -> bool {
    match name {
        [ObjectNamePart::Identifier(ident)] => ident.value.eq_ignore_ascii_case("json_query"),
        _ => false,
    }
}
