//! Rows within rows and groups of rows, as the compiler writes them, against what PostgreSQL's own JSON functions give.

use std::sync::Arc;

use rowgate_pg::wire::Ask;
use rowgate_sql::catalog::{
    ColumnInfo, Entity, EntityKind, EntityRecord, FieldType, Filling, GraphQlNames, Limits, Link, Operators,
    TableColumns, TypeKind, WriteSupport, build,
};
use rowgate_sql::compile::{self, CompiledRead};
use rowgate_sql::query::{Aggregate, Form, Group, OrderTerm, Query, Selected, ToMany, ToOne};
use rowgate_sql::request::AggregateFunction;
use rowgate_sql::shape::Shape;
use rowgate_sql::text::{Ident, Sql};
use rowgate_tests::servers::postgres::{execute, shared};

use super::fixture::{Tenant, utf8};

/// Tables with columns of integers, each of which may be NULL; the first is the key.
const TABLES: [(&str, &[&str]); 3] = [
    ("customers", &["id", "city"]),
    ("orders", &["id", "customer_id", "total"]),
    ("lines", &["id", "order_id", "qty"]),
];

pub(super) async fn found(name: &'static str) -> Tenant {
    let mut tenant = Tenant::found(shared().await, name).await;
    execute(
        &mut tenant.superuser,
        "create table app.customers (id int primary key, city int);
         create table app.orders (id int primary key, customer_id int, total int);
         create table app.lines (id int primary key, order_id int, qty int);
         insert into app.customers select i, i % 3 from generate_series(1, 5) i;
         insert into app.orders select i, nullif(i % 7, 0), i * 10 % 70 from generate_series(1, 40) i;
         insert into app.lines select i, nullif(i % 45, 0), i % 4 from generate_series(1, 200) i;
         alter table app.lines enable row level security, force row level security;
         create policy few on app.lines using (qty < 3);
         grant select on app.customers, app.orders, app.lines to public;",
    )
    .await;
    tenant
}

fn name(text: &str) -> Ident {
    Ident::new(text).expect("a name")
}

pub(super) fn entity(table: &str) -> Arc<Entity> {
    let (_, columns) = TABLES.into_iter().find(|(name, _)| *name == table).expect("one of them");
    let integer = |column: &&str| ColumnInfo {
        name: name(column),
        ty: FieldType {
            oid: 23,
            name: "integer".to_owned(),
            kind: TypeKind::Base,
            base_oid: 23,
            operators: Operators::BuiltIn,
            nested: None,
        },
        nullable: *column != "id",
        granted: true,
        filling: Filling::Caller,
        takes_null: true,
        rounds_to: None,
        labels: Vec::new(),
        made_of: Vec::new(),
    };
    let tables = [TableColumns {
        schema: name("app"),
        object: name(table),
        columns: columns.iter().map(integer).collect(),
        unique: vec![vec![name("id")]],
        constraints: Vec::new(),
        write_support: WriteSupport::default(),
        hides: true,
        view: None,
        relations: Vec::new(),
    }];
    let record = EntityRecord {
        name: table.parse().expect("a name"),
        kind: EntityKind::Table,
        schema: name("app"),
        object: name(table),
        key_columns: vec![name("id")],
        mappings: Default::default(),
        rest: true,
        graphql: GraphQlNames::default(),
        protection: None,
        hide_soft_deleted: None,
        shows_version: false,
        events: false,
        allow_definer: false,
    };
    let catalog = build(1, Limits::default(), vec![record], &tables, &[], Vec::new());
    catalog.entities.values().next().expect("the one").clone()
}

pub(super) fn read(table: &str, take: usize, select: Vec<Selected>) -> Query {
    Query {
        entity: entity(table),
        select,
        filter: None,
        group: None,
        order: vec![OrderTerm { field: 0, reference: None, descending: true }],
        order_references: Vec::new(),
        after: None,
        take,
        max_take: 1_000,
        count: false,
        binding: None,
        version: None,
    }
}

