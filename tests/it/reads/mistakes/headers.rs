//! Keys in the headers of other products, and methods that they answer at the address of a collection.

use rowgate_core::problem::Code;

use super::Shop;
use crate::http::conventions::assert_shape;

pub(super) async fn check(shop: &Shop) {
    let url = shop.world.shop_url("/orders");
    let bearer = format!("Bearer {}", shop.key);
    for header in [("apikey", &*shop.key), ("Authorization", &bearer), ("x-hasura-admin-secret", &shop.key)] {
        let reply = shop.client.get(&url, &[header]).await;
        assert_shape(&reply, Code::Unauthorized, header.0);
        assert!(Shop::words(&reply).contains("send X-API-Key: <tenant>:dlk_<secret>"), "{}", header.0);
    }
    let at = |path: &str| shop.world.shop_url(path);
    for (method, path, key, says) in [
        ("DELETE", "/orders?id=eq.5", "shop-admin", "a row's URL is /auth/shop/api/orders/id/{value}"),
        ("PATCH", "/orders?id=eq.5", "shop-admin", "a row's URL is /auth/shop/api/orders/id/{value}"),
        (
            "PUT",
            "/order_lines",
            "south",
            "a row's URL is /auth/shop/api/order_lines/order_id/{value}/line_no/{value}",
        ),
        // An entity that is not there and one that the key may not see are told alike.
        ("DELETE", "/absentee", "south", "a row's URL is /auth/{tenant}/api/{entity}/{key field}/{value}"),
        ("DELETE", "/products", "south", "a row's URL is /auth/{tenant}/api/{entity}/{key field}/{value}"),
    ] {
        let reply = shop.client.ask(method, &at(path), &[("X-API-Key", &shop.world.key(key))]).await;
        assert_shape(&reply, Code::MethodNotAllowed, path);
        assert!(Shop::words(&reply).ends_with(says), "{method} {path}: {reply:?}");
    }
}
