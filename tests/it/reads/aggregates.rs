//! `POST /api/ddl/aggregates/{entity}`: what PostgreSQL gives to the key's role, and nothing to a key that may not read it.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Value, json};

use super::expand::rows_as;

const JSON: (&str, &str) = ("Content-Type", "application/json");

struct Shop {
    world: World,
    client: Client,
}

impl Shop {
    async fn open() -> Shop {
        let mut world = World::founded_shop().await;
        world.start().await;
        Shop { world, client: Client::new() }
    }

    async fn send(&self, method: &str, key: &str, path: &str, body: &str) -> Reply {
        let url = format!("{}/api/ddl/aggregates/{path}", self.world.url());
        self.client.send(method, &url, &[("X-API-Key", key), ("X-Request-Id", "r1"), JSON], body).await
    }

    async fn ask(&self, key: &str, entity: &str, body: &Value) -> Reply {
        self.send("POST", &self.world.key(key), entity, &body.to_string()).await
    }

    async fn groups(&self, key: &str, entity: &str, body: &Value) -> Value {
        let reply = self.ask(key, entity, body).await;
        assert_eq!(reply.status, 200, "{key} {body}: {reply:?}");
        reply.json()
    }

    /// The rows of `text`, as the role of a key sees them.
    async fn as_role(&self, key: &str, text: &str) -> Value {
        Value::Array(rows_as(&self.world, key, text).await)
    }
}

/// Keys without a scope and with one, under policies that show each a region; and views.
#[tokio::test]
async fn groups_are_those_that_postgresql_gives_to_the_role_of_the_key() {
    let shop = Shop::open().await;
    for (entity, body, wanted) in [
        (
            "orders",
            json!({"groupBy": ["state"], "aggregations": [{"function": "count", "as": "n"},
                {"function": "max", "field": "id", "as": "last"}, {"function": "count", "field": "shipped_on", "as": "shipped"},
                {"function": "count", "field": "customer_id", "distinct": true, "as": "customers"}],
                "orderby": "n desc"}),
            "select state::text, count(*) n, max(id) last, count(shipped_on) shipped, count(distinct customer_id) customers
             from shop.orders group by orders.state order by n desc, orders.state",
        ),
        (
            "orders",
            json!({"groupBy": ["region", "shipped_on"], "aggregations": [{"function": "count", "as": "n"}],
                "filter": "id gt 3 and customer/newsletter", "having": "n ge 1 and (shipped_on eq null or n in (1,2,3))",
                "orderby": "shipped_on desc", "first": -1}),
            "select o.region, shipped_on::text, count(*) n from shop.orders o join shop.customers c on c.id = customer_id
             where o.id > 3 and newsletter group by o.region, shipped_on
             having count(*) >= 1 and (shipped_on is null or count(*) in (1, 2, 3)) order by o.shipped_on desc, o.region",
        ),
        (
            "order_lines",
            json!({"aggregations": [{"function": "sum", "field": "quantity", "as": "total"},
                {"function": "min", "field": "quantity", "as": "least"}], "filter": "quantity gt 1"}),
            "select sum(quantity) total, min(quantity) least from shop.order_lines where quantity > 1",
        ),
        (
            "orders",
            json!({"groupBy": ["region"], "filter": "lines/any(l: l/quantity gt 1)"}),
            "select distinct region from shop.orders o where exists (select from shop.order_lines l where l.order_id = o.id
             and l.quantity > 1) order by region",
        ),
        // no row: one group without keys, and none with
        (
            "orders",
            json!({"aggregations": [{"function": "count", "as": "n"}, {"function": "sum", "field": "id", "as": "s"}],
                "filter": "id lt 0"}),
            "select 0::bigint as n, null::numeric as s",
        ),
        (
            "orders",
            json!({"groupBy": ["region"], "aggregations": [{"function": "count", "as": "n"}], "filter": "id lt 0"}),
            "select 1 where false",
        ),
        (
            "orders",
            json!({"aggregations": [{"function": "count", "as": "n"}], "having": "n lt 0"}),
            "select 1 where false",
        ),
    ] {
        for key in ["shop-admin", "north"] {
            let found = until("the relationships of the shop", async || {
                let reply = shop.ask(key, entity, &body).await;
                (reply.status == 200).then(|| reply.json())
            })
            .await;
            assert_eq!(found, json!({"value": shop.as_role(key, wanted).await, "after": null}), "{key} {body}");
        }
    }
    // a region of its own each, so that both were asked of other rows
    let regions =
        async |key| shop.groups(key, "orders", &json!({"groupBy": ["region"]})).await["value"].clone();
    assert_eq!(regions("north").await, json!([{"region": "north"}]));
    assert_eq!(regions("shop-admin").await.as_array().map(Vec::len), Some(2));
}

