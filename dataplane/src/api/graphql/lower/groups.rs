//! `groupBy` of a list: rows with equal values, and what they come to.

use rowgate_core::name::EntityName;
use rowgate_core::problem::Code;
use rowgate_sql::query::{Query, Selected as Member};
use rowgate_sql::request::{AggregateFunction, Aggregation, Expr, GroupRequest, ReadRequest};
use rowgate_sql::resolve;

use super::{FieldContext, Lowered, Lowering, filter};
use crate::api::graphql::document::selection::{Selected, collect};
use crate::api::graphql::document::value::{Value, json_text};
use crate::api::graphql::error::GraphQlError;

/// Groups where the document does not say how many.
const DEFAULT_FIRST: i64 = 1_000;

/// A member of a group's object, before the aggregates have numbers that the query knows.
enum Part<'d> {
    Constant(String),
    /// The values that the rows share, by key and field.
    Fields(Vec<(String, Result<&'d str, String>)>),
    /// Aggregates by key and number.
    Aggregations(Vec<(String, Result<usize, String>)>),
}

impl<'a> Lowering<'a> {
    /// The groups of the rows that `request` finds.
    pub(super) fn groups(
        &mut self,
        entity: &EntityName,
        request: &ReadRequest,
        part: &Selected<'a>,
        context: &FieldContext,
    ) -> Lowered<Query> {
        let context = context.within(part.key);
        let ty = self.schema.type_of(entity);
        let (mut by, mut first) = (Vec::new(), None);
        for (name, value) in self.arguments(&format!("{ty}Connection"), part)? {
            match (name.as_str(), value) {
                ("fields", Value::List(items)) => by.extend(items.iter().map(super::text_of)),
                ("first", Value::Number(text)) => first = text.parse().ok(),
                _ => {}
            }
        }
        let mut groups = GroupRequest {
            by,
            aggregations: Vec::new(),
            filter: request.filter.clone(),
            having: None,
            orderby: Vec::new(),
            first: first.or(Some(DEFAULT_FIRST.min(self.catalog.limits.max_page_size.into()))),
            after: None,
        };
        let mut having = Vec::new();
        let mut parts = Vec::new();
        for selected in collect(&self.operation.document, &part.sets, self.variables)? {
            let member = match selected.name {
                "fields" => Part::Fields(self.keys(ty, &selected, &groups.by, &context)?),
                "aggregations" => {
                    Part::Aggregations(self.aggregations(ty, &selected, &mut groups, &mut having)?)
                }
                _ => Part::Constant(json_text(&format!("{ty}Group"))),
            };
            parts.push((selected.key.to_owned(), member));
        }
        groups.having = (!having.is_empty()).then_some(Expr::All(having));
        let query = resolve::groups(self.catalog, self.scope(), entity, &groups, self.cursors);
        let query = query.map_err(|refusal| self.refused(entity, refusal, part.pos, &context))?;
        self.count_list(query.take, part.pos, &context)?;
        let field = |name: &str| query.entity.fields.iter().position(|field| field.name == name);
        let member = |(name, part)| match part {
            Part::Constant(json) => Some(Member::Constant { name, json }),
            Part::Fields(keys) => {
                let of = |(name, key): (String, Result<&str, String>)| match key {
                    Ok(key) => Some(Member::Alias { name, field: field(key)? }),
                    Err(json) => Some(Member::Constant { name, json }),
                };
                Some(Member::Object { name, select: keys.into_iter().map(of).collect::<Option<_>>()? })
            }
            Part::Aggregations(aggregates) => {
                let of = |(name, number)| match number {
                    Ok(number) => Member::Aggregate { name, number },
                    Err(json) => Member::Constant { name, json },
                };
                Some(Member::Object { name, select: aggregates.into_iter().map(of).collect() })
            }
        };
        let select: Option<Vec<Member>> = parts.into_iter().map(member).collect();
        let select =
            select.ok_or_else(|| GraphQlError::new(Code::Internal, "a key of a group is no field"))?;
        // whole: more groups than are taken are no answer
        Ok(Query { select, binding: None, ..query })
    }

    fn keys(
        &self,
        ty: &str,
        selected: &Selected<'a>,
        by: &[String],
        context: &FieldContext,
    ) -> Lowered<Vec<(String, Result<&'a str, String>)>> {
        let mut keys = Vec::new();
        for key in collect(&self.operation.document, &selected.sets, self.variables)? {
            let of = match key.name {
                "__typename" => Err(json_text(&format!("{ty}GroupFields"))),
                name if by.iter().any(|by| by == name) => Ok(name),
                name => {
                    let what =
                        format!("rows are not grouped by {name}; add it to the argument fields of groupBy");
                    return Err(GraphQlError::new(Code::BadRequest, what).at(key.pos).within(&context.path));
                }
            };
            keys.push((key.key.to_owned(), of));
        }
        Ok(keys)
    }

    fn aggregations(
        &self,
        ty: &str,
        selected: &Selected<'a>,
        groups: &mut GroupRequest,
        having: &mut Vec<Expr>,
    ) -> Lowered<Vec<(String, Result<usize, String>)>> {
        let ty = format!("{ty}Aggregations");
        let mut aggregates = Vec::new();
        for asked in collect(&self.operation.document, &selected.sets, self.variables)? {
            let function = match asked.name {
                "count" => AggregateFunction::Count,
                "sum" => AggregateFunction::Sum,
                "avg" => AggregateFunction::Avg,
                "min" => AggregateFunction::Min,
                "max" => AggregateFunction::Max,
                _ => {
                    aggregates.push((asked.key.to_owned(), Err(json_text(&ty))));
                    continue;
                }
            };
            let number = groups.aggregations.len();
            // under a name that no key has
            let mut name = format!("a{number}");
            while groups.by.contains(&name) {
                name.push('_');
            }
            let mut aggregation = Aggregation { name, function, field: None, distinct: false };
            for (argument, value) in self.arguments(&ty, &asked)? {
                match (argument.as_str(), value) {
                    ("field", value @ Value::Enum(_)) => aggregation.field = Some(super::text_of(&value)),
                    ("distinct", Value::Bool(distinct)) => aggregation.distinct = distinct,
                    ("having", Value::Object(fields)) => {
                        let condition = filter::conditions(self, &aggregation.name, fields);
                        having.push(condition.map_err(|error| error.at(asked.pos))?);
                    }
                    _ => {}
                }
            }
            groups.aggregations.push(aggregation);
            aggregates.push((asked.key.to_owned(), Ok(number)));
        }
        Ok(aggregates)
    }
}
