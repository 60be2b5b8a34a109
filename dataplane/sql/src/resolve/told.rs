//! What a key is told that it cannot write: no field is named that it does not know.

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use super::visible::Visible;
use crate::catalog::Rights;
use crate::text::Bind;

pub(super) fn forbidden(what: String) -> Problem {
    Problem::new(Code::Forbidden, what)
}

pub(super) fn filled_in(name: &str) -> Problem {
    let what = format!("the field {name:?} is filled in by the database; leave it out");
    Problem::new(Code::ReadOnlyColumn, what)
}

pub(super) fn needed(entity: &EntityName, missing: &[String]) -> Problem {
    let what = format!("a row of {entity} needs a value that is not null for {}", missing.join(", "));
    Problem::new(Code::InvalidValue, what)
}

pub(super) fn delete_blocked(visible: &Visible<'_>, flag: &str) -> Problem {
    let fields = &visible.entity.fields;
    let at = fields.iter().position(|field| field.column.as_str() == flag).filter(|at| visible.knows(*at));
    let set =
        at.map_or_else(|| "their flag for that".to_owned(), |at| format!("{:?} to true", fields[at].name));
    let what = format!("rows of {} are not deleted; set {set} with PATCH instead", visible.entity.name);
    Problem::delete_blocked(what)
}

/// Of what a PUT or a PATCH sets, `first` and perhaps more may not be changed by this key. A field that it does not know is one
/// that PUT has added.
pub(super) fn not_all(visible: &Visible<'_>, set: &[(usize, Option<Bind>)], first: usize) -> Problem {
    let Rights { update, .. } = visible.rights();
    let hidden = |at: &usize| update.get(*at) != Some(&true) && !visible.knows(*at);
    let name = &visible.entity.name;
    if set.iter().any(|(at, _)| hidden(at)) {
        return forbidden(format!(
            "this key may not set every field of {name}; change those that it may set with PATCH"
        ));
    }
    forbidden(format!("this key may not change the field {:?}", visible.entity.fields[first].name))
}

pub(crate) fn another_key(name: &str) -> Problem {
    let what = format!("the key field {name:?} is not what the address says; leave it out");
    Problem::new(Code::BadRequest, what)
}

/// Says which row of a list it is about.
pub(crate) fn in_row(problem: Problem, at: Option<u16>) -> Problem {
    match at {
        Some(at) => problem.detail(format!("in the row at index {at} of the array, counted from 0")),
        None => problem,
    }
}
