//! Groups of rows that are refused, in the words of `groupBy` and `aggregations`.

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use super::{did_you_mean, filter, shown};
use crate::resolve::{FilterRefusal, GroupRefusal, OrderRefusal, Unknown};

pub(super) fn of(entity: &EntityName, refusal: GroupRefusal) -> Problem {
    let what = match refusal {
        GroupRefusal::Nothing => "name at least one field in groupBy, or one aggregation".to_owned(),
        GroupRefusal::TooManyKeys { max } => format!("groupBy has more than {max} fields; name fewer"),
        GroupRefusal::TooManyAggregations { max } => {
            format!("there are more than {max} aggregations; split them into several requests")
        }
        GroupRefusal::KeyTwice(name) => format!("groupBy names {name:?} twice; name it once"),
        GroupRefusal::NoKey { name, ty } => {
            format!("the field {name:?} is {ty}, by which rows cannot be grouped; leave it out of groupBy")
        }
        GroupRefusal::NoName { name, max } => format!(
            "an aggregation cannot be named {:?}; write at most {max} letters, digits and underscores, not beginning with a digit",
            shown(&name)
        ),
        GroupRefusal::NameTaken { name, is_key: true } => {
            format!("{name:?} is a field of groupBy; give the aggregation another name")
        }
        GroupRefusal::NameTaken { name, is_key: false } => {
            format!("two aggregations are named {name:?}; give one another name")
        }
        GroupRefusal::NeedsField { name, function } => {
            let function = function.word();
            match function {
                "count" => format!(
                    "the aggregation {name:?} counts distinct values; name their field, or leave distinct out"
                ),
                _ => format!("the aggregation {name:?} needs a field: {function} is computed of its values"),
            }
        }
        GroupRefusal::NoAggregate { field, ty, function, is_distinct } => {
            let (function, distinct) =
                (function.word(), if is_distinct { " of distinct values" } else { "" });
            format!("the field {field:?} is {ty}, which has no {function}{distinct}")
        }
        GroupRefusal::Having(FilterRefusal::NoField { unknown, .. }) => {
            return no_name("having", &unknown);
        }
        GroupRefusal::Having(FilterRefusal::NoRelationship(_)) => {
            let what =
                "having is about groups and follows no relationship; put conditions on rows into the filter";
            return Problem::new(Code::InvalidFilter, what);
        }
        GroupRefusal::Having(refusal) => return filter::of(entity, &|_| None, refusal),
        GroupRefusal::Order(OrderRefusal::NoField(unknown)) => return no_name("$orderby", &unknown),
        GroupRefusal::Order(refusal) => return super::of_terms(&refusal),
    };
    Problem::new(Code::BadRequest, what)
}

fn no_name(place: &str, Unknown { name, nearest }: &Unknown) -> Problem {
    let what =
        format!("{place} names {:?}, which is neither a field of groupBy nor an aggregation", shown(name));
    did_you_mean(Problem::new(Code::UnknownField, what), nearest.as_deref())
}
