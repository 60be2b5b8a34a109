//! `filter`: an object becomes the condition that `$filter` would spell.

use rowgate_core::problem::Code;
use rowgate_sql::request::{Comparison, Expr, Function, Literal, MAX_DEPTH, Term};

use super::{Lowered, Lowering};
use crate::api::graphql::document::selection::Selected;
use crate::api::graphql::document::value::Value;
use crate::api::graphql::error::GraphQlError;

/// Values of one filter: PostgreSQL takes 65,535 in a statement, which repeats conditions where rows stand within rows.
const MAX_VALUES: usize = 2_000;

/// What all fields of a filter ask for; `None`: nothing.
pub(super) fn expression(
    lowering: &Lowering<'_>,
    ty: &str,
    selected: &Selected<'_>,
    fields: Vec<(String, Value)>,
) -> Lowered<Option<Expr>> {
    let input = lowering.schema.field(ty, selected.name).and_then(|field| field.args.get("filter"));
    let input = input.map_or("", |input| input.ty.as_str());
    let mut filter = Filter { lowering, n_values: 0 };
    let expr = filter.all(input, fields, 0).map_err(|error| error.at(selected.pos))?;
    Ok(Some(expr).filter(|expr| *expr != Expr::All(Vec::new())))
}

/// What all operators on the value called `name` ask for.
pub(super) fn conditions(lowering: &Lowering<'_>, name: &str, fields: Vec<(String, Value)>) -> Lowered<Expr> {
    Filter { lowering, n_values: 0 }.conditions(name, fields)
}

struct Filter<'f, 'a> {
    lowering: &'f Lowering<'a>,
    n_values: usize,
}

impl Filter<'_, '_> {
    fn all(&mut self, input: &str, fields: Vec<(String, Value)>, depth: usize) -> Lowered<Expr> {
        if MAX_DEPTH < depth {
            let what = format!("the filter nests deeper than {MAX_DEPTH} levels");
            return Err(GraphQlError::new(Code::InvalidFilter, what));
        }
        let mut parts = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            parts.extend(match value {
                // null counts as absent
                Value::Null => None,
                Value::List(items) => {
                    let mut each = Vec::with_capacity(items.len());
                    for item in items {
                        if let Value::Object(fields) = item {
                            each.push(self.all(input, fields, depth + 1)?);
                        }
                    }
                    Some(match name.as_str() {
                        // no condition is the empty choice: nothing matches
                        "and" if each.is_empty() => Expr::Any(Vec::new()),
                        "and" => Expr::All(each),
                        _ => Expr::Any(each),
                    })
                }
                Value::Object(fields) if name == "not" => {
                    Some(Expr::Not(Box::new(self.all(input, fields, depth + 1)?)))
                }
                Value::Object(fields) => Some(self.field(input, name, fields, depth)?),
                _ => None,
            });
        }
        Ok(match parts.len() {
            1 => parts.swap_remove(0),
            _ => Expr::All(parts),
        })
    }

    /// Conditions on a field, or on the rows of a relationship.
    fn field(
        &mut self,
        input: &str,
        name: String,
        fields: Vec<(String, Value)>,
        depth: usize,
    ) -> Lowered<Expr> {
        let of = self.lowering.schema.input(input, &name);
        if self.lowering.schema.is_filter_of_rows(&of) {
            let inner = self.all(&of, fields, depth + 1)?;
            let inner = (inner != Expr::All(Vec::new())).then(|| Box::new(inner));
            return Ok(Expr::Related { path: name, is_all: false, inner });
        }
        self.conditions(&name, fields)
    }

    fn conditions(&mut self, name: &str, fields: Vec<(String, Value)>) -> Lowered<Expr> {
        let mut parts = Vec::with_capacity(fields.len());
        for (operator, value) in fields {
            parts.extend(self.condition(name, &operator, value)?);
        }
        Ok(match parts.len() {
            1 => parts.swap_remove(0),
            _ => Expr::All(parts),
        })
    }

    fn condition(&mut self, name: &str, operator: &str, value: Value) -> Lowered<Option<Expr>> {
        let field = || Term::Name(name.to_owned());
        let compare = |op, literal| Expr::Compare { left: field(), op, right: Term::Literal(literal) };
        let call = |function, arguments| Expr::Is(Term::Call { function, arguments });
        let lower = |term| Term::Call { function: Function::ToLower, arguments: vec![term] };
        let op = match (operator, &value) {
            (_, Value::Null) => return Ok(None),
            ("isNull", Value::Bool(true)) => return Ok(Some(compare(Comparison::Eq, Literal::Null))),
            ("isNull", _) => return Ok(Some(compare(Comparison::Ne, Literal::Null))),
            ("in", Value::List(items)) => {
                let items = items.iter().filter(|item| **item != Value::Null);
                let list: Vec<Term> =
                    items.map(|item| Ok(Term::Literal(self.constant(item)?))).collect::<Lowered<_>>()?;
                return Ok(Some(match list.is_empty() {
                    true => Expr::Any(Vec::new()),
                    false => Expr::In { left: field(), list },
                }));
            }
            ("eq", _) => Comparison::Eq,
            ("neq", _) => Comparison::Ne,
            ("gt", _) => Comparison::Gt,
            ("gte", _) => Comparison::Ge,
            ("lt", _) => Comparison::Lt,
            ("lte", _) => Comparison::Le,
            (function, value) => {
                let text = Term::Literal(self.constant(value)?);
                return Ok(Some(match function {
                    "contains" => call(Function::Contains, vec![field(), text]),
                    "notContains" => Expr::Not(Box::new(call(Function::Contains, vec![field(), text]))),
                    "icontains" => call(Function::Contains, vec![lower(field()), lower(text)]),
                    "startsWith" => call(Function::StartsWith, vec![field(), text]),
                    "endsWith" => call(Function::EndsWith, vec![field(), text]),
                    _ => return Ok(None),
                }));
            }
        };
        Ok(Some(compare(op, self.constant(&value)?)))
    }

    fn constant(&mut self, value: &Value) -> Lowered<Literal> {
        self.n_values += 1;
        if MAX_VALUES < self.n_values {
            let what = format!("the filter has more than {MAX_VALUES} values");
            return Err(GraphQlError::new(Code::InvalidFilter, what));
        }
        Ok(match value {
            Value::Bool(value) => Literal::Bool(*value),
            Value::Number(text) => Literal::Number(text.clone()),
            Value::Text(text) | Value::Enum(text) => Literal::Text(text.clone()),
            other => Literal::Text(other.json()),
        })
    }
}
