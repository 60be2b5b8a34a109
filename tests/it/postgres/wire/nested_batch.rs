//! Several statements in one batch: one JSON, one snapshot, and a connection that stays good.

use std::sync::Arc;

use rowgate_core::cursor::{self, Binding};
use rowgate_core::derive::{CursorKey, Root};
use rowgate_pg::wire::{Ask, Failure, Nested};
use rowgate_sql::catalog::Link;
use rowgate_sql::compile::{self, ListPlan};
use rowgate_sql::query::{
    ConnectionPart, Document, DocumentMember, Form, Predicate, Query, Selected, ToMany, ToOne,
};
use rowgate_tests::servers::postgres::execute;

use super::fixture::{Tenant, by, utf8};
use super::nested::{entity, found, json, many, read};

/// As the key of all these reads asks.
fn ask(tenant: &Tenant, nested: Nested) -> Ask {
    let first = nested.first();
    let (sql, shape) = (first.sql.clone().expect("a statement"), first.shape.clone());
    Ask { sql, shape, nested: Some(Arc::new(nested)), ..tenant.ask("a", "", &[]) }
}

fn cursors() -> CursorKey {
    Root::new([9; 32]).cursor_key()
}

fn field(name: &str, field: usize) -> Selected {
    Selected::Alias { name: name.to_owned(), field }
}

