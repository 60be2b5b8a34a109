//! What REST answers where a request is refused, or a value of it: the words, with its own names of options, headers, methods and
//! addresses.

mod failed;
mod filter;
mod group;
mod value;
mod write;

use rowgate_core::name::EntityName;
use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};

use super::address::{key_path, key_pattern};
use super::filter::{Spelt, advice_on_name};
use super::query_string::order_here;
use crate::catalog::{Catalog, Entity, EntityKind, Scope};
use crate::resolve::{
    CallRefusal, Closure, ExpandRefusal, FilterRefusal, OrderRefusal, PathRefusal, Refusal, Unknown, Visible,
    may_use,
};
pub use failed::{diagnosed, invalid_argument, invalid_condition, invalid_value, untrue, worked_out};
pub(crate) use value::wanted;
pub(super) use write::too_many_values;

/// Of a request to the entity, which is one of the catalog wherever the refusal says more than that there is none, or none now.
pub fn of(catalog: &Catalog, scope: &Scope, name: &EntityName, refusal: Refusal) -> Problem {
    let Some(entity) = catalog.entities.get(name) else {
        return if let Refusal::Closed(closure) = refusal {
            closed(closure)
        } else {
            not_found(catalog, scope, name.as_str())
        };
    };
    let bad = |what: String| Problem::new(Code::BadRequest, what);
    match refusal {
        Refusal::NoEntity => not_found(catalog, scope, name.as_str()),
        Refusal::Closed(closure) => closed(closure),
        Refusal::OnlyCalled => Problem::only_called(),
        Refusal::NoField(field) => unknown(name, &field),
        Refusal::PageSize { max } => {
            bad(format!("$first is a number of rows from 1 to {max}, or -1 for that maximum"))
        }
        Refusal::Cursor => Problem::new(
            Code::InvalidCursor,
            "the cursor in $after belongs to another query; keep entity, $filter, $orderby and key as they were, \
             or start again without $after",
        ),
        Refusal::OptionOfRow => bad(
            "a row read by its key takes only $expand and $select; ask the collection for $filter, $orderby, $first, $after and $count"
                .to_owned(),
        ),
        Refusal::KeyNames => {
            let pattern = key_pattern(entity);
            bad(format!("a row of {name} is named by all of its key fields, each once: /{name}{pattern}"))
        }
        Refusal::Key(value) => Problem::new(
            Code::InvalidValue,
            format!("the key field {:?} is {}: {}", value.name, value.ty, wanted(value.refusal)),
        ),
        Refusal::Order(order) => of_order(scope, entity, order),
        // names in the message are those that the key may read there
        Refusal::Filter(FilterRefusal::Related { entity, refusal }) => {
            of(catalog, scope, &entity, Refusal::Filter(*refusal))
        }
        Refusal::Filter(refused) => {
            let visible = Visible::of(entity, scope);
            let field = |name: &str| visible.as_ref().and_then(|visible| spelt(visible, name));
            filter::of(name, &field, refused)
        }
        Refusal::Expand(refused) => of_expand(catalog, scope, name, refused),
        Refusal::Group(refused) => group::of(name, refused),
        Refusal::Call(refused) => of_call(name, refused),
        Refusal::Write(refused) => write::of(entity, refused),
        Refusal::InRow(at, refused) => in_row(write::of(entity, *refused), Some(at)),
    }
}

/// What is said of an entity that the scope may not use, or that is not there. `asked` is as it was written; the nearest
/// name is one that the scope may use, so that the answer is the same in both cases.
#[must_use]
pub fn not_found(catalog: &Catalog, scope: &Scope, asked: &str) -> Problem {
    let names = catalog.entities.values().filter(|entity| may_use(entity, scope));
    let names = names.map(|entity| entity.name.as_str());
    let problem = Problem::entity_not_found();
    // `orders(5)` is a row in OData.
    if let Some(before) = asked.split_once('(').and_then(|(before, _)| before.parse().ok())
        && let Some(key) = key_path(catalog, scope, &before)
    {
        return problem.detail(format!("a row of {before} is at /{before}{key}"));
    }
    did_you_mean(problem, nearest(asked, names.filter(|name| *name != asked)))
}

/// Of an entity that the scope has a right on, and that cannot be served now.
#[must_use]
pub fn absent() -> Problem {
    closed(Closure::Absent)
}

/// Of a table that the scope has a right on, and whose row-level security is off in the database now.
#[must_use]
pub fn unguarded() -> Problem {
    closed(Closure::Unguarded(EntityKind::Table))
}

fn closed(closure: Closure) -> Problem {
    let what = match closure {
        Closure::Absent => {
            "this entity cannot be served now: what it stands for does not exist in the database, is being replaced, or was refused; try again after the time in Retry-After, or see the status of the Tenant"
        }
        Closure::Unguarded(EntityKind::Table | EntityKind::View) => {
            "row-level security of this entity was turned off in the database, so the entity is closed; it reopens automatically once that is repaired"
        }
        Closure::Unguarded(EntityKind::Procedure) => {
            "the routine that this entity calls was changed in the database, so the entity is closed; it reopens automatically once that is repaired"
        }
    };
    Problem::new(Code::Unavailable, what)
}

/// A field as a filter writes it, of those that the scope may read.
pub(super) fn spelt<'a>(visible: &Visible<'a>, name: &str) -> Option<Spelt<'a>> {
    visible.readable(name).map(|(name, is_quoted)| Spelt { name, is_quoted })
}

