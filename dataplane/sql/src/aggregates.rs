//! Aggregates as a surface: the body of `POST /api/ddl/aggregates/{entity}` becomes a [`GroupRequest`](crate::request::GroupRequest), and what the stages behind
//! refuse becomes a problem in the words of that body, whose options have no dollar signs.

mod body;

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use crate::catalog::{Catalog, Scope};
use crate::query::Query;
use crate::resolve::{self, Cursors, Refusal};
use crate::rest;

/// Whether the scope may read rows of the entity at all, whatever the body says.
pub fn may_read(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Problem> {
    resolve::may_read(catalog, scope, entity).map_err(|refusal| problem(catalog, scope, entity, refusal))
}

/// A body that cannot be read is a problem only for who may read the entity.
pub fn groups(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: Result<&[u8], Problem>,
    cursors: Cursors<'_>,
) -> Result<Query, Problem> {
    let request = match body.and_then(body::parse) {
        Ok(request) => request,
        Err(refused) => {
            may_read(catalog, scope, entity)?;
            return Err(refused);
        }
    };
    resolve::groups(catalog, scope, entity, &request, cursors)
        .map_err(|refusal| problem(catalog, scope, entity, refusal))
}

fn problem(catalog: &Catalog, scope: &Scope, entity: &EntityName, refusal: Refusal) -> Problem {
    use resolve::GroupRefusal::Having;
    match refusal {
        Refusal::OnlyCalled => {
            let what = format!(
                "{entity} is a procedure and has no rows to aggregate; call it with POST at its own URL"
            );
            Problem::new(Code::BadRequest, what)
        }
        Refusal::Group(Having(_)) => in_body(rest::problem::of(catalog, scope, entity, refusal), "having"),
        refusal => in_body(rest::problem::of(catalog, scope, entity, refusal), "filter"),
    }
}

/// A problem in the words of the body. `filter`: the member that holds the condition.
fn in_body(problem: Problem, filter: &str) -> Problem {
    problem.reworded(&[
        ("$filter=", ""),
        ("$orderby=", ""),
        ("$filter", filter),
        ("$orderby", "orderby"),
        ("$first", "first"),
        ("$after", "after"),
        ("$select", "groupBy"),
    ])
}