/// In every place of a body that takes a name.
#[tokio::test]
async fn a_field_that_the_key_may_not_read_is_one_that_is_not_there() {
    let shop = Shop::open().await;
    // `south` reads neither
    for (entity, hidden) in [("order_lines", "unit_price"), ("customers", "email")] {
        for body in [
            json!({"groupBy": ["NAME"]}),
            json!({"aggregations": [{"function": "sum", "field": "NAME", "as": "n"}]}),
            json!({"aggregations": [{"function": "max", "field": "NAME", "as": "n"}]}),
            json!({"aggregations": [{"function": "count", "field": "NAME", "as": "n", "distinct": true}]}),
            json!({"aggregations": [{"function": "count", "as": "n"}], "filter": "NAME eq null"}),
            json!({"groupBy": ["region"], "having": "NAME eq null"}),
            json!({"aggregations": [{"function": "count", "as": "n"}], "orderby": "NAME"}),
        ] {
            let answer = async |name: &str| {
                let body = body.to_string().replace("NAME", name).replace("region", "product_id");
                let body = if entity == "customers" { body.replace("product_id", "region") } else { body };
                let url = format!("{}/api/ddl/aggregates/{entity}", shop.world.url());
                let key = shop.world.key("south");
                let headers = [("X-API-Key", key.as_str()), ("X-Request-Id", "r1"), JSON];
                let reply = shop.client.send("POST", &url, &headers, &body).await;
                assert_eq!(reply.status, 400, "{body}: {reply:?}");
                reply.body.replace(name, "NAME")
            };
            let absent = format!("x{}", "q".repeat(hidden.len() - 1));
            assert_eq!(answer(hidden).await, answer(&absent).await, "{body}");
        }
    }
    let total = json!({"aggregations": [{"function": "sum", "field": "unit_price", "as": "total"}]});
    let admin = shop.groups("shop-admin", "order_lines", &total).await;
    assert!(admin["value"][0]["total"].is_number(), "who may read it sums it: {admin}");
    for entity in ["products", "nothing"] {
        let reply = shop.ask("south", entity, &json!({"aggregations": []})).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (404, &json!("EntityNotFound")));
    }
}

