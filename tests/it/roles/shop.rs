//! The example shop, in the database.

use std::collections::BTreeMap;

use rowgate_core::role::TenantLogin;
use rowgate_core::secret::{Credential, PresentedKey};
use rowgate_pg::{keys, session};
use rowgate_tests::postgres::connect;
use rowgate_tests::reconciler::{DONE, Reconciler};

use super::one;

#[tokio::test]
async fn the_shop_comes_up_and_its_keys_see_what_they_should() {
    let files = ["bootstrap.yaml", "keys.yaml", "tenant.yaml"].map(|name| (name, example(name)));
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let reconciler = Reconciler::new(&files).await;
    let status = reconciler.told("tenant", "shop", 1, DONE).await;
    assert_eq!((&status["entities"], &status["keys"]), (&5.into(), &3.into()));

    let login = reconciler.login("shop", TenantLogin::Auth);
    let mut auth = session::connect(&login).await.expect("lane A's login");
    let pepper = reconciler.installation.roots().dataplane.pepper();
    for key in ["shop-admin", "north", "south"] {
        let status = reconciler.told("apikey", key, 1, DONE).await;
        let secret: BTreeMap<_, _> = reconciler.secret(key).expect("a Secret");
        assert_eq!(secret["role"], status["role"].as_str().expect("a role"));
        let presented = PresentedKey::parse(&secret["apiKey"]).expect("a key string");
        let credential = Credential::Secret(presented.secret.digest(&pepper));
        let found = keys::find(&mut auth, &credential).await.expect("an answer");
        let found = found.expect("a live key");
        assert_eq!(
            (found.role, found.id.as_str()),
            (secret["role"].clone(), status["apiKeyId"].as_str().unwrap())
        );
        assert!(found.set_role.is_some());
    }
    for (key, other) in [("north", "south"), ("south", "north")] {
        let mut conn = connect(&reconciler.key(key, "shop")).await.expect("the key's role");
        let regions = "select string_agg(distinct region, ' ') from shop.orders";
        assert_eq!(one::<String>(&mut conn, regions).await, key, "and nothing of {other}");
    }
}

fn example(name: &str) -> String {
    let path = format!("{}/../examples/shop/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the example is committed")
}
