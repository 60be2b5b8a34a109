//! Nested reads: rows, order, pages and numbers as PostgreSQL gives them to the key's role, in one batch.

use serde_json::{Value, json};

use super::fixture::Shop;
use crate::reads::expand::as_role;

const NESTED: &str = "{
    orders(first: 4, orderBy: {id: DESC}) {
        totalCount
        items {
            __typename number: id
            customer { name orders(first: 2, filter: {state: {neq: \"new\"}}, orderBy: {placed_at: DESC}) { items { id } } }
            lines { items { quantity product { title } } }
            products { totalCount items { id } }
        }
    }
}";

#[tokio::test]
async fn rows_within_rows_are_those_that_the_key_sees() {
    let shop = Shop::open().await;
    for key in ["north", "shop-admin"] {
        let found = shop.data(key, NESTED).await;
        let wanted = as_role(
            &shop.world,
            key,
            "select json_agg(json_build_object('__typename', 'Orders', 'number', o.id,
                'customer', (select json_build_object('name', c.name, 'orders', json_build_object('items',
                    (select coalesce(json_agg(json_build_object('id', x.id)), '[]') from
                        (select id from shop.orders x where x.customer_id = c.id and state <> 'new' order by placed_at desc, id limit 2) x)))
                    from shop.customers c where c.id = o.customer_id),
                'lines', json_build_object('items', (select json_agg(json_build_object('quantity', l.quantity,
                    'product', (select json_build_object('title', title) from shop.products p where p.id = l.product_id)) order by line_no)
                    from shop.order_lines l where l.order_id = o.id)),
                'products', json_build_object(
                    'totalCount', (select count(distinct product_id) from shop.order_lines l where l.order_id = o.id),
                    'items', (select json_agg(json_build_object('id', p.id) order by p.id) from shop.products p
                        where p.id in (select product_id from shop.order_lines l where l.order_id = o.id)))) order by o.id desc)
             from (select * from shop.orders order by id desc limit 4) o",
        )
        .await;
        assert_eq!(found["orders"]["items"], wanted, "{key}");
        let number = as_role(&shop.world, key, "select count(*) from shop.orders").await;
        assert_eq!(found["orders"]["totalCount"], number, "{key}");
    }
}

#[tokio::test]
async fn rows_are_ordered_by_fields_of_rows_that_they_refer_to() {
    let shop = Shop::open().await;
    let query = "query($order: OrdersOrderByInput) { orders(first: 50, orderBy: $order) { items { id } } }";
    let order = json!({"customer": {"region": "DESC", "name": "ASC"}, "placed_at": "DESC"});
    for key in ["north", "shop-admin"] {
        let found = shop.ask(key, json!({"query": query, "variables": {"order": order}})).await;
        let wanted = as_role(
            &shop.world,
            key,
            "select json_agg(json_build_object('id', id)) from (
                select o.id from shop.orders o left join shop.customers c on c.id = o.customer_id
                order by c.region desc, c.name, o.placed_at desc, o.id limit 50) o",
        )
        .await;
        assert_eq!(found["data"]["orders"]["items"], wanted, "{key}: {found}");
    }
}

#[tokio::test]
async fn pages_of_a_list_and_of_a_list_within_rows_join_to_the_whole() {
    let shop = Shop::open().await;
    let whole = shop.data("north", "{ orders(orderBy: {state: ASC}) { items { id } hasNextPage } }").await;
    let (mut ids, mut after) = (Vec::new(), Value::Null);
    loop {
        let query = "query($after: String) { orders(first: 7, after: $after, orderBy: {state: ASC}) { items { id } endCursor hasNextPage } }";
        let answer = shop.ask("north", json!({"query": query, "variables": {"after": after}})).await;
        let page = &answer["data"]["orders"];
        ids.extend(page["items"].as_array().expect("rows").clone());
        after = page["endCursor"].clone();
        if page["hasNextPage"] == false {
            break;
        }
    }
    let n = ids.len();
    assert_eq!(whole["orders"]["items"].as_array().expect("rows")[..n.min(100)], ids[..n.min(100)]);

    // the cursor of a list within a row goes on with the same list by itself
    let customer =
        "customers_by_pk(id: 1) { id orders(first: 1) { items { id } endCursor hasNextPage totalCount } }";
    let first = shop.data("shop-admin", &format!("{{ {customer} }}")).await;
    let orders = &first["customers_by_pk"]["orders"];
    assert_eq!(orders["hasNextPage"], true, "{first}");
    let cursor = orders["endCursor"].as_str().expect("a cursor");
    let next = format!(
        "{{ customers_by_pk(id: 1) {{ orders(first: 1, after: \"{cursor}\") {{ items {{ id }} }} }} }}"
    );
    let next = shop.data("shop-admin", &next).await;
    assert_ne!(next["customers_by_pk"]["orders"]["items"], orders["items"]);
    assert_eq!(next["customers_by_pk"]["orders"]["items"].as_array().map(Vec::len), Some(1));
}

