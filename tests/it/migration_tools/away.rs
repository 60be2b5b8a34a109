//! A table or view that was away when the tenant was looked at: once it is there again, it is served in time, and with the
//! columns of before.

use std::time::{Duration, Instant};

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use sqlx::{Connection as _, PgConnection};

use super::fixture::Trade;

const MAX_UNAVAILABLE: Duration = Duration::from_secs(5);

/// An entity, its fields for a key with `*`, how it goes, and how it comes back with one column more.
const CASES: [(&str, [&str; 3], &str, &str); 2] = [
    (
        "open_orders",
        ["id", "amount", "region"],
        "drop view trade.open_orders",
        "create view trade.open_orders as select o.id, o.amount, c.region, o.note
            from trade.orders o join trade.customers c on c.id = o.customer",
    ),
    (
        "customers",
        ["id", "name", "region"],
        "alter table trade.customers rename to customers_away",
        "alter table trade.customers_away add column email text;
            alter table trade.customers_away rename to customers",
    ),
];

/// What leads to the entity, and GraphQL, say so too, and not that nothing has such a name.
async fn is_away_by_every_way(trade: &Trade, entity: &str) {
    let key = trade.world.key("all");
    let mut paths = vec![format!("graphql?query={{{entity}(first:1){{items{{id}}}}}}")];
    if entity == "customers" {
        paths.extend(
            [
                "api/orders?$first=1&$expand=buyer",
                "api/orders?$first=1&$filter=buyer/region eq 'north'",
                "api/orders?$first=1&$orderby=buyer/name",
                "graphql?query={orders(first:1){items{id buyer{name}}}}",
                "graphql?query=query($f:CustomersFilterInput){orders(first:1){items{id}}}",
                "graphql?query=query($f:OrdersFilterInput){orders(first:1,filter:$f){items{id}}}\
                    &variables={\"f\":{\"buyer\":{\"region\":{\"eq\":\"north\"}}}}",
            ]
            .map(str::to_owned),
        );
    }
    for path in paths {
        let path = format!("/auth/trade/{}", path.replace(' ', "%20"));
        let answer = trade.world.get(&key, &path).await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
    }
    let orders = trade.world.get(&key, "/auth/trade/graphql?query={orders(first:1){items{id}}}").await;
    assert_eq!(
        (orders.status.as_u16(), &orders.body["errors"]),
        (200, &serde_json::Value::Null),
        "{orders:?}"
    );
    let unknown = trade.world.get(&key, "/auth/trade/graphql?query={orders(first:1){items{nothing}}}").await;
    assert_eq!(unknown.body["errors"][0]["extensions"]["code"], "BadRequest", "{unknown:?}");
}

#[tokio::test]
async fn what_is_there_again_is_served_in_time_and_shows_no_new_column() {
    let trade = Trade::open().await;
    let mut tool = PgConnection::connect(trade.entry("url")).await.expect("the migration login");
    for (entity, fields, goes, comes) in CASES {
        assert_eq!(trade.fields("north", entity).await, fields, "{entity}");
        execute(&mut tool, goes).await;
        until("a look that finds it gone", async || {
            let status = trade.world.status("Tenant", "trade").to_string();
            (status.contains("SourceNotFound") && status.contains(entity)).then_some(())
        })
        .await;
        let path = format!("/auth/trade/api/{entity}?$first=1");
        let answer = trade.world.get(&trade.world.key("north"), &path).await;
        assert_eq!(answer.status, 503, "{entity} will come back: {answer:?}");
        is_away_by_every_way(&trade, entity).await;
        execute(&mut tool, comes).await;
        let since = Instant::now();
        assert_eq!(trade.fields("north", entity).await, fields, "{entity}");
        let elapsed = since.elapsed();
        assert!(elapsed <= MAX_UNAVAILABLE, "{entity} was away for {elapsed:?} after it came back");
        trade.is_whole().await;
    }
}
