//! From the text of a document to an operation that may run, with its variables.

pub(crate) mod coerce;
mod guard;
mod limits;
pub(crate) mod names;
pub(crate) mod selection;
mod typename;
pub(crate) mod value;

use std::sync::Arc;

use async_graphql::Positioned;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, OperationDefinition, OperationType,
};
use async_graphql::registry::Registry;
use rowgate_core::problem::Code;

use super::error::GraphQlError;
use value::{Value, Variables};

/// A document that was parsed and is small enough; nothing is known yet of what it names.
pub(crate) fn parse(text: &str) -> Result<ExecutableDocument, GraphQlError> {
    guard::check(text)?;
    let mut document =
        parse_query(text).map_err(|error| GraphQlError::from(async_graphql::ServerError::from(error)))?;
    limits::check(&document)?;
    typename::unfold(&mut document);
    Ok(document)
}

/// One operation of a document.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) document: Arc<ExecutableDocument>,
    /// `None`: the only one.
    pub(crate) name: Option<String>,
}

impl Operation {
    /// The operation of this name, or the only one.
    pub(crate) fn of(
        document: Arc<ExecutableDocument>,
        name: Option<&str>,
    ) -> Result<Operation, GraphQlError> {
        let name = match (&document.operations, name) {
            (DocumentOperations::Single(_), None) => None,
            (DocumentOperations::Single(_), Some(name)) => return Err(absent(name)),
            (DocumentOperations::Multiple(all), Some(name)) => match all.contains_key(name) {
                true => Some(name.to_owned()),
                false => return Err(absent(name)),
            },
            (DocumentOperations::Multiple(all), None) => match all.len() {
                1 => all.keys().next().map(ToString::to_string),
                _ => {
                    let what = "the document has several operations; name the one to run in operationName";
                    return Err(GraphQlError::new(Code::BadRequest, what));
                }
            },
        };
        Ok(Operation { document, name })
    }

    pub(crate) fn definition(&self) -> &Positioned<OperationDefinition> {
        match (&self.document.operations, &self.name) {
            (DocumentOperations::Single(operation), _) => operation,
            (DocumentOperations::Multiple(all), Some(name)) => &all[name.as_str()],
            (DocumentOperations::Multiple(_), None) => unreachable!("the name was found"),
        }
    }

    pub(crate) fn ty(&self) -> OperationType {
        self.definition().node.ty
    }

    /// The values of its variables: what was sent, or their defaults, as their types take them.
    pub(crate) fn variables(&self, registry: &Registry, sent: &Variables) -> Result<Variables, GraphQlError> {
        let mut variables = Variables::new();
        for definition in &self.definition().node.variable_definitions {
            let name = definition.node.name.node.as_str();
            let ty = definition.node.var_type.to_string();
            let default = definition.node.default_value.as_ref().map(|value| Value::of_constant(&value.node));
            let Some(value) = sent.get(name).cloned().or(default) else {
                if definition.node.var_type.node.nullable {
                    continue;
                }
                let what = format!("the variable ${name} of type {ty} has no value; send it in variables");
                return Err(GraphQlError::new(Code::InvalidValue, what).at(definition.pos));
            };
            let value = coerce::coerce(registry, &ty, value, &|| format!("${name}"));
            let value =
                value.map_err(|misfit| GraphQlError::new(Code::InvalidValue, misfit).at(definition.pos))?;
            variables.insert(name.to_owned(), value);
        }
        Ok(variables)
    }
}

fn absent(name: &str) -> GraphQlError {
    GraphQlError::new(Code::BadRequest, format!("the document has no operation called {name}"))
}
