//! Parameters that are not options and would be if they were spelt so. Answering as if they were not there would give all
//! rows to whoever asked for some.

use rowgate_core::problem::{Code, Problem};

use super::spelling::{Meant, advice, meant};
use crate::rest::filter::Spelt;

/// Refuses a parameter that is an option in another spelling, or the name of a field that the caller may read, which
/// `field` finds. `of_row`: of a row, which takes only `$select`.
pub(crate) fn refuse_strays<'a>(
    others: &[(String, String)],
    of_row: bool,
    field: &dyn Fn(&str) -> Option<Spelt<'a>>,
) -> Result<(), Problem> {
    for (name, value) in others {
        let shown = super::shown(name);
        let condition = of_field(name, value, field);
        let what = match (meant(name), condition) {
            (Some(meant), condition) => {
                let problem = bad(format!(
                    "there is no option {shown:?}; {}",
                    match of_row && meant != Meant::Select {
                        true => ONLY_SELECT.to_owned(),
                        false => advice(meant, name, value, field),
                    }
                ));
                return Err(match condition.filter(|_| !of_row) {
                    Some(condition) => {
                        problem.detail(format!("for the field of that name write $filter={condition}"))
                    }
                    None => problem,
                });
            }
            (None, Some(_)) if of_row => format!("there is no option {shown:?}; {ONLY_SELECT}"),
            (None, Some(condition)) => format!("there is no option {shown:?}; write $filter={condition}"),
            (None, None) => continue,
        };
        return Err(bad(what));
    }
    Ok(())
}

const ONLY_SELECT: &str =
    "a row read by its key takes only $expand and $select: write $filter at the URL of the collection";

/// The condition that `id=eq.5`, `id[gt]=5`, `id__gt=5`, `id!=5` or `id>=5` stands for.
fn of_field<'a>(name: &str, value: &str, field: &dyn Fn(&str) -> Option<Spelt<'a>>) -> Option<String> {
    if let Some(found) = field(name) {
        return Some(found.condition(value));
    }
    let (base, operator) = match name.split_once('[') {
        Some((base, operator)) => (base, operator.trim_end_matches(']')),
        None => match name.strip_suffix(['!', '<', '>']) {
            Some(base) => (base, &name[base.len()..]),
            None => name.rsplit_once("__")?,
        },
    };
    let operator = match operator {
        "!" => "ne",
        "<" => "le",
        ">" => "ge",
        other => other,
    };
    field(base.trim_end())?.compared(operator, value)
}

fn bad(what: String) -> Problem {
    Problem::new(Code::BadRequest, what)
}