/// One list of each filter's operators, held against the condition in SQL.
#[tokio::test]
async fn filters_find_what_their_conditions_find_in_postgresql() {
    let shop = Shop::open().await;
    for (entity, filter, condition) in [
        ("orders", "{}", "true"),
        (
            "orders",
            "{id: {gt: 5, lte: 30}, state: {in: [\"paid\", \"new\"]}}",
            "id > 5 and id <= 30 and state in ('paid', 'new')",
        ),
        ("orders", "{shipped_on: {isNull: true}}", "shipped_on is null"),
        ("orders", "{shipped_on: {isNull: false}, id: null}", "shipped_on is not null"),
        (
            "orders",
            "{or: [{id: {eq: 1}}, {and: [{id: {gt: 3}}, {id: {lt: 6}}]}]}",
            "id = 1 or (id > 3 and id < 6)",
        ),
        ("orders", "{not: {state: {eq: \"new\"}}}", "not state = 'new'"),
        ("orders", "{and: []}", "false"),
        ("orders", "{or: []}", "false"),
        ("orders", "{id: {in: []}}", "false"),
        ("orders", "{placed_at: {gte: \"2025-06-01T00:00:00Z\"}}", "placed_at >= '2025-06-01T00:00:00Z'"),
        (
            "orders",
            "{customer: {name: {startsWith: \"A\"}}}",
            "exists (select from shop.customers c where c.id = t.customer_id and name like 'A%')",
        ),
        (
            "orders",
            "{lines: {quantity: {gt: 4}}}",
            "exists (select from shop.order_lines l where l.order_id = t.id and quantity > 4)",
        ),
        (
            "orders",
            "{not: {lines: {product: {price: {lt: 10.5}}}}}",
            "not exists (select from shop.order_lines l where l.order_id = t.id and exists (select from shop.products p where p.id = l.product_id and price < 10.5))",
        ),
        ("orders", "{products: {}}", "exists (select from shop.order_lines l where l.order_id = t.id)"),
        (
            "customers",
            "{name: {contains: \"e\"}, notes: {isNull: true}}",
            "name like '%e%' and notes is null",
        ),
        ("customers", "{name: {icontains: \"AD\"}}", "name ilike '%ad%'"),
        (
            "customers",
            "{name: {notContains: \"a\", endsWith: \"r\"}}",
            "name not like '%a%' and name like '%r'",
        ),
        ("customers", "{newsletter: {eq: true}, rating: {gte: 2.5}}", "newsletter and rating >= 2.5"),
        ("customers", "{signedUpOn: {lt: \"2024-06-01\"}}", "signed_up_on < '2024-06-01'"),
    ] {
        for key in ["shop-admin", "north"] {
            let found = shop
                .data(
                    key,
                    &format!("{{ {entity}(first: -1, filter: {filter}) {{ items {{ id }} totalCount }} }}"),
                )
                .await;
            let wanted = format!(
                "select json_build_object('items', coalesce(json_agg(json_build_object('id', id) order by id), '[]'), 'totalCount', count(*))
                 from shop.{entity} t where {condition}"
            );
            assert_eq!(found[entity], as_role(&shop.world, key, &wanted).await, "{key}: {filter}");
        }
    }
}

