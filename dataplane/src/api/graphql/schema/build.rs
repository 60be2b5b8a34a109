//! The types of a schema, for async-graphql: it parses, validates and answers introspection. No resolver of it gives a row.

use std::collections::BTreeMap;

use async_graphql::dynamic::{
    Enum, Field, FieldFuture, InputObject, InputValue, Object, Scalar, Schema, SchemaBuilder, SchemaError,
    TypeRef,
};
use rowgate_core::name::EntityName;
use rowgate_sql::catalog::{Catalog, FieldType, Scope};
use rowgate_sql::graphql_names::{capital, is_name};

use super::names::Named;
use super::scalars;
use super::{groups, mutations, subscriptions};
use crate::api::graphql::document::value::Value;
use crate::api::openapi::access::Rows;

type Entities<'a> = BTreeMap<&'a EntityName, Named<'a>>;

/// Everything that the scope may ask for.
pub(super) fn executable(
    catalog: &Catalog,
    scope: &Scope,
    entities: &Entities<'_>,
    introspects: bool,
) -> Result<Schema, SchemaError> {
    let mut query = Object::new("Query").description("Reads. All of a query see one state of the database.");
    let mut mutation = Object::new("Mutation").description("Writes and calls, one after another.");
    let (mut n_queries, mut n_mutations) = (0, 0);
    let mut types = Types::default();
    for named in entities.values() {
        if let Some(rows) = named.rows() {
            for field in roots(named, rows) {
                query = query.field(field);
                n_queries += 1;
            }
            if !rows.readable.is_empty() {
                readable(&mut types, catalog, scope, entities, named, rows);
            }
        }
        for field in mutations::fields(&mut types, named) {
            mutation = mutation.field(field);
            n_mutations += 1;
        }
    }
    if n_queries == 0 {
        // a schema without a query is none
        query = query.field(field("_empty", TypeRef::named(TypeRef::BOOLEAN)));
    }
    let mutation = (0 < n_mutations).then_some(mutation);
    let followed = entities.values().filter(|named| subscriptions::has(catalog, scope, named));
    let subscription = subscriptions::subscription(&mut types, followed);
    let mut builder = Schema::build(
        "Query",
        mutation.as_ref().map(|_| "Mutation"),
        subscription.as_ref().map(|_| "Subscription"),
    );
    builder = scalars_and_filters(builder).register(query);
    if let Some(subscription) = subscription {
        builder = builder.register(subscription);
    }
    if let Some(mutation) = mutation {
        builder = builder.register(mutation);
    }
    let Types { objects, inputs, enums } = types;
    builder = objects.into_iter().fold(builder, SchemaBuilder::register);
    builder = inputs.into_iter().fold(builder, SchemaBuilder::register);
    builder = enums.into_iter().fold(builder, SchemaBuilder::register);
    builder = builder.limit_recursive_depth(64).extension(super::validate::ValidateOnly);
    let builder = if introspects { builder } else { builder.disable_introspection() };
    builder.disable_suggestions().finish()
}

/// Objects, inputs and enums, as they are found.
#[derive(Default)]
pub(super) struct Types {
    pub(super) objects: Vec<Object>,
    pub(super) inputs: Vec<InputObject>,
    pub(super) enums: Vec<Enum>,
}

/// A field that nothing of async-graphql resolves.
pub(super) fn field(name: impl Into<String>, ty: TypeRef) -> Field {
    Field::new(name, ty, |_| FieldFuture::Value(None))
}

/// `ty`, which takes no null where `is_required`.
pub(super) fn input(name: &str, ty: &str, is_required: bool) -> InputValue {
    InputValue::new(name, if is_required { TypeRef::named_nn(ty) } else { TypeRef::named(ty) })
}

/// An argument for each field of the key.
pub(super) fn key_arguments<'r>(rows: &'r Rows<'_>) -> impl Iterator<Item = InputValue> + 'r {
    rows.entity.key.iter().map(|at| {
        let field = rows.field(*at);
        input(&field.name, scalars::of(&field.ty), true)
    })
}

fn roots(named: &Named<'_>, rows: &Rows<'_>) -> Vec<Field> {
    let mut fields = Vec::new();
    if rows.lists {
        let what = format!("Rows of {}, a page at a time.", named.entity.name);
        fields.push(connection(&named.root, named).description(what));
    }
    if rows.reads && named.has_key() {
        let by_key = field(named.by_key(), TypeRef::named(named.ty.as_str()));
        let what = format!("The row of {} with this key, or null.", named.entity.name);
        fields.push(key_arguments(rows).fold(by_key, Field::argument).description(what));
    }
    fields
}

/// A list of rows with the four arguments that every list has.
fn connection(name: &str, of: &Named<'_>) -> Field {
    field(name, TypeRef::named_nn(of.with("Connection")))
        .argument(
            input("first", TypeRef::INT, false)
                .description("As many rows at most; 100 when left out, -1 for as many as a page may have."),
        )
        .argument(input("after", TypeRef::STRING, false).description("The endCursor of the page before."))
        .argument(input("filter", &of.with("FilterInput"), false))
        .argument(
            input("orderBy", &of.with("OrderByInput"), false)
                .description("In the order of its fields; the key comes last."),
        )
}

