//! From a query to what is to be compiled. Names, rights, types, cursors and page sizes are resolved as for REST; what is said here
//! is only which fields of the document ask for what.

mod connection;
mod filter;
mod groups;
mod order;

use std::sync::Arc;

use async_graphql::Pos;
use async_graphql::parser::types::SelectionSet;
use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::catalog::{Catalog, Entity, Link, Relationship, Scope};
use rowgate_sql::query::{Document, DocumentMember, Form, Query, Selected as Member, ToMany, ToOne};
use rowgate_sql::request::ReadRequest;
use rowgate_sql::resolve::{self, Cursors, Refusal};
use rowgate_sql::rest;

use super::document::Operation;
use super::document::coerce::coerce;
use super::document::selection::{Selected, collect};
use super::document::value::{Value, Variables, json_text};
use super::error::GraphQlError;
use super::schema::{self, Schema};
use super::wording;

/// Relationships that are followed one after another.
const MAX_DEPTH: usize = 12;
/// Statements of one request.
const MAX_LISTS: usize = 50;

/// What an operation is lowered with.
pub(crate) struct Lowering<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) catalog: &'a Catalog,
    pub(crate) cursors: Cursors<'a>,
    pub(crate) operation: &'a Operation,
    pub(crate) variables: &'a Variables,
    /// Lists so far, and rows that they may have.
    n_lists: usize,
    cost: u64,
}

type Lowered<T> = Result<T, GraphQlError>;

/// Where a field stands: how many relationships lead to it, how many rows may stand around it, and its place in the answer.
#[derive(Clone)]
struct FieldContext {
    depth: usize,
    n_rows: u64,
    path: Vec<String>,
}

