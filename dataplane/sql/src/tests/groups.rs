//! Groups of rows, as SQL and as refusals.

use rowgate_core::problem::Code;

use super::*;
use crate::request::{AggregateFunction, Aggregation, GroupRequest, OrderBy};
use crate::resolve::{self, Refusal};
use crate::rest::problem;

/// `function(field) name`, `count() n`, `count(distinct day) days`.
fn aggregation(text: &str) -> Aggregation {
    let (call, name) = text.rsplit_once(") ").expect("a name");
    let (function, field) = call.split_once('(').expect("a call");
    let function = AggregateFunction::ALL.into_iter().find(|it| it.word() == function).expect("a function");
    let (distinct, field) = match field.strip_prefix("distinct ") {
        Some(field) => (true, field),
        None => (false, field),
    };
    let field = Some(field.to_owned()).filter(|field| !field.is_empty());
    Aggregation { name: name.to_owned(), function, field, distinct }
}

fn request(by: &[&str], aggregations: &[&str]) -> GroupRequest {
    GroupRequest {
        by: by.iter().map(|name| (*name).to_owned()).collect(),
        aggregations: aggregations.iter().map(|text| aggregation(text)).collect(),
        ..GroupRequest::default()
    }
}

fn having(text: &str) -> GroupRequest {
    let having = Some(filter::parse(text).expect("a condition"));
    GroupRequest { having, ..request(&["status"], &["sum(total) total_sum", "count() n"]) }
}

fn ordered(names: &[(&str, bool)]) -> GroupRequest {
    let orderby =
        names.iter().map(|(name, descending)| OrderBy { name: (*name).to_owned(), descending: *descending });
    GroupRequest {
        orderby: orderby.collect(),
        ..request(&["status", "id"], &["sum(total) sum", "count() n"])
    }
}

fn resolved(entity: &str, request: &GroupRequest) -> Result<Query, Refusal> {
    let (catalog, key) = (catalog(), key());
    let cursors = Cursors { key: &key, caller: "k1" };
    resolve::groups(&catalog, &catalog.scopes["set_x"], &entity_name(entity), request, cursors)
}

fn refused(request: &GroupRequest) -> Problem {
    let catalog = catalog();
    let refusal = resolved("orders", request).expect_err("a refusal");
    problem::of(&catalog, &catalog.scopes["set_x"], &entity_name("orders"), refusal)
}

fn grouped(request: &GroupRequest) -> String {
    show(&compile::read(&resolved("orders", request).expect("groups")).sql)
}

