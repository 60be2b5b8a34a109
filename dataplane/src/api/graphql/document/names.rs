//! The names of a schema that a document uses: of fields, of types, and of members of its objects and of its variables.

use std::collections::HashSet;

use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};
use async_graphql_value::Value as Literal;

use super::value::{Value, Variables};

pub(crate) fn names(document: &ExecutableDocument, variables: &Variables) -> HashSet<String> {
    let mut names = HashSet::new();
    for (_, operation) in document.operations.iter() {
        of_set(&operation.node.selection_set.node, &mut names);
        for definition in &operation.node.variable_definitions {
            let ty = definition.node.var_type.node.to_string();
            names.insert(ty.trim_matches(['[', ']', '!']).to_owned());
            let default = definition.node.default_value.as_ref();
            default.into_iter().for_each(|it| of_literal(&it.node.clone().into_value(), &mut names));
        }
    }
    for fragment in document.fragments.values() {
        names.insert(fragment.node.type_condition.node.on.node.to_string());
        of_set(&fragment.node.selection_set.node, &mut names);
    }
    variables.values().for_each(|value| of_value(value, &mut names));
    names
}

/// Documents are bounded in depth.
fn of_set(set: &SelectionSet, names: &mut HashSet<String>) {
    for item in &set.items {
        match &item.node {
            Selection::Field(field) => {
                names.insert(field.node.name.node.to_string());
                field.node.arguments.iter().for_each(|(_, value)| of_literal(&value.node, names));
                of_set(&field.node.selection_set.node, names);
            }
            Selection::InlineFragment(fragment) => {
                let on = fragment.node.type_condition.as_ref();
                names.extend(on.map(|on| on.node.on.node.to_string()));
                of_set(&fragment.node.selection_set.node, names);
            }
            Selection::FragmentSpread(_) => {}
        }
    }
}

fn of_literal(value: &Literal, names: &mut HashSet<String>) {
    match value {
        Literal::List(all) => all.iter().for_each(|value| of_literal(value, names)),
        Literal::Object(members) => members.iter().for_each(|(name, value)| {
            names.insert(name.to_string());
            of_literal(value, names);
        }),
        _ => {}
    }
}

fn of_value(value: &Value, names: &mut HashSet<String>) {
    match value {
        Value::List(all) => all.iter().for_each(|value| of_value(value, names)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            of_value(value, names);
        }),
        _ => {}
    }
}
