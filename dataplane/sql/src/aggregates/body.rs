//! The body: JSON of which every member is known.

use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};

use super::in_body;
use crate::request::{AggregateFunction, Aggregation, GroupRequest, Input, OrderBy, fields, items};
use crate::rest::{body, filter, query_string};

const EXAMPLE: &str =
    r#"send an object such as {"groupBy": ["status"], "aggregations": [{"function": "count", "as": "n"}]}"#;
const MEMBERS: [&str; 7] = ["groupBy", "aggregations", "filter", "having", "orderby", "first", "after"];
const OF_AGGREGATION: [&str; 4] = ["function", "field", "as", "distinct"];

/// A member that is null is one that is not there.
pub(super) fn parse(bytes: &[u8]) -> Result<GroupRequest, Problem> {
    let mut request = GroupRequest::default();
    for (name, value) in body::object(bytes, EXAMPLE)? {
        if value == Input::Null && MEMBERS.contains(&&*name) {
            continue;
        }
        match name.as_str() {
            "groupBy" => request.by = names(&value)?,
            "aggregations" => request.aggregations = aggregations(&value)?,
            "filter" => request.filter = Some(condition("filter", value)?),
            "having" => request.having = Some(condition("having", value)?),
            "orderby" => request.orderby = order(value)?,
            "first" => request.first = Some(number(&value)?),
            "after" => request.after = Some(text("after", value)?),
            _ => return Err(unknown("the body", &name, &MEMBERS)),
        }
    }
    Ok(request)
}

fn names(value: &Input<'_>) -> Result<Vec<String>, Problem> {
    let wrong = || refused("groupBy is not an array of field names; write [\"status\"]");
    let Input::List(raw) = value else { return Err(wrong()) };
    let items = items(raw).map_err(|_| wrong())?;
    let name = |item| match item {
        Ok(Input::Text(name)) => Ok(name),
        _ => Err(wrong()),
    };
    items.map(name).collect()
}

fn aggregations(value: &Input<'_>) -> Result<Vec<Aggregation>, Problem> {
    let wrong = || {
        refused(
            r#"aggregations is not an array of objects; write [{"function": "sum", "field": "amount", "as": "total"}]"#,
        )
    };
    let Input::List(raw) = value else { return Err(wrong()) };
    let each = |(i, item)| match item {
        Ok(Input::Object(raw)) => aggregation(raw)
            .map_err(|problem| problem.detail(format!("in the aggregation at index {i}, counted from 0"))),
        _ => Err(wrong()),
    };
    items(raw).map_err(|_| wrong())?.enumerate().map(each).collect()
}

fn aggregation(raw: &str) -> Result<Aggregation, Problem> {
    let (mut name, mut function, mut field, mut distinct) = (None, None, None, false);
    let members = fields(raw).map_err(|_| refused("it is not valid JSON"))?;
    for (member, value) in members {
        match (member.as_str(), value) {
            ("function", value) => function = Some(self::function(&text("function", value)?)?),
            ("as", value) => name = Some(text("as", value)?),
            ("field" | "distinct", Input::Null) => {}
            ("field", value) => field = Some(text("field", value)?),
            ("distinct", Input::Bool(value)) => distinct = value,
            ("distinct", _) => return Err(refused("distinct is true or false, without quotes")),
            (member, _) => return Err(unknown("an aggregation", member, &OF_AGGREGATION)),
        }
    }
    let function = function.ok_or_else(|| refused(format!("function is missing; {}", functions())))?;
    let name = name.ok_or_else(|| {
        refused(format!("as is missing; name the result, such as \"as\": \"{}_1\"", function.word()))
    })?;
    Ok(Aggregation { name, function, field, distinct })
}

fn function(word: &str) -> Result<AggregateFunction, Problem> {
    let known = AggregateFunction::ALL;
    known.into_iter().find(|it| it.word() == word).ok_or_else(|| {
        let problem = refused(format!("there is no function {:?}; {}", shown(word), functions()));
        hinted(problem, nearest(word, known.map(AggregateFunction::word)))
    })
}

fn functions() -> String {
    let [first @ .., last] = AggregateFunction::ALL.map(AggregateFunction::word);
    format!("the functions are {} and {last}", first.join(", "))
}

fn condition(member: &str, value: Input<'_>) -> Result<crate::request::Expr, Problem> {
    filter::parse(&text(member, value)?).map_err(|problem| in_body(problem, member))
}

fn order(value: Input<'_>) -> Result<Vec<OrderBy>, Problem> {
    query_string::orderby(&text("orderby", value)?).map_err(|problem| in_body(problem, "filter"))
}

