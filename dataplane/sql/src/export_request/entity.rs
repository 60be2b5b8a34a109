//! An entity as the source of an export: the options of REST without their dollar signs, and the statement that gives all rows.

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use crate::catalog::{Catalog, Scope};
use crate::compile::{self, CompiledRows};
use crate::request::ReadRequest;
use crate::resolve::Cursors;
use crate::rest::{self, query_string};

/// What the options mean.
///
/// # Errors
/// What REST answers, in the words of the body.
pub(super) fn options<'a>(
    options: impl Iterator<Item = (&'static str, &'a str)>,
) -> Result<ReadRequest, Problem> {
    let mut request = ReadRequest::default();
    for (name, value) in options {
        query_string::option(&mut request, &format!("${name}"), value).map_err(in_body)?;
    }
    Ok(request)
}

/// The statement that gives all rows of the entity that the request asks for.
///
/// # Errors
/// What `GET` of the entity answers, in the words of the body.
pub fn all_rows(
    catalog: &Catalog,
    scope: &Scope,
    name: &str,
    request: &ReadRequest,
    cursors: Cursors<'_>,
) -> Result<CompiledRows, Problem> {
    let entity: EntityName = name.parse().map_err(|_| rest::not_found(catalog, scope, name))?;
    let query = rest::collection(catalog, scope, &entity, request, cursors).map_err(in_body)?;
    let rows = compile::all_rows(query, request.orderby.is_empty());
    if rows.names.is_empty() {
        let what = "select names no field; name at least one, or leave select out";
        return Err(Problem::new(Code::BadRequest, what));
    }
    Ok(rows)
}

fn in_body(problem: Problem) -> Problem {
    problem.reworded(&[
        ("$filter=", ""),
        ("$orderby=", ""),
        ("$select=", ""),
        ("$filter", "filter"),
        ("$orderby", "orderby"),
        ("$select", "select"),
    ])
}
