//! Rows within rows, and groups of rows, as SQL.

use rowgate_core::problem::Code;

use super::*;
use crate::catalog::{Entity, Link, Through};
use crate::compile::{CompiledLevel, CompiledRead, ListPlan, Member};
use crate::query::{Aggregate, Form, Group, Selected, ToMany, ToOne};
use crate::request::{AggregateFunction, Aggregation, GroupRequest, OrderBy};
use crate::resolve;

fn at(entity: &Entity, field: &str) -> usize {
    entity.fields.iter().position(|it| it.name == field).expect("a field")
}

/// Fields of an entity, by name.
fn fields(entity: &Entity, names: &[&str]) -> Vec<Selected> {
    names.iter().map(|name| Selected::Field(at(entity, name))).collect()
}

/// A read of an entity with these fields and options, and what `more` adds to its objects.
fn query(entity: &str, options: &str, names: &[&str], more: Vec<Selected>) -> Query {
    let mut query = collection(entity, options).expect("a question");
    Arc::make_mut(&mut query.entity).key_is_unique = true;
    query.select = fields(&query.entity, names);
    query.select.extend(more);
    query
}

/// The lines of an order.
fn lines(options: &str, names: &[&str], more: Vec<Selected>) -> Selected {
    let query = query("lines", options, names, more);
    Selected::Many(Box::new(lines_of_orders(query)))
}

fn lines_of_orders(query: Query) -> ToMany {
    let link = Link::Fields(vec![(at(&query_of("orders"), "id"), at(&query.entity, "order_id"))]);
    ToMany { link, lists: vec![query], form: Form::Array { name: "lines".to_owned() } }
}

/// The order of a line.
fn order(names: &[&str], more: Vec<Selected>) -> Selected {
    let entity = query_of("orders");
    let link = vec![(at(&query_of("lines"), "order_id"), at(&entity, "id"))];
    let select = fields(&entity, names).into_iter().chain(more).collect();
    Selected::One(Box::new(ToOne { name: "order".to_owned(), link, entity, select }))
}

fn query_of(entity: &str) -> Arc<Entity> {
    collection(entity, "").expect("a question").entity
}

fn levels(read: &CompiledRead) -> Vec<String> {
    std::iter::once(&read.sql)
        .chain(read.levels.iter().filter_map(|level| level.sql.as_ref()))
        .map(show)
        .collect()
}

