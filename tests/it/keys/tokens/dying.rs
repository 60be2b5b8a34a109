//! When a token dies: with its time, its key, its secret. No replica and no cache keeps one alive.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use rowgate_core::jwt::Claims;
use rowgate_tests::wait::until;

use super::shop::{EXCHANGE, PATHS, Shop};

#[tokio::test]
async fn a_token_ends_with_its_time_and_never_after_its_key() {
    let shop = Shop::open().await;
    let claims = shop.token("north").await.claims();
    let stranger = shop.stranger().await;
    let now = Timestamp::now().as_second();
    for (issued, expires, lives) in [
        (now, now + 60, true),
        (now - 3600, now - 31, false),
        (now + 120, now + 180, false),
        (now, now + 9999, false),
    ] {
        let token = shop.sign(&Claims { issued, expires, ..claims.clone() });
        for path in PATHS {
            let reply = shop.get(path, &token).await;
            assert_eq!(reply.status == 200, lives, "{path} {}..{}", issued - now, expires - now);
            assert!(lives || reply == stranger);
        }
    }
    let end = Timestamp::now() + SignedDuration::from_secs(20);
    let brief = format!(
        "apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: brief}}\n\
         spec: {{tenantRef: {{name: shop}}, expiresAt: \"{end}\"}}\n"
    );
    shop.world.write("brief.yaml", &brief);
    let path = shop.world.state().join("secrets/default/brief.yaml");
    let key = until("the brief key", async || {
        let secret: serde_json::Value = serde_yaml::from_str(&fs::read_to_string(&path).ok()?).ok()?;
        let key = secret["stringData"]["apiKey"].as_str()?.to_owned();
        let reply = shop.ask("GET", PATHS[0], &[("x-api-key", &key)]).await;
        (reply.status == 200).then_some(key)
    })
    .await;
    let token = shop.exchange(&key).await;
    assert!((1..=20).contains(&token.expires_in), "{token:?}");
    assert!(token.claims().expires <= end.as_second() + 1);
    assert_eq!(shop.get(PATHS[1], &token).await.status, 200);
    until("the end of the brief key's token", async || {
        let reply = shop.get(PATHS[1], &token).await;
        (reply == stranger).then_some(())
    })
    .await;
    assert_eq!(shop.ask("POST", EXCHANGE, &[("x-api-key", &key)]).await, stranger);
}

#[tokio::test]
async fn a_secret_that_was_removed_by_hand_takes_its_tokens_with_it() {
    let shop = Shop::open().await;
    let old = shop.token("north").await;
    let path = shop.world.state().join("secrets/default").join(
        shop.world.status("ApiKey", "north")["secretName"].as_str().expect("it has one").to_owned() + ".yaml",
    );
    fs::remove_file(&path).expect("standalone wrote it");
    let stranger = shop.stranger().await;
    until("the death of the old secret's token", async || {
        (shop.get(PATHS[1], &old).await == stranger).then_some(())
    })
    .await;
    let text = fs::read_to_string(&path).expect("the new Secret was written before the old one died");
    let secret: serde_json::Value = serde_yaml::from_str(&text).expect("YAML");
    let key = secret["stringData"]["apiKey"].as_str().expect("a key");
    // Its digest is stored after it was written, and after the old one died.
    until("the new key", async || (shop.world.get(key, PATHS[1]).await.status == 200).then_some(())).await;
    let new = shop.exchange(key).await;
    assert_eq!(shop.get(PATHS[1], &new).await.status, 200);
    assert_eq!(new.claims().key, old.claims().key);
    assert_ne!(new.claims().secret, old.claims().secret);
}

#[tokio::test]
async fn revoking_from_the_command_line_needs_no_operator_and_reaches_every_replica_at_once() {
    let mut shop = Shop::open().await;
    let replica = shop.world.serve().await;
    let (key, token) = (shop.world.key("north"), shop.token("north").await);
    let (id, stranger) = (shop.key_id("north"), shop.stranger().await);
    let get = async |header: (&str, &str)| shop.ask_at(&replica, "GET", PATHS[1], &[header]).await;
    for header in [("x-api-key", &*key), ("authorization", &*token.bearer)] {
        assert_eq!(get(header).await.status, 200);
    }
    let south = shop.token("south").await;

    let unknown = "01k9zv5n2m8q4r6t0w3y7b1d5f";
    for (wrong, part) in
        [(unknown, "none of the 2 tenants"), ("north", "is not a key id"), ("", "is not a key id")]
    {
        let output = shop.revoke(wrong);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{output:?}");
    }
    assert_eq!(get(("authorization", &token.bearer)).await.status, 200);

    // Standalone is the operator here. PostgreSQL and the other replica go on without it.
    shop.world.kill().await;
    let get = async |header: (&str, &str)| shop.ask_at(&replica, "GET", PATHS[1], &[header]).await;
    let output = shop.revoke(&id);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains(&id) && said.contains("tenant shop"), "{output:?}");
    for header in [("x-api-key", &*key), ("authorization", &*token.bearer)] {
        assert_eq!(get(header).await, stranger);
    }
    assert_eq!(shop.ask_at(&replica, "POST", EXCHANGE, &[("x-api-key", &key)]).await, stranger);
    assert_eq!(get(("authorization", &south.bearer)).await.status, 200);
    let again = shop.revoke(&id);
    assert_eq!(String::from_utf8_lossy(&again.stdout), said, "the first time counts");

    shop.world.start().await;
    let now_told = shop.ask("GET", PATHS[1], &[("authorization", &token.bearer)]).await;
    assert_eq!(now_told, stranger, "the operator does not undo it");
    assert_eq!(shop.get(PATHS[1], &south).await.status, 200, "another replica, the same signing key");
}

#[tokio::test]
async fn a_key_revoked_in_its_manifest_takes_its_tokens_with_it() {
    let shop = Shop::open().await;
    let token = shop.token("shop-admin").await;
    assert_eq!(shop.get(PATHS[1], &token).await.status, 200);
    shop.world.edit(
        "keys.yaml",
        "  name: shop-admin\nspec:\n",
        "  name: shop-admin\nspec:\n  revoked: true\n",
    );
    let stranger = shop.stranger().await;
    until("the death of the revoked key's token", async || {
        (shop.get(PATHS[1], &token).await == stranger).then_some(())
    })
    .await;
}
