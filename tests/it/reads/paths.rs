//! Paths to rows that a row refers to, in `$orderby` and in comparisons of two fields: as PostgreSQL gives them to the key's role.

use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Value, json};

use super::expand::rows_as;

/// The shop, in which an order of the north belongs to a customer of the south.
async fn shop() -> (World, Client) {
    let mut world = World::founded_shop().await;
    world.start().await;
    let client = Client::new();
    until("the relationships of the shop", async || {
        let (url, key) = (world.shop_url("/orders?$first=1&$expand=customer"), world.key("shop-admin"));
        let reply = client.get(&url, &[("X-API-Key", &key)]).await;
        (reply.status == 200).then_some(())
    })
    .await;
    let mut superuser = world.superuser("shop").await;
    let south = "(select id from shop.customers where region = 'south' order by id limit 1)";
    let north = "(select id from shop.orders where region = 'north' order by id limit 1)";
    execute(&mut superuser, &format!("update shop.orders set customer_id = {south} where id = {north}"))
        .await;
    (world, client)
}

/// The ids that a statement gives to the role of a key.
async fn ids_as(world: &World, key: &str, text: &str) -> Vec<Value> {
    rows_as(world, key, text).await.iter().map(|row| row["id"].clone()).collect()
}

async fn ids(world: &World, client: &Client, key: &str, query: &str) -> Vec<Value> {
    let key = world.key(key);
    let mut path = format!("/orders?$select=id&{query}");
    let mut ids = Vec::new();
    loop {
        let reply = client.get(&world.shop_url(&path), &[("X-API-Key", &key)]).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        let page = reply.json();
        ids.extend(page["value"].as_array().expect("rows").iter().map(|row| row["id"].clone()));
        let Some(link) = page["nextLink"].as_str() else { return ids };
        path = link.split_once("/auth/shop/api").expect("an address of ours").1.to_owned();
    }
}

#[tokio::test]
async fn rows_come_in_the_order_of_rows_that_they_refer_to() {
    let (world, client) = shop().await;
    for key in ["north", "shop-admin"] {
        for (order, sql) in [
            ("customer/name", "c.name, o.id"),
            ("customer/name desc,placed_at desc", "c.name desc, o.placed_at desc, o.id"),
            ("state,customer/region desc,id desc", "o.state, c.region desc, o.id desc"),
        ] {
            let text = format!(
                "select o.id from shop.orders o left join shop.customers c on c.id = o.customer_id order by {sql}"
            );
            let wanted = ids_as(&world, key, &text).await;
            for rest in ["&$first=37", "&$first=90&$expand=lines($select=line_no),customer($select=name)"] {
                let found = ids(&world, &client, key, &format!("$orderby={order}{rest}")).await;
                assert!(found == wanted, "{key} {order}{rest}: {found:?} instead of {wanted:?}");
            }
        }
    }
    // a customer whom the key does not see has no name for it
    let first = ids(&world, &client, "north", "$orderby=customer/name desc&$first=1000").await[0].clone();
    let of_south = rows_as(
        &world,
        "north",
        "select id from shop.orders where customer_id not in (select id from shop.customers)",
    )
    .await;
    assert_eq!(of_south, [json!({"id": first})]);

    // each customer's newest line first, of a list within rows
    let key = world.key("shop-admin");
    let path = "/products?$select=id&$first=5&$expand=lines($select=line_no,order_id;$orderby=order/placed_at desc;$first=3)";
    let page = client.get(&world.shop_url(path), &[("X-API-Key", &key)]).await.json();
    for product in page["value"].as_array().expect("rows") {
        let text = format!(
            "select l.order_id, l.line_no from shop.order_lines l join shop.orders o on o.id = l.order_id
             where product_id = {} order by o.placed_at desc, l.order_id, l.line_no limit 3",
            product["id"]
        );
        let wanted = rows_as(&world, "shop-admin", &text).await;
        assert_eq!(product["lines"], json!(wanted), "{product}");
    }
}

#[tokio::test]
async fn a_field_is_compared_with_one_of_a_row_that_the_row_refers_to() {
    let (world, client) = shop().await;
    for key in ["north", "shop-admin"] {
        for (filter, sql) in [
            ("customer/region ne region", "c.region <> o.region"),
            ("not (customer/region eq region)", "not (c.region = o.region)"),
            ("customer/id lt id and state ne 'new'", "c.id < o.id and o.state <> 'new'"),
            (
                "lines/any(l: l/product/price gt l/unit_price)",
                "exists (select from shop.order_lines l join shop.products p on p.id = l.product_id
                 where l.order_id = o.id and p.price > l.unit_price)",
            ),
        ] {
            let text = format!(
                "select o.id from shop.orders o left join shop.customers c on c.id = o.customer_id where {sql} order by o.id"
            );
            let wanted = ids_as(&world, key, &text).await;
            let filter = filter.replace(' ', "%20");
            let found = ids(&world, &client, key, &format!("$filter={filter}&$first=1000")).await;
            assert!(found == wanted, "{key} {filter}: {found:?} instead of {wanted:?}");
        }
    }
}
