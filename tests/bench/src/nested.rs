//! Nested reads: a page of 50 orders, each with its customer and its 5 lines, in the language of each server.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::load::Requests;
use crate::peer::{Language, Peer};
use crate::stage::{Stage, id, request, sent};

/// Orders of all tenants; every fourth belongs to `t1`.
const ORDERS: u64 = 40_000;

/// Beside the tables of [`stage`](crate::stage); customer, order and lines belong to one tenant.
pub(crate) const TABLES: &str = "
    create table SCHEMA.customers (id integer primary key, tenant text not null, name text not null);
    insert into SCHEMA.customers select i, 't' || i % 4, 'customer number ' || i from generate_series(0, 19999) i;
    create table SCHEMA.orders (id integer primary key, tenant text not null,
        customer_id integer not null references SCHEMA.customers, state text not null, total numeric(12,2) not null);
    insert into SCHEMA.orders select i, 't' || i % 4, (i * 7) % 20000 / 4 * 4 + i % 4, 'paid', (i % 9999) / 100.0
        from generate_series(1, 40000) i;
    create table SCHEMA.order_lines (order_id integer not null references SCHEMA.orders, line_no integer not null,
        tenant text not null, product text not null, quantity integer not null, primary key (order_id, line_no));
    insert into SCHEMA.order_lines select i, n, 't' || i % 4, 'product ' || (i * n) % 500, n
        from generate_series(1, 40000) i, generate_series(1, 5) n;
    create index on SCHEMA.orders (customer_id);
";

pub(crate) const ENTITIES: [&str; 3] = ["customers", "orders", "order_lines"];

/// The relationships of tenant `tenant`.
pub(crate) fn relationships(tenant: &str) -> String {
    let one = |name: &str, inverse: &str, from: &str, to: &str| {
        format!(
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: Relationship\nmetadata: {{name: {tenant}-{name}}}\nspec:\n  \
             tenantRef: {{name: {tenant}}}\n  name: {name}\n  from: {from}\n  to: {to}\n  cardinality: One\n  inverse: {inverse}\n"
        )
    };
    let customer = one(
        "customer",
        "orders",
        "{entity: orders, fields: [customer_id]}",
        "{entity: customers, fields: [id]}",
    );
    let order =
        one("order", "lines", "{entity: order_lines, fields: [order_id]}", "{entity: orders, fields: [id]}");
    customer + &order
}

/// Behind which order the n-th page begins: fifty of `t1` follow.
fn start(n: u64) -> u64 {
    id(n) % (ORDERS - 1000)
}

const SELECTED: &str = "id state total customer { id name } lines { items { line_no product quantity } }";

impl Stage {
    pub(crate) fn nested(&self) -> Requests {
        let key = format!("X-API-Key: {}\r\n", self.keys[0]);
        Arc::new(move |n| {
            let path = format!(
                "/auth/bench/api/orders?$select=id,state,total&$filter=id%20gt%20{}&$first=50\
                 &$expand=customer($select=id,name),lines($select=line_no,product,quantity)",
                start(n)
            );
            request(&path, &key)
        })
    }

    pub(crate) fn nested_graphql(&self) -> Requests {
        let key = format!("X-API-Key: {}\r\n", self.keys[0]);
        let query = format!(
            "query($after: Int!) {{ orders(first: 50, filter: {{id: {{gt: $after}}}}) {{ items {{ {SELECTED} }} }} }}"
        );
        Arc::new(move |n| {
            let body = json!({"query": query, "variables": {"after": start(n)}});
            sent("POST", "/auth/bench/graphql", &key, &body.to_string())
        })
    }
}

impl Peer {
    /// `None`: it has no nested reads.
    pub(crate) fn nested(&self) -> Option<Requests> {
        let root = self.root;
        match self.language {
            Language::Rows => None,
            Language::PostgRest => Some(Arc::new(move |n| {
                let path = format!(
                    "{root}/orders?select=id,state,total,customer:customers(id,name),\
                     lines:order_lines(line_no,product,quantity)&id=gt.{}&order=id&limit=50",
                    start(n)
                );
                request(&path, "")
            })),
            // without a plugin it filters by equality only, so pages begin behind an offset
            Language::PostGraphile => Some(Arc::new(move |n| {
                let query = "query($offset: Int!) { orders: allOrders(first: 50, offset: $offset, orderBy: PRIMARY_KEY_ASC) {
                    items: nodes { id state total customer: customerByCustomerId { id name }
                        lines: orderLinesByOrderId(orderBy: PRIMARY_KEY_ASC) { items: nodes { line_no: lineNo product quantity } } } } }";
                let body = json!({"query": query, "variables": {"offset": id(n) % 100}});
                sent("POST", "/graphql", "Accept: application/json\r\n", &body.to_string())
            })),
        }
    }
}

/// What each order of an answer holds, in any of the languages: its number, its customer, and the products of its lines.
pub(crate) fn orders(body: &[u8]) -> Vec<(Value, Value, Vec<Value>)> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let rows =
        [&answer, &answer["value"], &answer["data"]["orders"]["items"]].into_iter().find_map(Value::as_array);
    let order = |row: &Value| {
        let lines = [&row["lines"], &row["lines"]["items"]].into_iter().find_map(Value::as_array);
        let products = lines.into_iter().flatten().map(|line| line["product"].clone()).collect();
        (row["id"].clone(), row["customer"]["name"].clone(), products)
    };
    rows.into_iter().flatten().map(order).collect()
}