/// As much of a name as is repeated to its sender.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

fn unknown(entity: &EntityName, Unknown { name, nearest }: &Unknown) -> Problem {
    let what = format!("{entity} has no field {:?} for this key", shown(name));
    did_you_mean(Problem::new(Code::UnknownField, what), nearest.as_deref())
}

fn did_you_mean(problem: Problem, nearest: Option<&str>) -> Problem {
    match nearest {
        Some(near) => problem.detail(format!("did you mean {near:?}?")),
        None => problem,
    }
}

fn of_order(scope: &Scope, entity: &std::sync::Arc<Entity>, refusal: OrderRefusal) -> Problem {
    let OrderRefusal::NoField(field) = refusal else { return of_terms(&refusal) };
    let problem = unknown(&entity.name, &field);
    // `id.desc` and `-id` hold one
    let order = order_here(&field.name).filter(|order| *order != field.name);
    let visible = Visible::of(entity, scope);
    let is_known = |name: &str| visible.as_ref().is_some_and(|visible| visible.find(name).is_some());
    match order.filter(|order| order.split([' ', ',']).next().is_some_and(is_known)) {
        Some(order) => problem.detail(format!("write $orderby={order}")),
        None => problem,
    }
}

/// Of an order whose names are found.
fn of_terms(refusal: &OrderRefusal) -> Problem {
    let invalid = |what: String| Problem::new(Code::InvalidOrderBy, what);
    match refusal {
        OrderRefusal::TooMany { max } => invalid(format!("$orderby has more than {max} terms")),
        OrderRefusal::Twice(name) => invalid(format!("$orderby names {name:?} twice; name it once")),
        OrderRefusal::NoField(Unknown { name, .. }) => invalid(format!("$orderby names {:?}", shown(name))),
        OrderRefusal::Path(refusal) => of_path(refusal),
        OrderRefusal::NoOrder { name, ty } => {
            invalid(format!("the field {name:?} is {ty}, which has no order; leave it out"))
        }
        // Without a total order a page would end between rows that nothing tells apart.
        OrderRefusal::KeyWithoutOrder { name, ty } => Problem::new(
            Code::BadRequest,
            format!(
                "the key field {name:?} is {ty}, which has no order, so the rows cannot be read in pages; the entity needs other keyFields"
            ),
        ),
    }
}

fn of_path(refusal: &PathRefusal) -> Problem {
    let invalid = |what: String| Problem::new(Code::InvalidOrderBy, what);
    match refusal {
        PathRefusal::NoField { entity, unknown: name } => unknown(entity, name),
        PathRefusal::NoRelationship { entity, unknown } => no_relationship(entity, unknown),
        PathRefusal::Closed(closure) => closed(*closure),
        PathRefusal::ManyRows(name) => invalid(format!(
            "{:?} may lead to several rows, and rows are ordered by fields of one; leave it out of $orderby",
            shown(name)
        )),
        PathRefusal::TooMany { max } => invalid(format!("$orderby follows more than {max} relationships")),
    }
}

fn no_relationship(entity: &EntityName, Unknown { name, nearest }: &Unknown) -> Problem {
    let what = format!("{entity} has no relationship {:?} for this key", shown(name));
    did_you_mean(Problem::new(Code::UnknownField, what), nearest.as_deref())
}

fn of_expand(catalog: &Catalog, scope: &Scope, entity: &EntityName, refusal: ExpandRefusal) -> Problem {
    match refusal {
        ExpandRefusal::Unknown { name: Unknown { name, .. }, is_field: true } => Problem::new(
            Code::BadRequest,
            format!("{name:?} is a field of {entity}, not a relationship; name it in $select"),
        ),
        ExpandRefusal::Unknown { name, is_field: false } => no_relationship(entity, &name),
        ExpandRefusal::OneRow => Problem::new(
            Code::BadRequest,
            "the relationship leads to one row and takes only $expand and $select".to_owned(),
        ),
        ExpandRefusal::Within { name, entity, refusal } => {
            of(catalog, scope, &entity, *refusal).detail(format!("in $expand of {name:?}"))
        }
    }
}

fn of_call(entity: &EntityName, refusal: CallRefusal) -> Problem {
    match refusal {
        CallRefusal::NoObject => {
            let what = format!("a call of {entity} takes one object with its parameters, not an array");
            Problem::new(Code::BadRequest, what)
        }
        CallRefusal::NoParameter(Unknown { name, nearest }) => {
            let what = format!("{entity} has no parameter {:?}", shown(&name));
            did_you_mean(Problem::new(Code::UnknownField, what), nearest.as_deref())
        }
        CallRefusal::Value(value) => {
            let what = format!("the parameter {:?} is {}: {}", value.name, value.ty, wanted(value.refusal));
            Problem::new(Code::InvalidValue, what)
        }
        CallRefusal::Missing(names) => {
            let what = format!("a call of {entity} needs a value for {}; null is allowed", quoted(&names));
            Problem::new(Code::InvalidValue, what)
        }
    }
}

/// Names as a message lists them.
#[must_use]
pub fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Says which row of a list it is about.
fn in_row(problem: Problem, at: Option<u16>) -> Problem {
    match at {
        Some(at) => problem.detail(format!("in the row at index {at} of the array, counted from 0")),
        None => problem,
    }
}