#[tokio::test]
async fn documents_may_use_all_of_the_language() {
    let shop = Shop::open().await;
    let query = "query Both($id: Long!, $with: Boolean = false, $filter: CustomersFilterInput) {
        __typename
        a: orders_by_pk(id: $id) { ...Order ... on Orders { state } ... { state } }
        b: orders_by_pk(id: 2) { ...Order customer @include(if: $with) { name } region @skip(if: true) }
        none: orders_by_pk(id: 99999999) { id }
        customers(filter: $filter, first: 1) { __typename hasNextPage rows: items { id } more: items { name id } }
    }
    fragment Order on Orders { __typename id }
    query Other { orders { totalCount } }";
    let request = json!({"query": query, "operationName": "Both", "variables": {"id": "1", "filter": {"id": {"in": 3}}}});
    let answer = shop.ask("shop-admin", request).await;
    let state = as_role(&shop.world, "shop-admin", "select state from shop.orders where id = 1").await;
    let name = as_role(&shop.world, "shop-admin", "select name from shop.customers where id = 3").await;
    assert_eq!(
        answer,
        json!({"data": {
            "__typename": "Query",
            "a": {"__typename": "Orders", "id": 1, "state": state},
            "b": {"__typename": "Orders", "id": 2},
            "none": null,
            "customers": {"__typename": "CustomersConnection", "hasNextPage": false, "rows": [{"id": 3}], "more": [{"name": name, "id": 3}]},
        }})
    );
    let typename = shop.data("shop-admin", "{ __typename again: __typename }").await;
    assert_eq!(typename, json!({"__typename": "Query", "again": "Query"}));
    // a connection of which nothing else is asked, and a variable that stands in a directive of __typename alone
    let query = "query($with: Boolean!) { orders { __typename } customers(first: 1) { items { orders { kind: __typename } __typename @include(if: $with) } } }";
    for (with, kept) in [
        (true, json!({"orders": {"kind": "OrdersConnection"}, "__typename": "Customers"})),
        (false, json!({"orders": {"kind": "OrdersConnection"}})),
    ] {
        let answer = shop.ask("shop-admin", json!({"query": query, "variables": {"with": with}})).await;
        let wanted = json!({"orders": {"__typename": "OrdersConnection"}, "customers": {"items": [kept]}});
        assert_eq!(answer, json!({"data": wanted}), "{with}");
    }
    let wrong = "{ orders { __typename @include(if: 1) } }";
    assert_eq!(shop.error("shop-admin", wrong).await.0, "BadRequest");
    let mixed = shop
        .data(
            "shop-admin",
            "{ orders(first: 1) { totalCount } __type(name: \"Orders\") { name kind } z: __typename }",
        )
        .await;
    assert_eq!(mixed["__type"], json!({"name": "Orders", "kind": "OBJECT"}));
    assert_eq!(mixed.as_object().map(|data| data.keys().len()), Some(3));
}

/// Nothing of what a key may not read has a name in its schema, nor in any message.
#[tokio::test]
async fn a_key_sees_the_schema_of_its_own_rights() {
    let shop = Shop::open().await;
    let everything =
        "{ __schema { types { name fields { name } inputFields { name } enumValues { name } } } }";
    let all = shop.data("shop-admin", everything).await.to_string();
    let south = shop.data("south", everything).await.to_string();
    for hidden in ["Products", "products", "Stock", "email", "createCustomers", "UpdateOrdersInput"] {
        assert!(all.contains(&format!("\"{hidden}")), "{hidden}");
        assert!(!south.contains(&format!("\"{hidden}")), "{hidden}: {south}");
    }
    // what is there for others and what does not exist: one answer
    for (hidden, absent) in [
        ("{ products { totalCount } }", "{ produces { totalCount } }"),
        ("{ customers { items { email } } }", "{ customers { items { emall } } }"),
        (
            "{ customers(filter: {email: {eq: \"x\"}}) { totalCount } }",
            "{ customers(filter: {emall: {eq: \"x\"}}) { totalCount } }",
        ),
        (
            "{ customers(orderBy: {email: ASC}) { totalCount } }",
            "{ customers(orderBy: {emall: ASC}) { totalCount } }",
        ),
        (
            "{ orders { items { products { totalCount } } } }",
            "{ orders { items { produces { totalCount } } } }",
        ),
        ("mutation { deleteOrders(id: 1) { id } }", "mutation { deleteOrdres(id: 1) { id } }"),
    ] {
        let (hidden, absent) = (shop.error("south", hidden).await, shop.error("south", absent).await);
        let same = |text: &str| {
            text.replace("emall", "email").replace("produces", "products").replace("Ordres", "Orders")
        };
        assert_eq!(hidden, (absent.0.clone(), same(&absent.1)));
    }
}