/// The ten last orders, each with its customer, the orders of this one, and two lines.
fn orders() -> Query {
    let others = many("orders", vec![read("orders", 3, vec![Selected::Field(0)])]);
    let customer = ToOne {
        name: "customer".into(),
        link: vec![(1, 0)],
        entity: entity("customers"),
        select: vec![field("town", 1), Selected::Many(Box::new(others))],
    };
    let lines = read("lines", 2, vec![Selected::Field(0), field("n", 2)]);
    let number = lines.number_of_rows();
    let lines = many("lines", vec![lines, number]);
    let kind = Selected::Constant { name: "kind".into(), json: r#""order""#.into() };
    let more = vec![kind, Selected::One(Box::new(customer)), Selected::Many(Box::new(lines))];
    read("orders", 10, [vec![Selected::Field(0)], more].concat())
}

const ORDERS: &str = "
    (select json_agg((json_build_object('id', o.id, 'kind', 'order', 'customer', case when c.id is not null then
            (json_build_object('town', c.city, 'orders',
                (select coalesce(json_agg(json_build_object('id', x.id) order by x.id desc), '[]') from (select * from app.orders
                 where customer_id = c.id order by id desc limit 3) x))::jsonb ||
             case when (select count(*) from app.orders where customer_id = c.id) > 3
                  then '{\"orders@hasMore\":true}' else '{}' end::jsonb) end,
        'lines', (select coalesce(json_agg(json_build_object('id', x.id, 'n', x.qty) order by x.id desc), '[]') from
            (select * from app.lines where order_id = o.id order by id desc limit 2) x),
        'lines@count', (select count(*) from app.lines where order_id = o.id))::jsonb
        || case when (select count(*) from app.lines where order_id = o.id) > 2 then '{\"lines@hasMore\":true}' else '{}' end::jsonb)
        order by o.id desc)
     from (select * from app.orders order by id desc limit 10) o left join app.customers c on c.id = o.customer_id)";

/// The rows of the query, and what stands within them.
fn rows(query: Query) -> Nested {
    let compiled = compile::document(&compile::rows_within(query), ListPlan::Together);
    Nested::rows(compiled, cursors()).expect("a statement")
}

/// One batch, and again by the statements that it has prepared.
#[tokio::test]
async fn a_batch_gives_objects_within_objects() {
    let tenant = found("wire_batch").await;
    let wanted = json(&tenant, format!("select to_json({ORDERS})").leak()).await;
    let pool = tenant.pool();
    for _ in 0..2 {
        let page = pool.read(ask(&tenant, rows(orders())), 1).await.expect("an answer");
        let found: serde_json::Value = serde_json::from_str(&format!("[{}]", utf8(&page))).expect("JSON");
        assert_eq!(found, wanted);
        assert!(page.n_rows == 10 && page.more && page.count.is_none());
    }
    assert_eq!(pool.counters().n_connects(), (1, 0), "its connection stays good");
}

/// Two reads in one object, with pages, numbers, cursors and a row that is not there.
#[tokio::test]
async fn a_document_is_one_object_of_several_reads() {
    let tenant = found("wire_document").await;
    let binding = Binding::new(&cursors(), &["lines"]);
    let page = Query { binding: Some(binding), ..read("lines", 2, vec![Selected::Field(0)]) };
    let none = Query { filter: Some(Predicate::Any(Vec::new())), ..page.clone() };
    let number = page.number_of_rows();
    let parts = |list: usize| {
        [
            ("it", ConnectionPart::Items(list)),
            ("end", ConnectionPart::EndCursor(list)),
            ("more", ConnectionPart::HasNextPage(list)),
        ]
    };
    let named = parts(0).into_iter().chain(parts(2)).chain([("n", ConnectionPart::Count(1))]).enumerate();
    let parts = named.map(|(i, (name, part))| (format!("{name}{i}"), part)).collect();
    let form = Form::Connection { name: "lines".to_owned(), parts };
    let connection = ToMany { link: Link::All, lists: vec![page, number, none.clone()], form };
    let row = |name: &str, query| ToMany {
        link: Link::All,
        lists: vec![query],
        form: Form::Row { name: name.to_owned() },
    };
    let document = Document {
        members: vec![
            DocumentMember::Read(Box::new(connection)),
            DocumentMember::Constant { name: "__typename".to_owned(), json: r#""Query""#.to_owned() },
            DocumentMember::Read(Box::new(row("none", none))),
            DocumentMember::Read(Box::new(row("one", read("orders", 1, vec![Selected::Field(0)])))),
        ],
    };
    let nested =
        Nested::document(compile::document(&document, ListPlan::Together), cursors()).expect("a statement");
    let page = tenant.pool().read(ask(&tenant, nested), 1).await.expect("an answer");
    let found: serde_json::Value = serde_json::from_str(utf8(&page)).expect("JSON");
    let rows: Vec<_> = json(
        &tenant,
        "select json_agg(l order by id desc) from (select id from app.lines order by id desc limit 2) l",
    )
    .await
    .as_array()
    .expect("rows")
    .clone();
    let number = json(&tenant, "select to_json(count(*)) from app.lines").await;
    let last = rows[1]["id"].as_i64().expect("a number") as i32;
    let cursor = cursor::encode(&cursors(), binding, &[Some(last.to_be_bytes().to_vec())]);
    let wanted = serde_json::json!({
        "lines": {"it0": rows, "end1": cursor, "more2": true, "it3": [], "end4": null, "more5": false, "n6": number},
        "__typename": "Query", "none": null, "one": {"id": 40},
    });
    assert_eq!(found.to_string(), wanted.to_string(), "in the order that was asked");
}

/// An error in the middle of a batch leaves a connection that serves the next one, with the transaction ended.
#[tokio::test]
async fn a_batch_that_fails_midway_leaves_nothing_behind() {
    let mut tenant = found("wire_batch_fails").await;
    execute(
        &mut tenant.superuser,
        "create policy slow on app.lines as restrictive using (1 / (case when id = 5 then 0 else 1 end) = 1)",
    )
    .await;
    let pool = tenant.pool();
    let whole = |tenant: &Tenant| {
        // the first list comes in the statement of the orders, behind that of the second
        let lines =
            |name| Selected::Many(Box::new(many(name, vec![read("lines", 1000, vec![Selected::Field(0)])])));
        let query = read("orders", 100, vec![Selected::Field(0), lines("lines"), lines("again")]);
        ask(tenant, rows(query))
    };
    for _ in 0..2 {
        let failure = pool.read(whole(&tenant), 1).await.expect_err("a division by zero");
        assert!(matches!(failure, Failure::Invalid(_)), "{failure:?}");
        let dead = by(&whole(&tenant), "revoked", "revoked");
        let failure = pool.read(dead, 1).await.expect_err("a dead key");
        assert!(matches!(failure, Failure::DeadKey), "{failure:?}");
    }
    execute(&mut tenant.superuser, "drop policy slow on app.lines").await;
    assert_eq!(pool.read(whole(&tenant), 1).await.expect("an answer").n_rows, 40);
    assert_eq!(pool.counters().n_connects(), (1, 0));
}