impl FieldContext {
    fn within(&self, key: &str) -> FieldContext {
        let mut context = self.clone();
        context.path.push(key.to_owned());
        context
    }
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(
        schema: &'a Schema,
        catalog: &'a Catalog,
        cursors: Cursors<'a>,
        operation: &'a Operation,
        variables: &'a Variables,
    ) -> Lowering<'a> {
        Lowering { schema, catalog, cursors, operation, variables, n_lists: 0, cost: 0 }
    }

    fn scope(&self) -> &'a Scope {
        &self.schema.scope
    }

    /// The members of the type Query. `introspected`: the value of one of introspection, by its key.
    pub(crate) fn query(
        &mut self,
        roots: &[Selected<'a>],
        introspected: &dyn Fn(&str) -> Option<String>,
    ) -> Lowered<Document> {
        let mut members = Vec::with_capacity(roots.len());
        for root in roots {
            let context = FieldContext { depth: 0, n_rows: 1, path: vec![root.key.to_owned()] };
            members.push(match self.schema.query(root.name) {
                Some(schema::Query::Rows(name)) => {
                    let many = self.connection(name, Link::All, ("Query", root), &context)?;
                    match connection::constant(&many) {
                        Some(json) => DocumentMember::Constant { name: root.key.to_owned(), json },
                        None => DocumentMember::Read(Box::new(many)),
                    }
                }
                Some(schema::Query::ByKey(name)) => {
                    let query = self.by_key(name, root, &context)?;
                    let form = Form::Row { name: root.key.to_owned() };
                    DocumentMember::Read(Box::new(ToMany { link: Link::All, lists: vec![query], form }))
                }
                None => {
                    let json = match root.name {
                        "__typename" => "\"Query\"".to_owned(),
                        _ => introspected(root.key).unwrap_or_else(|| "null".to_owned()),
                    };
                    DocumentMember::Constant { name: root.key.to_owned(), json }
                }
            });
        }
        Ok(Document { members })
    }

    /// The row that the arguments name.
    fn by_key(&mut self, name: &EntityName, root: &Selected<'a>, context: &FieldContext) -> Lowered<Query> {
        let arguments = self.arguments("Query", root)?;
        let key: Vec<(String, String)> =
            arguments.into_iter().map(|(name, value)| (name, text_of(&value))).collect();
        self.row(name, &key, (&root.sets, root.pos), context)
    }

    /// The row of a key, with what `sets` ask of it.
    pub(crate) fn row_of(
        &mut self,
        name: &EntityName,
        key: &[(String, String)],
        (sets, pos): (&[&'a SelectionSet], Pos),
        path: &[String],
    ) -> Lowered<Query> {
        self.row(name, key, (sets, pos), &FieldContext { depth: 0, n_rows: 1, path: path.to_vec() })
    }

    fn row(
        &mut self,
        name: &EntityName,
        key: &[(String, String)],
        (sets, pos): (&[&'a SelectionSet], Pos),
        context: &FieldContext,
    ) -> Lowered<Query> {
        self.count_list(1, pos, context)?;
        let row = resolve::row(self.catalog, self.scope(), name, key, &ReadRequest::default());
        let row = row.map_err(|refusal| self.refused(name, refusal, pos, context))?;
        let select = self.members(&row.entity, sets, context)?;
        Ok(Query { select, version: None, ..row })
    }

    /// The members of a row's object.
    fn members(
        &mut self,
        entity: &Arc<Entity>,
        sets: &[&'a SelectionSet],
        context: &FieldContext,
    ) -> Lowered<Vec<Member>> {
        let mut members = Vec::new();
        for selected in collect(&self.operation.document, sets, self.variables)? {
            let name = selected.key.to_owned();
            if selected.name == "__typename" {
                members.push(Member::Constant { name, json: json_text(self.schema.type_of(&entity.name)) });
                continue;
            }
            let field = entity.fields.iter().position(|field| field.name == selected.name);
            if let Some(field) = field.filter(|field| self.reads(entity, *field)) {
                members.push(Member::Alias { name, field });
                continue;
            }
            let (catalog, scope) = (self.catalog, self.scope());
            let mut relationships = catalog.relationships(scope, &entity.name);
            let Some(relationship) = relationships.find(|it| it.name == selected.name) else {
                let what = format!("{} has no field {}", self.schema.type_of(&entity.name), selected.name);
                return Err(GraphQlError::new(Code::UnknownField, what)
                    .at(selected.pos)
                    .within(&context.path));
            };
            members.push(self.related(entity, relationship, &selected, context)?);
        }
        Ok(members)
    }

    fn reads(&self, entity: &Entity, field: usize) -> bool {
        let rights = self.scope().entities.get(&entity.name);
        rights.is_some_and(|rights| rights.read.get(field) == Some(&true))
    }

    fn related(
        &mut self,
        entity: &Arc<Entity>,
        relationship: &Relationship,
        selected: &Selected<'a>,
        context: &FieldContext,
    ) -> Lowered<Member> {
        let mut context = context.within(selected.key);
        context.depth += 1;
        if MAX_DEPTH < context.depth {
            let what = format!(
                "the query follows {} relationships one after another, and {MAX_DEPTH} is the most",
                context.depth
            );
            return Err(GraphQlError::new(Code::BadRequest, what).at(selected.pos));
        }
        let (name, to) = (selected.key.to_owned(), &relationship.to);
        if !relationship.to_one {
            let ty = self.schema.type_of(&entity.name);
            let many = self.connection(to, relationship.link.clone(), (ty, selected), &context)?;
            return Ok(match connection::constant(&many) {
                Some(json) => Member::Constant { name, json },
                None => Member::Many(Box::new(many)),
            });
        }
        let may = resolve::may_read(self.catalog, self.scope(), to);
        may.map_err(|refusal| self.refused(to, refusal, selected.pos, &context))?;
        let inside = self.catalog.entities.get(to).cloned();
        let inside = inside.ok_or_else(|| GraphQlError::from(Problem::internal()))?;
        match relationship.one_row() {
            Some(link) => {
                let select = self.members(&inside, &selected.sets, &context)?;
                Ok(Member::One(Box::new(ToOne { name, link: link.to_vec(), entity: inside, select })))
            }
            None => {
                self.count_list(1, selected.pos, &context)?;
                let first = ReadRequest { first: Some(1), ..ReadRequest::default() };
                let query = resolve::collection(self.catalog, self.scope(), to, &first, self.cursors);
                let query = query.map_err(|refusal| self.refused(to, refusal, selected.pos, &context))?;
                let select = self.members(&inside, &selected.sets, &context)?;
                let query = Query { select, take: 1, max_take: 1, binding: None, ..query };
                Ok(Member::Many(Box::new(ToMany {
                    link: relationship.link.clone(),
                    lists: vec![query],
                    form: Form::Row { name },
                })))
            }
        }
    }

    /// The arguments of a field, as their types take them; null counts as absent.
    pub(crate) fn arguments(&self, ty: &str, selected: &Selected<'_>) -> Lowered<Vec<(String, Value)>> {
        let mut arguments = self.given(ty, selected)?;
        arguments.retain(|(_, value)| *value != Value::Null);
        Ok(arguments)
    }

    /// The arguments of a field, as their types take them.
    pub(crate) fn given(&self, ty: &str, selected: &Selected<'_>) -> Lowered<Vec<(String, Value)>> {
        let field = self.schema.field(ty, selected.name);
        let mut arguments = Vec::with_capacity(selected.arguments.len());
        for (name, value) in selected.arguments {
            let Some(of) = field.and_then(|field| field.args.get(name.node.as_str())) else { continue };
            let Some(value) = Value::of_document(&value.node, self.variables) else { continue };
            let value =
                coerce(self.schema.registry(), &of.ty, value, &|| format!("the argument {}", name.node));
            let value = value.map_err(|misfit| GraphQlError::new(Code::InvalidValue, misfit).at(name.pos))?;
            arguments.push((name.node.to_string(), value));
        }
        Ok(arguments)
    }

    /// The rows that what was lowered may return.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Counts a list of `take` rows in each row around it.
    fn count_list(&mut self, take: usize, pos: Pos, context: &FieldContext) -> Lowered<()> {
        self.n_lists += 1;
        if MAX_LISTS < self.n_lists {
            let what = format!("the query asks for more than {MAX_LISTS} lists and groups");
            return Err(GraphQlError::new(Code::BadRequest, what).at(pos).within(&context.path));
        }
        self.cost = self.cost.saturating_add(context.n_rows.saturating_mul(take as u64));
        let limit = self.catalog.limits.graphql_cost;
        if limit < self.cost {
            let what = format!(
                "the query may return {} rows by its arguments first, and limits.graphqlCost of the Tenant is {limit}; ask for fewer with first",
                self.cost
            );
            return Err(GraphQlError::new(Code::BadRequest, what).at(pos).within(&context.path));
        }
        Ok(())
    }

    fn refused(
        &self,
        entity: &EntityName,
        refusal: Refusal,
        pos: Pos,
        context: &FieldContext,
    ) -> GraphQlError {
        let problem = rest::problem::of(self.catalog, self.scope(), entity, refusal);
        GraphQlError::from(wording::of_graphql(problem)).at(pos).within(&context.path)
    }
}

/// A key's value as text.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Number(text) | Value::Enum(text) => text.clone(),
        other => other.json(),
    }
}
