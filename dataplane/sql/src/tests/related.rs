//! Conditions on rows of other entities, as SQL and as refusals.

use rowgate_core::problem::Code;

use super::nested::expanded_as;
use super::*;
use crate::compile::ListPlan;
use crate::query::Predicate;

/// What stands behind `where` of a read.
fn condition(entity: &str, filter: &str) -> String {
    let sql = sql(
        entity,
        &format!("$select=line&$filter={filter}")
            .replace("line&", if entity == "orders" { "id&" } else { "line&" }),
    );
    let (_, rest) = sql.split_once(" where ").expect("a condition");
    rest.split_once(" order by t.").map_or(rest, |(condition, _)| condition).to_owned()
}

#[test]
fn conditions_on_other_entities_are_rows_that_there_are() {
    let order = r#"from "app"."orders" t100 where t100."id" = t."order_id""#;
    let lines = r#"from "app"."order""lines" t100 where t100."order_id" = t."id""#;
    for (entity, filter, wanted) in [
        ("lines", "order/status eq 'x'", format!(r#"exists (select {order} and t100."status" = $1)"#)),
        (
            "lines",
            "not (order/status eq 'x' or qty gt 1)",
            format!(r#"not ((select t100."status" = $1 {order}) or t."qty" > $2)"#),
        ),
        (
            "lines",
            "order/status eq null",
            format!(r#"not exists (select {order} and t100."status" is not null)"#),
        ),
        (
            "lines",
            "order/status ne null",
            format!(r#"exists (select {order} and t100."status" is not null)"#),
        ),
        (
            "lines",
            "order/paid and order/id in (1,2)",
            format!(
                r#"exists (select {order} and t100."paid") and exists (select {order} and t100."id" in ($1, $2))"#
            ),
        ),
        ("orders", "lines/any()", format!("exists (select {lines})")),
        ("orders", "lines/any(l: l/qty gt 5)", format!(r#"exists (select {lines} and t100."qty" > $1)"#)),
        (
            "orders",
            "lines/all(l:l/qty gt 5 and l/line ne 1)",
            format!(r#"not exists (select {lines} and (t100."qty" > $1 and t100."line" <> $2) is not true)"#),
        ),
        (
            "orders",
            "lines/any(l: l/order/lines/any(m: m/qty eq 1) and l/order/status eq 'x')",
            format!(
                r#"exists (select {lines} and (exists (select from "app"."orders" t101 where t101."id" = t100."order_id" and exists (select from "app"."order""lines" t102 where t102."order_id" = t101."id" and t102."qty" = $1)) and exists (select from "app"."orders" t101 where t101."id" = t100."order_id" and t101."status" = $2)))"#
            ),
        ),
    ] {
        assert_eq!(condition(entity, filter), wanted, "{filter}");
    }
}

#[test]
fn conditions_on_other_entities_are_refused_with_what_to_write() {
    let many = vec!["lines/any()"; 17].join(" or ");
    for (entity, filter, code, words) in [
        (
            "orders",
            "closed/id eq 1",
            Code::UnknownField,
            r#"orders has no relationship "closed" for this key"#,
        ),
        (
            "orders",
            "ungranted/any()",
            Code::UnknownField,
            r#"orders has no relationship "ungranted" for this key"#,
        ),
        ("orders", "line/any()", Code::UnknownField, r#"did you mean "lines"?"#),
        ("lines", "order/secret eq 'x'", Code::UnknownField, r#"orders has no field "secret" for this key"#),
        ("lines", "order/nope eq 'x'", Code::UnknownField, r#"orders has no field "nope" for this key"#),
        ("orders", "lines/any(l: l/email eq 'x')", Code::UnknownField, r#"lines has no field "email""#),
        ("orders", "lines/qty eq 1", Code::InvalidFilter, "write lines/any(x: x/field eq 1)"),
        ("orders", "first/qty eq 1", Code::InvalidFilter, "may lead to several rows"),
        ("lines", "order/id add 1 eq qty", Code::InvalidFilter, "only one with one"),
        (
            "lines",
            "order/secret eq status",
            Code::UnknownField,
            r#"orders has no field "secret" for this key"#,
        ),
        (
            "lines",
            "closed/id eq qty",
            Code::UnknownField,
            r#"lines has no relationship "closed" for this key"#,
        ),
        ("orders", "lines/qty eq id", Code::InvalidFilter, "may lead to several rows"),
        ("lines", "order/status eq qty", Code::InvalidFilter, "cannot be compared"),
        ("lines", "order/status gt 5", Code::InvalidFilter, "status"),
        ("orders", "lines/any(qty gt 1)", Code::InvalidFilter, "a variable and a colon"),
        ("orders", "lines/all()", Code::InvalidFilter, "a variable and a colon"),
        ("orders", "lines/any(l: qty gt 1)", Code::InvalidFilter, "with the variable: l/qty"),
        ("orders", "lines/any(l: l/qty gt 1", Code::InvalidFilter, "closing parenthesis"),
        ("orders", &many, Code::InvalidFilter, "more than 16"),
    ] {
        let problem = collection(entity, &format!("$filter={filter}")).expect_err(filter);
        let said = format!("{} {}", problem.message, problem.details.join(" "));
        assert!(problem.code == code && said.contains(words), "{filter}: {problem:?}");
    }
}

#[test]
fn fields_of_two_rows_are_compared() {
    let order = r#"from "app"."orders" t100 where t100."id" = t."order_id" limit 1)"#;
    for (filter, wanted) in [
        ("order/id lt qty", format!(r#"(select t100."id" {order} < t."qty""#)),
        ("not (line ge order/id)", format!(r#"not (t."line" >= (select t100."id" {order})"#)),
    ] {
        assert_eq!(condition("lines", filter), wanted, "{filter}");
    }
    let within = condition("orders", "lines/any(l: l/order/id ne l/qty)");
    assert!(within.contains(r#"(select t101."id" from "app"."orders" t101 where t101."id" = t100."order_id" limit 1) <> t100."qty""#), "{within}");
}

#[test]
fn rows_are_ordered_by_fields_of_rows_that_they_refer_to() {
    let text = sql("lines", "$select=line&$orderby=order/status desc,qty");
    for part in [
        r#"from "app"."order""lines" t left join "app"."orders" t1 on t1."id" = t."order_id""#,
        r#"order by t1."status" desc, t."qty""#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // within rows the page of each is cut by the same order
    let options = "$select=id&$expand=lines($select=line;$orderby=order/status)";
    let levels = expanded_as("orders", options, ListPlan::Apart).0;
    assert_eq!(levels[1].matches(r#"order by t1."status""#).count(), 2, "{levels:?}");
    assert_eq!(levels[1].matches(r#"left join "app"."orders" t1"#).count(), 2, "{levels:?}");
    for (entity, order, code, words) in [
        ("lines", "order/secret", Code::UnknownField, r#"orders has no field "secret" for this key"#),
        ("lines", "nope/id", Code::UnknownField, r#"lines has no relationship "nope" for this key"#),
        ("orders", "lines/qty", Code::InvalidOrderBy, "may lead to several rows"),
        ("orders", "first/qty", Code::InvalidOrderBy, "may lead to several rows"),
        ("lines", "order/status,order/status desc", Code::InvalidOrderBy, "twice"),
    ] {
        let problem = collection(entity, &format!("$orderby={order}")).expect_err(order);
        let said = format!("{} {}", problem.message, problem.details.join(" "));
        assert!(problem.code == code && said.contains(words), "{order}: {problem:?}");
    }
}

/// What may raise is tried on no row that a view hides, whether it is a row of the read or one that a relationship leads to.
#[test]
fn conditions_on_a_view_are_tried_behind_its_own() {
    let mut query = collection("lines", "$filter=10 div order/id gt 1").expect("a question");
    let Some(Predicate::Related(related)) = &mut query.filter else { panic!("{:?}", query.filter) };
    Arc::make_mut(&mut related.entity).kind = EntityKind::View;
    let sql = show(&compile::read(&query).sql);
    let fenced = concat!(
        r#"where exists (select from (select t100."id" from "app"."orders" t100 where t100."id" = t."order_id" offset 0) t100 "#,
        r#"where $1 / t100."id" > $2)"#
    );
    assert!(sql.contains(fenced), "{sql}");
}