#[test]
fn groups_have_keys_aggregates_and_conditions() {
    let mut asked = having("total_sum ge 9 and (status ne null or n in (1,2))");
    asked.filter = Some(filter::parse("id gt 7").expect("a condition"));
    asked.aggregations.push(aggregation("count(distinct day) days"));
    let mut query = resolved("orders", &asked).expect("groups");
    query.count = true;
    let groups = |n: usize| {
        format!(
            concat!(
                r#" from (select t."status" as "k0", pg_catalog.sum(t."total") as "a0", pg_catalog.count(*) as "a1", "#,
                r#"pg_catalog.count(distinct t."day") as "a2" from "app"."orders" t where t."id" > ${} group by t."status") t "#,
                r#"where t."a0" >= ${} and (t."k0" is not null or t."a1" in (${}, ${}))"#
            ),
            n,
            n + 1,
            n + 2,
            n + 3
        )
    };
    let compiled = compile::read(&query);
    assert_eq!(
        show(&compiled.sql),
        format!(
            r#"select t."k0", t."a0", t."a1", t."a2", (select pg_catalog.count(*){}){} order by t."k0" limit 101 <- 23:"7" 1700:"9" 20:"1" 20:"2" 23:"7" 1700:"9" 20:"1" 20:"2""#,
            groups(1),
            groups(5)
        )
    );
    // a value in `having` is beside no field of the entity
    let fields: Vec<_> = compiled.sql.binds().iter().map(|bind| bind.field.is_some()).collect();
    assert_eq!(fields[..4], [true, false, false, false]);
    let labels: Vec<_> = compiled.shape.columns.iter().filter_map(|it| it.label.as_deref()).collect();
    assert_eq!(labels, [r#""status":"#, r#""total_sum":"#, r#""n":"#, r#""days":"#]);
    assert_eq!(compiled.shape.position, [0]);
}

#[test]
fn rows_without_keys_are_one_group() {
    assert_eq!(
        grouped(&GroupRequest { first: Some(10), ..request(&[], &["max(mood) top"]) }),
        r#"select t."a0" from (select pg_catalog.max(t."mood") as "a0" from "app"."orders" t) t limit 1 <- "#
    );
    assert_eq!(
        grouped(&request(&["ID Number"], &[])),
        r#"select t."k0" from (select t."id_number" as "k0" from "app"."orders" t group by t."id_number") t order by t."k0" limit 101 <- "#
    );
}

/// The keys end the order, and the next page stands after the last group of the one before.
#[test]
fn groups_come_in_pages() {
    let number = Some(vec![0, 0, 0, 0, 0, 0, 0, 7]);
    for (order, position, wanted) in [
        (
            &[("n", true)][..],
            vec![number.clone(), Some(b"x".to_vec()), Some(vec![0, 0, 0, 1])],
            r#"where (t."a1" <= $1 and (t."a1" < $2 or (t."k0" > $3 or t."k0" is null or (t."k0" = $4 and (t."k1" > $5))))) order by t."a1" desc, t."k0", t."k1" limit 101 <- 20:"#,
        ),
        (
            &[("sum", false), ("id", false)],
            vec![None, Some(vec![0, 0, 0, 1]), None],
            r#"where (t."a0" is null and (t."k1" >= $1 and (t."k1" > $2 or (false)))) order by t."a0", t."k1", t."k0" limit 101 <- 23:"#,
        ),
    ] {
        let asked = ordered(order);
        let first = resolved("orders", &asked).expect("groups");
        let token = cursor::encode(&key(), first.binding.expect("a page can follow"), &position);
        let next = GroupRequest { after: Some(token.clone()), ..asked };
        let sql = grouped(&next);
        assert!(sql.contains(wanted), "{sql}");
        for other in [
            GroupRequest { having: Some(filter::parse("n gt 1").expect("a condition")), ..next.clone() },
            GroupRequest { filter: Some(filter::parse("id gt 1").expect("a condition")), ..next.clone() },
            GroupRequest { orderby: vec![], ..next.clone() },
            GroupRequest { by: vec!["status".into(), "day".into()], orderby: vec![], ..next.clone() },
            GroupRequest {
                aggregations: request(&[], &["max(total) sum", "count() n"]).aggregations,
                ..next
            },
        ] {
            let is_cursor = refused(&other).code == Code::InvalidCursor;
            // an order that is refused by itself has no cursor
            assert!(is_cursor, "{other:?}");
        }
    }
}

/// PostgreSQL moves a condition on keys below the grouping: before those of a view, if nothing stands between.
#[test]
fn conditions_on_groups_of_a_view_are_tried_behind_its_own() {
    let mut query = resolved("orders", &having("10 div n gt 1")).expect("groups");
    Arc::make_mut(&mut query.entity).kind = EntityKind::View;
    let sql = show(&compile::read(&query).sql);
    assert!(sql.contains(r#"group by t."status" offset 0) t where $1 / t."a1" > $2"#), "{sql}");
}

#[test]
fn what_cannot_be_grouped_is_refused() {
    let asked = |by: &[&str], aggregations: &[&str]| request(by, aggregations);
    let names: Vec<String> = (0..65).map(|n| format!("count() n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (request, code, words) in [
        (asked(&[], &[]), Code::BadRequest, "at least one field in groupBy, or one aggregation"),
        (asked(&["doc"], &[]), Code::BadRequest, r#""doc" is json, by which rows cannot be grouped"#),
        (asked(&["email"], &[]), Code::BadRequest, r#""email" is public.citext, by which"#),
        (asked(&["id", "id"], &[]), Code::BadRequest, r#"groupBy names "id" twice"#),
        (asked(&["id"; 33], &[]), Code::BadRequest, "groupBy has more than 32 fields"),
        (asked(&[], &names), Code::BadRequest, "more than 64 aggregations"),
        (asked(&[], &["count() 1n"]), Code::BadRequest, r#"cannot be named "1n""#),
        (asked(&[], &["count() a b"]), Code::BadRequest, r#"cannot be named "a b""#),
        (asked(&[], &["count() n", "sum(id) n"]), Code::BadRequest, r#"two aggregations are named "n""#),
        (asked(&["id"], &["count() id"]), Code::BadRequest, r#""id" is a field of groupBy"#),
        (asked(&[], &["sum() n"]), Code::BadRequest, r#""n" needs a field: sum"#),
        (asked(&[], &["sum(status) n"]), Code::BadRequest, r#""status" is text, which has no sum"#),
        (asked(&[], &["max(doc) n"]), Code::BadRequest, r#""doc" is json, which has no max"#),
        (asked(&[], &["count(distinct doc) n"]), Code::BadRequest, "no count of distinct values"),
        (having("total_sam gt 1"), Code::UnknownField, r#"did you mean "total_sum"?"#),
        (having("total gt 1"), Code::UnknownField, r#"having names "total", which is neither"#),
        (having("n/total gt 1"), Code::InvalidFilter, "having is about groups and follows no relationship"),
        (having("lines/any()"), Code::InvalidFilter, "follows no relationship"),
        (having("n gt 'x'"), Code::InvalidFilter, r#""n" is bigint"#),
        (ordered(&[("totl", true)]), Code::UnknownField, r#"$orderby names "totl""#),
        (ordered(&[("n", true), ("n", false)]), Code::InvalidOrderBy, "twice"),
        (GroupRequest { first: Some(0), ..having("n gt 1") }, Code::BadRequest, "from 1 to"),
        (GroupRequest { after: Some("x".into()), ..having("n gt 1") }, Code::InvalidCursor, "another query"),
    ] {
        let problem = refused(&request);
        let said = format!("{} {}", problem.message, problem.details.join(" "));
        assert!(problem.code == code && said.contains(words), "{request:?}: {problem:?}");
    }
}

/// In every place that takes the name of a field.
#[test]
fn a_field_that_the_key_may_not_read_is_one_that_is_not_there() {
    for request in [
        request(&["NAME"], &[]),
        request(&[], &["sum(NAME) n"]),
        request(&[], &["count(NAME) n"]),
        request(&[], &["count(distinct NAME) n"]),
    ] {
        let answer = |name: &str| {
            let mut request = request.clone();
            request.by.iter_mut().for_each(|it| *it = name.to_owned());
            request.aggregations.iter_mut().for_each(|it| it.field = Some(name.to_owned()));
            format!("{:?}", refused(&request)).replace(name, "NAME")
        };
        assert_eq!(answer("secret"), answer("absent"));
        assert!(answer("secret").contains("orders has no field"), "{}", answer("secret"));
    }
}
