//! A list of rows and what stands beside its items.

use rowgate_core::name::EntityName;
use rowgate_core::problem::Code;
use rowgate_sql::catalog::Link;
use rowgate_sql::query::{ConnectionPart, Form, Query, Selected as Member, ToMany};
use rowgate_sql::request::ReadRequest;
use rowgate_sql::resolve;

use super::{FieldContext, Lowered, Lowering, filter, order};
use crate::api::graphql::document::selection::{Selected, collect};
use crate::api::graphql::document::value::{Value, json_text};
use crate::api::graphql::error::GraphQlError;

/// The connection itself, where nothing is asked of it but its type: there is no statement to find it with.
pub(super) fn constant(many: &ToMany) -> Option<String> {
    let Form::Connection { parts, .. } = &many.form else { return None };
    let member = |(key, part): &(String, ConnectionPart)| match part {
        ConnectionPart::Constant(json) => Some(format!("{}:{json}", json_text(key))),
        _ => None,
    };
    let members: Vec<String> = parts.iter().map(member).collect::<Option<_>>()?;
    Some(format!("{{{}}}", members.join(",")))
}

impl<'a> Lowering<'a> {
    /// The connection that `selected`, a field of the type `ty`, asks for.
    pub(super) fn connection(
        &mut self,
        entity: &EntityName,
        link: Link,
        (ty, selected): (&str, &Selected<'a>),
        context: &FieldContext,
    ) -> Lowered<ToMany> {
        let request = self.request(ty, selected)?;
        let rows = resolve::collection(self.catalog, self.scope(), entity, &request, self.cursors);
        let rows = rows.map_err(|refusal| self.refused(entity, refusal, selected.pos, context))?;
        let parts = collect(&self.operation.document, &selected.sets, self.variables)?;
        let asks = |name: &str| parts.iter().any(|part| part.name == name);
        let binding = rows.binding.filter(|_| asks("endCursor"));
        let mut lists: Vec<Query> = Vec::new();
        // the list that says where the page ends
        let mut paged = None;
        let mut members = Vec::with_capacity(parts.len());
        for part in &parts {
            let of = match part.name {
                "items" => {
                    self.count_list(rows.take, part.pos, context)?;
                    let mut inside = context.within(part.key);
                    inside.n_rows = context.n_rows.saturating_mul(rows.take as u64);
                    let select = self.members(&rows.entity, &part.sets, &inside)?;
                    let at = lists.len();
                    lists.push(Query {
                        select,
                        binding: binding.filter(|_| paged.is_none()),
                        ..rows.clone()
                    });
                    paged.get_or_insert(at);
                    ConnectionPart::Items(at)
                }
                // known when all items are
                "endCursor" => ConnectionPart::EndCursor(usize::MAX),
                "hasNextPage" => ConnectionPart::HasNextPage(usize::MAX),
                "totalCount" => {
                    self.count_list(1, part.pos, context)?;
                    lists.push(rows.number_of_rows());
                    ConnectionPart::Count(lists.len() - 1)
                }
                "groupBy" => {
                    lists.push(self.groups(entity, &request, part, context)?);
                    ConnectionPart::Items(lists.len() - 1)
                }
                "__typename" => {
                    let name = format!("{}Connection", self.schema.type_of(entity));
                    ConnectionPart::Constant(json_text(&name))
                }
                other => {
                    let what = format!("a connection has no field {other}");
                    return Err(GraphQlError::new(Code::UnknownField, what)
                        .at(part.pos)
                        .within(&context.path));
                }
            };
            members.push((part.key.to_owned(), of));
        }
        if paged.is_none() && (asks("endCursor") || asks("hasNextPage")) {
            self.count_list(rows.take, selected.pos, context)?;
            let select = rows.entity.key.iter().copied().map(Member::Field).collect();
            paged = Some(lists.len());
            lists.push(Query { select, binding, ..rows });
        }
        for (_, part) in &mut members {
            if let (ConnectionPart::EndCursor(at) | ConnectionPart::HasNextPage(at), Some(paged)) =
                (part, paged)
            {
                *at = paged;
            }
        }
        let form = Form::Connection { name: selected.key.to_owned(), parts: members };
        Ok(ToMany { link, lists, form })
    }

    /// What the arguments of a list ask for.
    fn request(&self, ty: &str, selected: &Selected<'_>) -> Lowered<ReadRequest> {
        let mut request = ReadRequest { select: Some(Vec::new()), ..ReadRequest::default() };
        for (name, value) in self.arguments(ty, selected)? {
            match (name.as_str(), value) {
                ("first", Value::Number(text)) => request.first = text.parse().ok(),
                ("after", Value::Text(token)) => request.after = Some(token),
                ("filter", Value::Object(fields)) => {
                    request.filter = filter::expression(self, ty, selected, fields)?
                }
                ("orderBy", Value::Object(fields)) => request.orderby = order::terms(fields),
                _ => {}
            }
        }
        Ok(request)
    }
}