/// Types of rows that are read.
fn readable(
    types: &mut Types,
    catalog: &Catalog,
    scope: &Scope,
    entities: &Entities<'_>,
    named: &Named<'_>,
    rows: &Rows<'_>,
) {
    let mut object = Object::new(&named.ty);
    let mut filter = InputObject::new(named.with("FilterInput")).description("All that is given must hold.");
    let mut order = InputObject::new(named.with("OrderByInput"));
    let mut n_orders = 0;
    for at in &rows.readable {
        let of = rows.field(*at);
        if !is_name(&of.name) {
            continue;
        }
        object = object.field(field(&of.name, output(&of.ty, !of.nullable)));
        if !OPERATORS.contains(&of.name.as_str()) {
            filter = filter.field(input(&of.name, scalars::filter(&of.ty), false));
        }
        if rows.orderable.contains(at) {
            order = order.field(input(&of.name, "OrderBy", false));
            n_orders += 1;
        }
    }
    for relationship in catalog.relationships(scope, &named.entity.name) {
        let Some(to) = entities.get(&relationship.to).filter(|_| is_name(&relationship.name)) else {
            continue;
        };
        let Some(inside) = to.rows().filter(|rows| !rows.readable.is_empty()) else { continue };
        if relationship.to_one {
            object = object.field(field(&relationship.name, TypeRef::named(to.ty.as_str())));
        } else if inside.lists {
            object = object.field(connection(&relationship.name, to));
        } else {
            continue;
        }
        if relationship.one_row().is_some() {
            let of = input(&relationship.name, &to.with("OrderByInput"), false);
            order = order.field(of.description("By fields of this row; without it they count as null."));
            n_orders += 1;
        }
        if !OPERATORS.contains(&relationship.name.as_str()) {
            let what = match relationship.to_one {
                true => "The row is there, and this holds for it.",
                false => "There is such a row.",
            };
            let of = input(&relationship.name, &to.with("FilterInput"), false);
            filter = filter.field(of.description(what));
        }
    }
    let same = named.with("FilterInput");
    filter = filter
        .field(InputValue::new("and", TypeRef::named_nn_list(same.as_str())))
        .field(InputValue::new("or", TypeRef::named_nn_list(same.as_str())))
        .field(InputValue::new("not", TypeRef::named(same.as_str())));
    types.objects.push(object);
    types.inputs.push(filter);
    if 0 < n_orders {
        types.inputs.push(order);
    } else {
        // an input needs a field
        types.inputs.push(order.field(input("_none", "OrderBy", false)));
    }
    if rows.lists {
        let connection = Object::new(named.with("Connection"))
            .field(field("items", TypeRef::named_nn_list_nn(named.ty.as_str())))
            .field(
                field("endCursor", TypeRef::named(TypeRef::STRING))
                    .description("For after; null without rows."),
            )
            .field(field("hasNextPage", TypeRef::named_nn(TypeRef::BOOLEAN)))
            .field(field("totalCount", TypeRef::named_nn("Long")).description("Rows on all pages."));
        let connection = groups::field_of(types, named, rows).into_iter().fold(connection, Object::field);
        types.objects.push(connection);
    }
}

/// What stands in a filter beside fields.
pub(crate) const OPERATORS: [&str; 3] = ["and", "or", "not"];

pub(super) fn output(ty: &FieldType, is_always_there: bool) -> TypeRef {
    let name = scalars::of(ty);
    if is_always_there { TypeRef::named_nn(name) } else { TypeRef::named(name) }
}

fn scalars_and_filters(builder: SchemaBuilder) -> SchemaBuilder {
    let of_graphql = ["Int", "Float", "Boolean", "String"];
    let ours = scalars::ALL.iter().filter(|scalar| !of_graphql.contains(&scalar.name));
    let mut builder = ours.fold(builder, |builder, scalar| {
        let name = scalar.name;
        let takes = move |value: &async_graphql::Value| scalars::takes(name, &Value::of_constant(value));
        let what = format!("{}.", capital(scalar.form));
        builder.register(Scalar::new(name).description(what).validator(takes))
    });
    for scalar in &scalars::ALL {
        builder = builder.register(filter_input(scalar.filter, scalar.name));
    }
    builder = builder.register(filter_input(scalars::TEXT_FORM_FILTER, "String"));
    builder = groups::having(builder);
    builder.register(Enum::new("OrderBy").item("ASC").item("DESC"))
}

/// The conditions on a field of a scalar; null counts as absent.
fn filter_input(name: &str, scalar: &str) -> InputObject {
    let mut of = InputObject::new(name).description("All that is given must hold.");
    if scalar != "JSON" {
        for operator in ["eq", "neq"] {
            of = of.field(input(operator, scalar, false));
        }
        of = of.field(InputValue::new("in", TypeRef::named_list(scalar)));
        if !matches!(scalar, "Boolean" | "Base64String") {
            for operator in ["gt", "gte", "lt", "lte"] {
                of = of.field(input(operator, scalar, false));
            }
        }
    }
    if name == "StringFilterInput" {
        for operator in ["contains", "notContains", "icontains", "startsWith", "endsWith"] {
            of = of.field(input(operator, scalar, false));
        }
    }
    of.field(input("isNull", TypeRef::BOOLEAN, false))
}
