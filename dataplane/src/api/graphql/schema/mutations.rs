//! The mutations of an entity, with their inputs. What a key may write is asked of the resolver, as over REST.

use async_graphql::dynamic::{Field, InputObject, InputValue, Object, TypeRef};
use rowgate_sql::catalog::Entity;
use rowgate_sql::graphql_names::is_name;

use super::build::{Types, field, input, key_arguments, output};
use super::names::Named;
use super::scalars;
use crate::api::openapi::access::{Access, Rows, Written, arguments};

/// What a field of the type Mutation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    CreateMany,
    Update,
    Upsert,
    Delete,
    Call,
}

/// The fields of the type Mutation that an entity has, by name.
pub(super) fn verbs(named: &Named<'_>) -> Vec<(String, Verb)> {
    let rows = match &named.access {
        Access::Call(..) => {
            return vec![(named.root.clone(), Verb::Call), (named.verb("execute"), Verb::Call)];
        }
        Access::Rows(rows) => rows,
    };
    let mut verbs = Vec::new();
    let mut add = |may: bool, name: &str, verb| verbs.extend(may.then(|| (named.verb(name), verb)));
    let creates = rows.creates.as_ref().is_some_and(|of| !names(rows, of).is_empty());
    add(creates, "create", Verb::Create);
    add(creates, "createMany", Verb::CreateMany);
    let changes = rows.changes.as_ref().is_some_and(|of| !names(rows, of).is_empty());
    add(changes && rows.updates && named.has_key(), "update", Verb::Update);
    add(changes && rows.updates && rows.makes && named.has_key(), "upsert", Verb::Upsert);
    add(rows.deletes && named.has_key(), "delete", Verb::Delete);
    verbs
}

pub(super) fn fields(types: &mut Types, named: &Named<'_>) -> Vec<Field> {
    let verbs = verbs(named);
    if verbs.is_empty() {
        return Vec::new();
    }
    let rows = match &named.access {
        Access::Call(entity, routine) => {
            let outputs = routine.returns.outputs();
            let given: Vec<_> = outputs.iter().filter(|output| is_name(&output.name)).collect();
            let ty = match given.is_empty() {
                true => TypeRef::named(TypeRef::BOOLEAN),
                false => {
                    let result = Object::new(&named.ty);
                    let result = given
                        .iter()
                        .fold(result, |object, it| object.field(field(&it.name, output(&it.ty, false))));
                    types.objects.push(result);
                    TypeRef::named_nn_list(named.ty.as_str())
                }
            };
            let call = |(name, _): (String, Verb)| {
                let call = field(name, ty.clone()).description(format!("Calls {}.", entity.name));
                let params = arguments(routine).filter(|(param, _)| is_name(&param.name));
                params.fold(call, |call, (param, _)| {
                    call.argument(input(&param.name, scalars::of(&param.ty), false))
                })
            };
            return verbs.into_iter().map(call).collect();
        }
        Access::Rows(rows) => rows,
    };
    let is_read = !rows.readable.is_empty();
    let row = || match is_read {
        true => TypeRef::named(named.ty.as_str()),
        false => TypeRef::named(TypeRef::BOOLEAN),
    };
    let mut fields = Vec::new();
    for (name, verb) in verbs {
        let item = |verb: &str| input("item", &format!("{}Input", named.verb(verb)), true);
        fields.push(match verb {
            Verb::Create => {
                let created = rows.creates.clone().unwrap_or_default();
                types.inputs.push(inputs(named, rows, "Create", &created, &[]));
                field(name, row()).argument(item("Create")).description("Makes a row.")
            }
            Verb::CreateMany => {
                let of = format!("{}Input", named.verb("Create"));
                let ty = if is_read { TypeRef::named_nn_list(named.ty.as_str()) } else { row() };
                let items = InputValue::new("items", TypeRef::named_nn_list_nn(of));
                field(name, ty).argument(items).description("Makes rows, all or none.")
            }
            Verb::Update => {
                let changed = rows.changes.clone().unwrap_or_default();
                let changed = Written { required: Vec::new(), ..changed };
                types.inputs.push(inputs(named, rows, "Update", &changed, &[]));
                let update = key_arguments(rows).fold(field(name, row()), Field::argument);
                update.argument(item("Update")).description("Changes the fields of a row that are given.")
            }
            Verb::Upsert => {
                let changed = rows.changes.clone().unwrap_or_default();
                let changed = Written { required: Vec::new(), ..changed };
                types.inputs.push(inputs(named, rows, "Upsert", &changed, &rows.entity.key));
                let what = "Changes the fields of a row that are given, or makes the row.";
                field(name, row()).argument(item("Upsert")).description(what)
            }
            Verb::Delete => {
                types.objects.push(key(named, rows.entity));
                let delete = field(name, TypeRef::named(named.with("Key")));
                key_arguments(rows)
                    .fold(delete, Field::argument)
                    .description("Deletes a row, and gives its key.")
            }
            Verb::Call => continue,
        });
    }
    fields
}

/// Positions of the fields of a body that GraphQL can spell.
fn names(rows: &Rows<'_>, written: &Written) -> Vec<usize> {
    written.fields.iter().copied().filter(|at| is_name(&rows.field(*at).name)).collect()
}

fn inputs(named: &Named<'_>, rows: &Rows<'_>, verb: &str, written: &Written, key: &[usize]) -> InputObject {
    let mut of = InputObject::new(format!("{}Input", named.verb(verb)));
    for at in key {
        let field = rows.field(*at);
        of = of.field(input(&field.name, scalars::of(&field.ty), true));
    }
    for at in names(rows, written).into_iter().filter(|at| !key.contains(at)) {
        let field = rows.field(at);
        of = of.field(input(&field.name, scalars::of(&field.ty), written.required.contains(&at)));
    }
    // of a row that is there: a new one has none
    let version = rows.version().filter(|_| verb != "Create").map(|at| rows.field(at));
    match version.filter(|field| is_name(&field.name)) {
        Some(field) => {
            let version = input(&field.name, scalars::of(&field.ty), false);
            of.field(version.description("The version of the row, as it was read."))
        }
        None => of,
    }
}

fn key(named: &Named<'_>, entity: &Entity) -> Object {
    let object = Object::new(named.with("Key")).description("The fields that name a row.");
    entity.key.iter().fold(object, |object, at| {
        let of = &entity.fields[*at];
        object.field(field(&of.name, TypeRef::named_nn(scalars::of(&of.ty))))
    })
}