/// Rows whose second field is the first one of the row around.
pub(super) fn many(name: &str, lists: Vec<Query>) -> ToMany {
    ToMany { link: Link::Fields(vec![(0, 1)]), lists, form: Form::Array { name: name.to_owned() } }
}

/// What each statement gives, every column of it labelled by its number.
async fn rows(tenant: &Tenant, read: &CompiledRead) -> Vec<Vec<serde_json::Value>> {
    let pool = tenant.pool();
    let levels = read.levels.iter().filter_map(|level| Some((level.sql.as_ref()?, &level.shape)));
    let mut all = Vec::new();
    for (sql, shape) in std::iter::once((&read.sql, &read.shape)).chain(levels) {
        let ask = Ask { sql: sql.clone(), shape: labelled(shape), ..tenant.ask("a", "", &[]) };
        let page = pool.read(ask, usize::MAX).await.expect("an answer");
        all.push(serde_json::from_str(&format!("[{}]", utf8(&page))).expect("JSON"));
    }
    all
}

fn labelled(shape: &Shape) -> Arc<Shape> {
    let mut shape = shape.clone();
    for (i, column) in shape.columns.iter_mut().enumerate() {
        column.label = Some(format!("\"{i}\":").into());
    }
    Arc::new(shape)
}

/// The one value of a statement, as the key of all these reads sees it.
pub(super) async fn json(tenant: &Tenant, text: &'static str) -> serde_json::Value {
    let mut sql = Sql::new();
    sql.lit(text);
    let ask = Ask { sql, ..tenant.ask("a", "", &[rowgate_sql::shape::Encoding::Json]) };
    let page = tenant.pool().read(ask, 1).await.expect("an answer");
    let mut row: serde_json::Value = serde_json::from_str(utf8(&page)).expect("JSON");
    row["0"].take()
}

/// Orders with their customer, each customer with its orders, and the orders with two of their lines.
#[tokio::test]
async fn rows_within_rows_are_those_that_lateral_joins_would_give() {
    let tenant = found("wire_nested").await;
    let fields = |list: &[usize]| list.iter().map(|field| Selected::Field(*field)).collect::<Vec<_>>();
    let others = many("orders", vec![read("orders", 3, fields(&[0]))]);
    let select = [fields(&[1]), vec![Selected::Many(Box::new(others))]].concat();
    let customer = ToOne { name: "customer".into(), link: vec![(1, 0)], entity: entity("customers"), select };
    let lines = read("lines", 2, fields(&[0, 2]));
    let number = lines.number_of_rows();
    let lines = many("lines", vec![lines, number]);
    let more = vec![Selected::One(Box::new(customer)), Selected::Many(Box::new(lines))];
    let compiled = compile::read(&read("orders", 10, [fields(&[0]), more].concat()));
    let [orders, others, lines, numbers] = &rows(&tenant, &compiled).await[..] else {
        panic!("three levels")
    };

    // id, the customer's city and id, by which it has its orders and which is null without a customer
    let column = |rows: &[serde_json::Value], at: usize| -> Vec<serde_json::Value> {
        rows.iter().map(|row| row[at.to_string()].clone()).collect()
    };
    let wanted = json(
        &tenant,
        "select json_agg(json_build_array(o.id, c.city, c.id) order by o.id desc) \
         from (select * from app.orders order by id desc limit 11) o left join app.customers c on c.id = o.customer_id",
    ).await;
    let found: Vec<_> = orders.iter().map(|row| serde_json::json!([row["0"], row["1"], row["2"]])).collect();
    assert_eq!(serde_json::Value::Array(found), wanted);
    let level = &compiled.levels[0];
    let customers = column(orders, level.key_around[0]);
    for row in others {
        assert!(customers.contains(&row[level.key[0].to_string()]), "{row}");
    }
    let wanted = json(
        &tenant,
        "select json_agg(json_build_array(c.id, o.id) order by o.id desc, c.id) from app.customers c \
         cross join lateral (select o.id from app.orders o where o.customer_id = c.id order by o.id desc limit 11) o \
         where c.id in (select customer_id from app.orders order by id desc limit 11)",
    ).await;
    let found: Vec<_> =
        others.iter().map(|row| serde_json::json!([row[level.key[0].to_string()], row["0"]])).collect();
    assert_eq!(serde_json::Value::Array(found), wanted, "each customer's orders once");
    let level = &compiled.levels[1];
    let wanted = json(
        &tenant,
        "select json_agg(json_build_array(o.id, l.id, l.qty) \
         order by l.id desc) from (select * from app.orders order by id desc limit 11) o cross join lateral \
         (select * from app.lines l where l.order_id = o.id order by l.id desc limit 11) l",
    )
    .await;
    let key = level.key[0].to_string();
    let found: Vec<_> = lines.iter().map(|row| serde_json::json!([row[&key], row["0"], row["1"]])).collect();
    assert_eq!(serde_json::Value::Array(found), wanted, "as policies show them");
    let wanted = json(
        &tenant,
        "select json_object_agg(o.id, (select count(*) from app.lines where order_id = o.id)) \
         from (select * from app.orders order by id desc limit 11) o",
    )
    .await;
    let found = numbers.iter().map(|row| (row["1"].to_string(), row["0"].clone()));
    assert_eq!(serde_json::Value::Object(found.collect()), wanted, "each order has its number");
}

