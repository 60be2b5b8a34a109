//! The example shop comes up.

use std::collections::BTreeSet;

use rowgate_tests::servers::postgres::connect;
use rowgate_tests::stage::{DONE, On, Stage};

use crate::reconcile::acme::one;

scenarios!(the_shop_comes_up_and_its_keys_see_what_they_should);

async fn the_shop_comes_up_and_its_keys_see_what_they_should(on: On) {
    let stage = Stage::shop(on).await;
    let status = stage.told("Tenant", "shop", 1, DONE).await;
    assert_eq!((&status["entities"], &status["keys"]), (&8.into(), &3.into()));
    for (key, sees) in
        [("shop-admin", &["north", "south"][..]), ("north", &["north"][..]), ("south", &["south"][..])]
    {
        let status = stage.told("ApiKey", key, 1, DONE).await;
        let secret = stage.secret(key).await.expect("a Secret");
        assert_eq!(secret["role"], status["role"].as_str().expect("a role"));
        assert_eq!(stage.owner(key).await, Some(("ApiKey".to_owned(), key.to_owned())));
        let answer = stage.get(&secret["apiKey"], "/auth/shop/api/orders?$select=region&$first=-1").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let rows = answer.body["value"].as_array().expect("rows");
        let regions: BTreeSet<&str> = rows.iter().filter_map(|row| row["region"].as_str()).collect();
        assert_eq!(regions.into_iter().collect::<Vec<_>>(), sees, "{key}");
    }
    for key in ["north", "south"] {
        let mut conn = connect(&stage.role(key, "shop").await).await.expect("the key's role");
        let regions = "select string_agg(distinct region, ' ') from shop.orders";
        assert_eq!(one::<String>(&mut conn, regions).await, key, "and nothing of the other");
    }
}