#[tokio::test]
async fn requests_that_are_none_are_refused_and_a_dead_key_learns_nothing() {
    let shop = Shop::open().await;
    let key = shop.world.key("shop-admin");
    let count = json!({"aggregations": [{"function": "count", "as": "n"}]}).to_string();
    for (method, path, body, status, words) in [
        ("POST", "orders", r#"{"groupBy": ["state"]}"#, 200, "value"),
        ("POST", "orders/", r#"{"groupBy": ["state"]}"#, 200, "value"),
        ("POST", "orders", "", 400, "send an object such as"),
        ("POST", "orders", "{}", 400, "name at least one field in groupBy, or one aggregation"),
        ("POST", "orders", r#"{"groupby": ["state"]}"#, 400, r#"did you mean \"groupBy\"?"#),
        ("POST", "orders", r#"{"groupBy": ["stat"]}"#, 400, r#"did you mean \"state\"?"#),
        ("POST", "orders", r#"{"groupBy": ["state"], "first": 0}"#, 400, "first is a number of rows from 1"),
        ("POST", "orders", r#"{"groupBy": ["state"], "after": "AAAA"}"#, 400, "the cursor in after belongs"),
        ("POST", "orders", r#"{"groupBy": ["state"], "having": "state eq 'sent'"}"#, 400, "InvalidValue"),
        ("POST", "orders", r#"{"groupBy": ["state"], "filter": "state eq 'sent'"}"#, 400, "one of 'new'"),
        ("POST", "orders", r#"{"groupBy": ["state"], "filter": "id eq"}"#, 400, "InvalidFilter"),
        ("POST", "orders?$first=1", &count, 400, "stand in the body"),
        ("POST", "place_order", &count, 400, "is a procedure and has no rows"),
        ("GET", "orders", "", 405, "MethodNotAllowed"),
        ("DELETE", "orders", "", 405, "MethodNotAllowed"),
        ("POST", "orders/id/7", &count, 404, "NotFound"),
    ] {
        let reply = shop.send(method, &key, path, body).await;
        assert!(
            reply.status.as_u16() == status && reply.body.contains(words) && !reply.body.contains("$f"),
            "{method} {path} {body}: {reply:?}"
        );
        if status == 405 {
            assert_eq!(reply.header("allow"), Some("POST, OPTIONS"));
        }
    }
    let strange = shop.send("POST", &rowgate_tests::world::invented("shop"), "orders", &count).await;
    let mut conn = shop.world.superuser("shop").await;
    let living = shop.send("POST", &key, "orders", &count).await;
    assert_eq!(living.status, 200, "{living:?}");
    execute(&mut conn, "select dl.revoke(id) from dl.keys where name = 'shop-admin'").await;
    for (path, body) in [("orders", &*count), ("orders", "no JSON"), ("nothing", &*count)] {
        let dead = shop.send("POST", &key, path, body).await;
        assert_eq!(dead.status, 401, "{dead:?}");
        assert_eq!(dead.tellable(), strange.tellable(), "{path} {body}");
    }
}

const SOFT: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: soft-script}
data:
  schema.sql: |
    create schema f;
    create table f.trees (id integer primary key, kind text not null);
    insert into f.trees values (1, 'oak'), (2, 'elm'), (3, 'elm'), (4, 'ash');
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: shop}
spec:
  database: {name: shop, bootstrap: {configMapRef: {name: soft-script}}}
  entities:
    - {name: trees, source: {schema: f, object: trees}, concurrencyProtection: {}, hideSoftDeleted: true, rowLevelSecurity: {none: true}}
  shared:
    permissions:
      - {entity: trees, actions: [read, update]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: every}
spec: {tenantRef: {name: shop}}
";

#[tokio::test]
async fn rows_that_are_flagged_as_deleted_are_in_no_group() {
    let mut world = World::new(&[("soft.yaml", SOFT)]).await;
    world.start().await;
    let shop = Shop { world, client: Client::new() };
    let key = shop.world.key("every");
    let body = json!({"groupBy": ["kind"], "aggregations": [{"function": "count", "as": "n"}]});
    let groups = async || shop.groups("every", "trees", &body).await["value"].clone();
    assert_eq!(
        groups().await,
        json!([{"kind": "ash", "n": 1}, {"kind": "elm", "n": 2}, {"kind": "oak", "n": 1}])
    );
    for id in [1, 2] {
        let url = shop.world.shop_url(&format!("/trees/id/{id}"));
        let row = shop.client.get(&url, &[("X-API-Key", &key)]).await.json()["value"][0].clone();
        let body = json!({"is_deleted": true, "dl_expected_ts": row["dl_expected_ts"]}).to_string();
        let reply = shop.client.send("PATCH", &url, &[("X-API-Key", &key), JSON], &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert_eq!(groups().await, json!([{"kind": "ash", "n": 1}, {"kind": "elm", "n": 1}]));
}