#[tokio::test]
async fn groups_come_to_what_postgresql_says() {
    let tenant = found("wire_groups").await;
    let lines = entity("lines");
    let of = |function, is_distinct| {
        Aggregate::of("it", function, &lines, 2, is_distinct).expect("integers have all of them")
    };
    let aggregates = vec![
        Aggregate::count("n"),
        of(AggregateFunction::Count, true),
        of(AggregateFunction::Sum, false),
        of(AggregateFunction::Avg, true),
        of(AggregateFunction::Min, false),
        of(AggregateFunction::Max, false),
    ];
    let mut query = read("lines", 100, vec![Selected::Field(1)]);
    let selected = |number: usize| Selected::Aggregate { name: number.to_string(), number };
    query.select.extend((0..aggregates.len()).map(selected));
    query.group = Some(Group::new(&lines, vec![1], aggregates));
    query.order = vec![OrderTerm { field: 0, reference: None, descending: false }];
    query.count = true;
    let found = rows(&tenant, &compile::read(&query)).await.remove(0);
    let found: Vec<Vec<_>> =
        found.iter().map(|row| (0..8).map(|i| row[i.to_string()].clone()).collect()).collect();
    let wanted = json(
        &tenant,
        "with g as (select order_id, count(*) n, count(distinct qty) d, sum(qty) s, avg(distinct qty) a, min(qty) l, \
         max(qty) m from app.lines group by order_id) select json_agg(json_build_array(order_id, n, \
         d, s, a, l, m, (select count(*) from g)) order by order_id) from g",
    ).await;
    assert_eq!(serde_json::json!(found), wanted);
    assert!(3 < found.len(), "{found:?}");

    // Each order has groups of its own.
    (query.group, query.count) = (Some(Group::new(&lines, vec![2], vec![Aggregate::count("n")])), false);
    query.select = vec![Selected::Field(2), selected(0)];
    query.order = vec![OrderTerm { field: 0, reference: None, descending: false }];
    let lines = many("lines", vec![query]);
    let compiled = compile::read(&read("orders", 10, vec![Selected::Many(Box::new(lines))]));
    let found = rows(&tenant, &compiled).await.remove(1);
    let found: Vec<_> = found.iter().map(|row| serde_json::json!([row["2"], row["0"], row["1"]])).collect();
    let wanted = json(
        &tenant,
        "select json_agg(json_build_array(order_id, qty, n) order by order_id, qty) from (select order_id, qty, \
         count(*) n from app.lines where order_id in (select id from app.orders order by id desc limit 11) \
         group by order_id, qty) g",
    ).await;
    let mut found = found;
    found.sort_by_key(|row| (row[0].as_i64(), row[1].as_i64()));
    assert_eq!(serde_json::Value::Array(found), wanted);
}
