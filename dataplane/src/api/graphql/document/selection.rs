//! The fields of an object, with fragments and directives worked off: CollectFields of the specification (section 6.3.2). Every
//! type of a schema is an object, so that a fragment that validation lets stand always applies.

use async_graphql::parser::types::{Directive, ExecutableDocument, Field, Selection, SelectionSet};
use async_graphql::{Name, Pos, Positioned};
use rowgate_core::problem::Code;

use super::value::{Value, Variables};
use crate::api::graphql::error::GraphQlError;

/// One member of an answer's object.
pub(crate) struct Selected<'d> {
    /// Its name in the answer: the alias, or the field's own.
    pub(crate) key: &'d str,
    pub(crate) name: &'d str,
    pub(crate) arguments: &'d [(Positioned<Name>, Positioned<async_graphql_value::Value>)],
    /// What is asked of it, wherever the document says so.
    pub(crate) sets: Vec<&'d SelectionSet>,
    pub(crate) pos: Pos,
}

/// Members in the order of the document, each once.
pub(crate) fn collect<'d>(
    document: &'d ExecutableDocument,
    sets: &[&'d SelectionSet],
    variables: &Variables,
) -> Result<Vec<Selected<'d>>, GraphQlError> {
    let mut found = Vec::new();
    for set in sets {
        add(document, set, variables, &mut found)?;
    }
    Ok(found)
}

fn add<'d>(
    document: &'d ExecutableDocument,
    set: &'d SelectionSet,
    variables: &Variables,
    found: &mut Vec<Selected<'d>>,
) -> Result<(), GraphQlError> {
    for item in &set.items {
        if is_left_out(item.node.directives(), variables)? {
            continue;
        }
        match &item.node {
            Selection::Field(field) => merge(&field.node, field.pos, found)?,
            Selection::InlineFragment(inline) => {
                add(document, &inline.node.selection_set.node, variables, found)?;
            }
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = document.fragments.get(&spread.node.fragment_name.node) {
                    add(document, &fragment.node.selection_set.node, variables, found)?;
                }
            }
        }
    }
    Ok(())
}

fn merge<'d>(field: &'d Field, pos: Pos, found: &mut Vec<Selected<'d>>) -> Result<(), GraphQlError> {
    let key = field.response_key().node.as_str();
    let set = &field.selection_set.node;
    let Some(known) = found.iter_mut().find(|known| known.key == key) else {
        let name = field.name.node.as_str();
        found.push(Selected { key, name, arguments: &field.arguments, sets: vec![set], pos });
        return Ok(());
    };
    let argument = |name: &Name| field.arguments.iter().find(|(other, _)| other.node == *name);
    let is_same = known.name == field.name.node.as_str()
        && known.arguments.len() == field.arguments.len()
        && known
            .arguments
            .iter()
            .all(|(name, value)| argument(&name.node).is_some_and(|(_, other)| other.node == value.node));
    if !is_same {
        let what = format!("two fields are both called {key} and differ; give one of them an alias");
        return Err(GraphQlError::new(Code::BadRequest, what).at(known.pos).at(pos));
    }
    known.sets.push(set);
    Ok(())
}

/// By `@skip` or `@include`.
fn is_left_out(directives: &[Positioned<Directive>], variables: &Variables) -> Result<bool, GraphQlError> {
    for directive in directives {
        let leaves_out_if = match directive.node.name.node.as_str() {
            "skip" => true,
            "include" => false,
            _ => continue,
        };
        let given = directive.node.get_argument("if");
        match given.and_then(|given| Value::of_document(&given.node, variables)) {
            Some(Value::Bool(value)) if value == leaves_out_if => return Ok(true),
            Some(Value::Bool(_)) => {}
            _ => {
                let what = "the argument if of @skip and @include takes true or false";
                return Err(GraphQlError::new(Code::InvalidValue, what).at(directive.pos));
            }
        }
    }
    Ok(false)
}