/// Groups of a list, and of a list within rows, as PostgreSQL makes them for the key's role.
#[tokio::test]
async fn groups_are_those_of_the_rows_that_the_key_sees() {
    let shop = Shop::open().await;
    for key in ["shop-admin", "north"] {
        let found = shop
            .data(
                key,
                "{
                    orders(filter: {id: {gt: 10}}) {
                        __typename
                        groupBy(fields: [state]) {
                            __typename fields { state __typename }
                            aggregations { n: count(having: {gt: 1}) shipped: count(field: shipped_on) last: max(field: placed_at) people: count(field: customer_id, distinct: true) }
                        }
                        all: groupBy { aggregations { count } }
                        totalCount
                    }
                    customers(first: 2) {
                        items { id orders { groupBy(fields: [region, state]) { fields { state } aggregations { count low: min(field: id) } } } }
                    }
                    order_lines(filter: {quantity: {gte: 2}}) { groupBy(fields: [quantity]) { fields { q: quantity } aggregations { total: sum(field: unit_price, having: {gt: 5}) mean: avg(field: unit_price) } } }
                }",
            )
            .await;
        let wanted = as_role(
            &shop.world,
            key,
            "select json_build_object(
                'orders', (select json_build_object('__typename', 'OrdersConnection',
                    'groupBy', (select json_agg(json_build_object('__typename', 'OrdersGroup', 'fields', json_build_object('state', state, '__typename', 'OrdersGroupFields'),
                        'aggregations', json_build_object('n', n, 'shipped', shipped, 'last', last, 'people', people)) order by state)
                        from (select state, count(*) n, count(shipped_on) shipped, to_char(max(placed_at) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as last, count(distinct customer_id) people
                            from shop.orders where id > 10 group by state having count(*) > 1) g),
                    'all', (select json_build_array(json_build_object('aggregations', json_build_object('count', count(*)))) from shop.orders where id > 10),
                    'totalCount', (select count(*) from shop.orders where id > 10))),
                'customers', json_build_object('items', (select json_agg(json_build_object('id', c.id, 'orders', json_build_object('groupBy',
                    (select coalesce(json_agg(json_build_object('fields', json_build_object('state', state), 'aggregations', json_build_object('count', n, 'low', low)) order by region, state), '[]')
                        from (select region, state, count(*) n, min(id) low from shop.orders o where o.customer_id = c.id group by region, state) g))) order by c.id)
                    from (select id from shop.customers order by id limit 2) c)),
                'order_lines', json_build_object('groupBy', (select json_agg(json_build_object('fields', json_build_object('q', quantity),
                    'aggregations', json_build_object('total', total, 'mean', mean)) order by quantity)
                    from (select quantity, sum(unit_price) total, avg(unit_price) mean from shop.order_lines where quantity >= 2 group by quantity having sum(unit_price) > 5) g)))",
        )
        .await;
        assert_eq!(found, wanted, "{key}");
    }
    for (query, code) in [
        ("{ orders { groupBy(fields: [state]) { fields { region } } } }", "BadRequest"),
        ("{ orders { groupBy { fields { state } } } }", "BadRequest"),
        ("{ orders { groupBy(fields: [comment]) { aggregations { sum(field: comment) } } } }", "BadRequest"),
        (
            "{ order_lines { groupBy(fields: [order_id, line_no], first: 3) { aggregations { count } } } }",
            "TooLarge",
        ),
    ] {
        assert_eq!(shop.error("shop-admin", query).await.0, code, "{query}");
    }
}