#[test]
fn a_row_that_is_referred_to_is_joined_and_its_columns_make_an_object() {
    let read = compile::read(&query("lines", "$first=2", &["line"], vec![order(&["status"], vec![])]));
    assert_eq!(
        levels(&read),
        [concat!(
            r#"select t."line", t1."status", t1."id", t."order_id" from "app"."order""lines" t "#,
            r#"left join "app"."orders" t1 on t1."id" = t."order_id" order by t."order_id", t."line" limit 3 <- "#,
        )]
    );
    let object =
        Member::Object { label: r#""order":"#.into(), presence: Some(2), members: vec![Member::Column(1)] };
    assert_eq!(read.members, [Member::Column(0), object]);
    assert_eq!(read.shape.position, [3, 0]);
}

#[test]
fn rows_that_refer_to_one_are_a_statement_for_all_rows_around() {
    let read = compile::read(&query(
        "orders",
        "$filter=total+gt+5&$first=10",
        &["id"],
        vec![lines("$filter=qty+gt+1&$first=1", &["qty"], vec![])],
    ));
    assert_eq!(
        levels(&read),
        [
            r#"select t."id" from "app"."orders" t where t."total" > $1 order by t."id" limit 11 <- 1700:"5""#,
            concat!(
                r#"select t."qty", t."order_id", t."line", p."id" from (select t."id" from "app"."orders" t "#,
                r#"where t."total" > $1 order by t."id" limit 11) p cross join lateral "#,
                r#"(select t."order_id", t."line", t."qty" from "app"."order""lines" t where t."order_id" = p."id" and "#,
                r#"t."qty" > $2 order by t."order_id", t."line" limit 2) t order by t."order_id", t."line" "#,
                r#"<- 1700:"5" 23:"1""#,
            ),
        ]
    );
    let more = r#""lines@hasMore":"#.into();
    let list = Member::List { label: r#""lines":"#.into(), level: 0, more, count: None };
    assert_eq!(read.members, [Member::Column(0), list]);
    let level = &read.levels[0];
    assert_eq!((level.around, &*level.key_around, &*level.key), (None, &[0][..], &[3][..]));
    assert_eq!((level.take, &*level.shape.position, level.members.len()), (1, &[1, 2][..], 0));
}

#[test]
fn lists_nest_and_a_row_of_several_rows_around_comes_once() {
    let inner = lines("", &["line"], vec![]);
    let outer = lines("", &["line"], vec![order(&["id"], vec![inner])]);
    let read = compile::read(&query("orders", "", &["id"], vec![outer]));
    let orders = r#"select t."id" from "app"."orders" t order by t."id" limit 101"#;
    let page = r#"(select t."order_id", t."line" from "app"."order""lines" t where t."order_id" = p."id" order by t."order_id", t."line" limit 101) t"#;
    let referred = r#" left join "app"."orders" t1 on t1."id" = t."order_id""#;
    assert_eq!(
        levels(&read)[1..],
        [
            format!(
                r#"select t."line", t1."id", t."order_id", p."id" from ({orders}) p cross join lateral {page}{referred} order by t."order_id", t."line" <- "#
            ),
            format!(
                r#"select t."line", t."order_id", p."id" from (select distinct t."id" from (select t1."id" from ({orders}) p cross join lateral {page}{referred}) t) p cross join lateral {page} order by t."order_id", t."line" <- "#
            ),
        ]
    );
    assert_eq!((read.levels[1].around, &*read.levels[1].key_around), (Some(0), &[1][..]));
}

/// What a request of REST with `$expand` sends, the read first, with each list by itself.
fn expanded(entity: &str, options: &str) -> Vec<String> {
    expanded_as(entity, options, ListPlan::Apart).0
}

/// And the bounds of its levels. One whose rows come in the statement of those around has an empty one.
pub(super) fn expanded_as(entity: &str, options: &str, plan: ListPlan) -> (Vec<String>, Vec<Option<usize>>) {
    let query = collection(entity, options).unwrap_or_else(|problem| panic!("{options}: {problem:?}"));
    let document = compile::document(&compile::rows_within(query), plan);
    let sql = |level: &CompiledLevel| level.sql.as_ref().map(show).unwrap_or_default();
    document.levels.iter().map(|level| (sql(level), level.bound)).unzip()
}

/// A list of 100 rows at most in each of 50.
#[test]
fn the_lists_of_a_level_are_asked_for_together() {
    let (levels, bounds) = expanded_as(
        "orders",
        "$select=id,status&$filter=total gt 5&$first=50&$expand=lines($select=qty;$filter=qty gt 1)",
        ListPlan::Together,
    );
    assert_eq!(
        levels,
        [
            concat!(
                r#"with p as materialized (select t."id", t."status" from "app"."orders" t where t."total" > $1 "#,
                r#"order by t."id" limit 51) (select t."qty", t."order_id", t."line", null "#,
                r#"from "app"."order""lines" t where t."order_id" = any(array(select c0 from p as r (c0, c1))) "#,
                r#"and t."qty" > $2 limit 5151) union all select c0, null, null, c1 from p as r (c0, c1) "#,
                r#"<- 1700:"5" 23:"1""#,
            ),
            "",
        ]
    );
    assert_eq!(bounds, [None, Some(5151)]);
    // and no level reads more for nothing
    let (_, bounds) = expanded_as("orders", "$first=1000&$expand=lines($first=1000)", ListPlan::Together);
    assert_eq!(bounds, [None, Some(10_000)]);
    for (options, why) in [
        ("$first=50&$expand=lines($first=5)", "few rows of each, which an index may give first"),
        ("$first=1&$expand=lines", "few rows around"),
        ("$expand=first", "one row of each"),
    ] {
        let (_, bounds) = expanded_as("orders", options, ListPlan::Together);
        assert_eq!(bounds, [None, None], "{why}");
    }
    let (levels, bounds) =
        expanded_as("orders", "$expand=lines($expand=order($expand=lines))", ListPlan::Together);
    assert_eq!(bounds, [None, Some(10_000), Some(10_000)]);
    assert!(levels[2].contains(r#"any(array(select t1."id" from (select"#), "{}", levels[2]);
}

#[test]
fn what_expand_names_is_joined_or_a_statement_of_its_own() {
    assert_eq!(
        expanded("lines", "$select=line&$expand=order($select=status)&$first=1"),
        [concat!(
            r#"select t."line", t1."status", t1."id", t."order_id" from "app"."order""lines" t "#,
            r#"left join "app"."orders" t1 on t1."id" = t."order_id" order by t."order_id", t."line" limit 2 <- "#
        )]
    );
    let orders = r#"from "app"."orders" t order by t."id" limit 2"#;
    // by no index is the key known to be unique here
    let around = format!(r#"(select distinct t."id" from (select t."id" {orders}) t) p"#);
    let lines = concat!(
        r#"(select t."order_id", t."line", t."qty" from "app"."order""lines" t where t."order_id" = p."id" and "#,
        r#"t."qty" > $1 order by t."order_id", t."line" limit 6) t"#
    );
    assert_eq!(
        expanded(
            "orders",
            "$select=id&$first=1&$count=true&$expand=lines($select=qty;$filter=qty gt 1;$first=5;$count=true)"
        ),
        [
            format!(r#"select t."id" {orders} <- "#),
            r#"select t."a0" from (select pg_catalog.count(*) as "a0" from "app"."orders" t) t limit 1 <- "#
                .to_owned(),
            format!(
                r#"select t."qty", p."id" from {around} cross join lateral {lines} order by t."order_id", t."line" <- 23:"1""#
            ),
            format!(
                r#"select t."a0", p."id" from {around} cross join lateral (select t."a0" from (select pg_catalog.count(*) as "a0" from "app"."order""lines" t where t."order_id" = p."id" and t."qty" > $1) t limit 1) t <- 23:"1""#
            ),
        ]
    );
    let [_, first] = &expanded("orders", "$select=id&$expand=first($select=qty)")[..] else { panic!() };
    assert!(first.contains(r#"order by t."order_id", t."line" limit 2"#), "{first}");
}

#[test]
fn a_table_between_both_is_asked_whether_there_is_a_row() {
    let through = Through {
        schema: name("app"),
        object: name("picks"),
        relations: vec![7, 8],
        around: vec![(at(&query_of("orders"), "id"), name("o"))],
        inside: vec![(name("l"), at(&query_of("lines"), "line"))],
    };
    let mut picked = lines_of_orders(query("lines", "$first=1", &["qty"], vec![]));
    picked.link = Link::Through(Arc::new(through));
    let read = query("orders", "$first=1", &["id"], vec![Selected::Many(Box::new(picked))]);
    let document = compile::document(&compile::rows_within(read), ListPlan::Together);
    assert_eq!(document.relations, [7, 8]);
    let sql = document.levels[1].sql.as_ref().expect("a statement").as_str();
    let exists =
        r#"where exists (select from "app"."picks" j where j."o" = p."id" and j."l" = t."line") order by"#;
    assert!(sql.contains(exists), "{sql}");
}

/// Absent, not readable at either end, not served, or in the way of a field: one answer.
#[test]
fn a_relationship_that_the_key_may_not_follow_is_one_that_is_not_there() {
    for (name, nearest) in [("closed", false), ("ungranted", false), ("secretive", false), ("linez", true)] {
        let problem = collection("orders", &format!("$expand={name}")).expect_err(name);
        assert_eq!(problem.code, Code::UnknownField);
        assert_eq!(problem.message, format!("orders has no relationship {name:?} for this key"));
        let hint = r#"did you mean "lines"?"#.to_owned();
        assert_eq!(problem.details, if nearest { vec![hint] } else { Vec::new() }, "{name}");
    }
    for (options, code, words) in [
        ("$expand=status", Code::BadRequest, "\"status\" is a field of orders, not a relationship"),
        ("$expand=lines($select=email)", Code::UnknownField, "lines has no field \"email\" for this key"),
        ("$expand=lines($select=email)", Code::UnknownField, "in $expand of \"lines\""),
        ("$expand=lines($expand=order($filter=id eq 1))", Code::BadRequest, "leads to one row"),
        ("$expand=lines($first=0)", Code::BadRequest, "from 1 to"),
        ("$expand=lines($expand=x)", Code::UnknownField, "lines has no relationship \"x\""),
    ] {
        let problem = collection("orders", options).expect_err(options);
        let said = format!("{} {}", problem.message, problem.details.join(" "));
        assert!(problem.code == code && said.contains(words), "{options}: {problem:?}");
    }
}

/// A condition that may raise, over a view of which no field is read.
#[test]
fn rows_of_a_view_are_counted_behind_its_conditions() {
    let mut grouped = query("orders", "$filter=1+div+0+eq+1", &[], vec![]);
    Arc::make_mut(&mut grouped.entity).kind = EntityKind::View;
    grouped.select.push(Selected::Aggregate { name: "n".to_owned(), number: 0 });
    let group = Group::new(&grouped.entity, Vec::new(), vec![Aggregate::count("n")]);
    (grouped.order, grouped.group) = (Vec::new(), Some(group));
    assert_eq!(
        levels(&compile::read(&grouped)),
        [concat!(
            r#"select t."a0" from (select pg_catalog.count(*) as "a0" from (select from "app"."orders" t offset 0) t "#,
            r#"where $1 / $2 = $3) t limit 100 <- 23:"1" 23:"0" 23:"1""#,
        )]
    );
}

#[test]
fn each_row_around_has_groups_of_its_own() {
    let aggregation =
        Aggregation { name: "n".into(), function: AggregateFunction::Count, field: None, distinct: false };
    let request = GroupRequest {
        by: vec!["qty".to_owned()],
        aggregations: vec![aggregation],
        having: Some(filter::parse("n gt 1").expect("a condition")),
        orderby: vec![OrderBy { name: "n".to_owned(), descending: true }],
        ..GroupRequest::default()
    };
    let catalog = catalog();
    let cursors = Cursors { key: &key(), caller: "k1" };
    let grouped =
        resolve::groups(&catalog, &catalog.scopes["set_x"], &entity_name("lines"), &request, cursors);
    let many = lines_of_orders(grouped.expect("groups"));
    let read = compile::read(&query("orders", "$first=1", &["id"], vec![Selected::Many(Box::new(many))]));
    assert_eq!(
        levels(&read)[1],
        concat!(
            r#"select t."k0", t."a0", p."id" from (select t."id" from "app"."orders" t order by t."id" limit 2) p "#,
            r#"cross join lateral (select t."k0", t."a0" from (select t."qty" as "k0", pg_catalog.count(*) as "a0" "#,
            r#"from "app"."order""lines" t where t."order_id" = p."id" group by t."qty") t where t."a0" > $1 "#,
            r#"order by t."a0" desc, t."k0" limit 101) t order by t."a0" desc, t."k0" <- 20:"1""#,
        )
    );
    assert_eq!((&*read.levels[0].shape.position, read.levels[0].is_whole), (&[1, 0][..], false));
}

#[test]
fn a_type_without_the_function_has_no_aggregate() {
    let entity = query_of("orders");
    let of = |function, field: &str, is_distinct| {
        Aggregate::of("x", function, &entity, at(&entity, field), is_distinct).map(|it| it.encoding())
    };
    for (function, field, encoding) in [
        (AggregateFunction::Sum, "id", Some(Encoding::Int8)),
        (AggregateFunction::Sum, "ID Number", Some(Encoding::Numeric)),
        (AggregateFunction::Avg, "id", Some(Encoding::Numeric)),
        (AggregateFunction::Avg, "ratio", Some(Encoding::Float8)),
        (AggregateFunction::Sum, "ratio", Some(Encoding::Float4)),
        (AggregateFunction::Max, "mood", Some(Encoding::Text)),
        (AggregateFunction::Min, "status", Some(Encoding::Text)),
        (AggregateFunction::Min, "placed", Some(Encoding::TimestampTz)),
        (AggregateFunction::Sum, "status", None),
        (AggregateFunction::Avg, "day", None),
        (AggregateFunction::Min, "paid", None),
        (AggregateFunction::Max, "tags", Some(Encoding::Nested(tags()))),
        (AggregateFunction::Max, "ip", Some(Encoding::Quoted)),
        (AggregateFunction::Max, "address", None),
        (AggregateFunction::Count, "doc", Some(Encoding::Int8)),
    ] {
        assert_eq!(of(function, field, false), encoding, "{function:?} {field}");
    }
    assert_eq!(of(AggregateFunction::Count, "email", true), None, "no equality");
}