fn number(value: &Input<'_>) -> Result<i64, Problem> {
    let number = match value {
        Input::Number(text) => text.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| refused("first is not a whole number; write \"first\": 100"))
}

fn text(member: &str, value: Input<'_>) -> Result<String, Problem> {
    match value {
        Input::Text(text) => Ok(text),
        _ => Err(refused(format!("{member} is not a text; write it in double quotes"))),
    }
}

fn unknown(place: &str, name: &str, known: &[&str]) -> Problem {
    let problem =
        refused(format!("{place} has no member {:?}; its members are {}", shown(name), known.join(", ")));
    hinted(problem, nearest(name, known.iter().copied()))
}

fn hinted(problem: Problem, nearest: Option<&str>) -> Problem {
    match nearest {
        Some(near) => problem.detail(format!("did you mean {near:?}?")),
        None => problem,
    }
}

/// As much of a name as is repeated to its sender.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

fn refused(what: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_read() {
        let body = br#"{"groupBy": ["status", "ID Number"], "aggregations": [
            {"function": "sum", "field": "amount", "as": "total", "distinct": true}, {"function": "count", "field": null, "as": "n"}],
            "filter": "id gt 1", "having": "total gt 5", "orderby": "total desc,status", "first": -1, "after": "x"}"#;
        let request = parse(body).expect("a request");
        assert_eq!(request.by, ["status", "ID Number"]);
        let shown: Vec<_> =
            request.aggregations.iter().map(|it| (&*it.name, it.function.word(), it.distinct)).collect();
        assert_eq!(shown, [("total", "sum", true), ("n", "count", false)]);
        let printed = [request.filter, request.having].map(|it| it.expect("a condition").to_string());
        assert_eq!(printed, ["id gt 1", "total gt 5"]);
        let order: Vec<_> = request.orderby.iter().map(|it| (&*it.name, it.descending)).collect();
        assert_eq!(order, [("total", true), ("status", false)]);
        assert_eq!((request.first, request.after.as_deref()), (Some(-1), Some("x")));
        let nulls =
            br#"{"groupBy": null, "aggregations": null, "filter": null, "having": null, "orderby": null,
            "first": null, "after": null}"#;
        assert_eq!(parse(nulls).expect("a request"), GroupRequest::default());
    }

    #[test]
    fn what_is_no_request_is_refused_with_what_to_write() {
        let of_one = |aggregation: &str| format!(r#"{{"aggregations": [{aggregation}]}}"#);
        for (body, words) in [
            (String::new(), "it is empty"),
            ("[]".to_owned(), "the body is not an object; send an object such as"),
            (r#"{"groupBy": ["a"], "groupBy": []}"#.to_owned(), "\"groupBy\" twice"),
            (r#"{"groupby": []}"#.to_owned(), "did you mean \"groupBy\"?"),
            (r#"{"$filter": "a eq 1"}"#.to_owned(), "did you mean \"filter\"?"),
            (r#"{"groupBy": "status"}"#.to_owned(), "not an array of field names"),
            (r#"{"groupBy": [1]}"#.to_owned(), "not an array of field names"),
            (r#"{"aggregations": {}}"#.to_owned(), "not an array of objects"),
            (r#"{"first": "10"}"#.to_owned(), "first is not a whole number"),
            (r#"{"first": 1.5}"#.to_owned(), "first is not a whole number"),
            (r#"{"after": 7}"#.to_owned(), "after is not a text"),
            (r#"{"filter": {"a": 1}}"#.to_owned(), "filter is not a text"),
            (r#"{"filter": "a ="}"#.to_owned(), ""),
            (r#"{"having": "a eq"}"#.to_owned(), ""),
            (r#"{"orderby": "a down"}"#.to_owned(), "only asc or desc may follow a field in orderby"),
            (of_one("7"), "not an array of objects"),
            (of_one("{}"), "the functions are sum, avg, min, max and count"),
            (of_one(r#"{"function": "summ", "as": "a"}"#), "did you mean \"sum\"?"),
            (of_one(r#"{"function": "sum"}"#), "as is missing"),
            (of_one(r#"{"function": "sum", "as": "a", "distinct": "true"}"#), "distinct is true or false"),
            (of_one(r#"{"function": "sum", "as": "a", "feild": "b"}"#), "did you mean \"field\"?"),
            (of_one(r#"{"function": "sum", "as": 1}"#), "in the aggregation at index 0"),
        ] {
            let problem = parse(body.as_bytes()).expect_err(&body);
            let said = format!("{} {}", problem.message, problem.details.join(" "));
            assert!(said.contains(words) && problem.code.status() == 400, "{body}: {problem:?}");
            // options have no dollar signs here
            assert!(!said.replace("$filter\"; its", "").contains('$'), "{body}: {said}");
        }
    }
}
