//! What a token opens: what its key opens, and no more.

use rowgate_core::jwt::{AUDIENCE, ISSUER};
use serde_json::json;

use super::shop::{EXCHANGE, PATHS, Shop};

#[tokio::test]
async fn a_token_reads_what_its_key_reads() {
    let shop = Shop::open().await;
    for name in ["shop-admin", "north", "south"] {
        let (key, token) = (shop.world.key(name), shop.token(name).await);
        assert_eq!(token.expires_in, 3600);
        let claims = token.claims();
        assert_eq!((claims.key.as_str(), claims.tenant.as_str()), (&*shop.key_id(name), "shop"));
        assert_eq!(claims.expires - claims.issued, 3600);
        let payload = token.part(1);
        assert_eq!((&payload["iss"], &payload["aud"]), (&json!(ISSUER), &json!(AUDIENCE)));
        assert_eq!(payload["nbf"], payload["iat"]);
        for path in PATHS {
            let with_key = shop.ask("GET", path, &[("x-api-key", &key)]).await;
            let with_token = shop.get(path, &token).await;
            assert_eq!(with_key.status, 200, "{name} {path}: {with_key:?}");
            assert_eq!(with_token.json(), with_key.json(), "{name} {path}");
        }
        // A cursor that the key was given goes on with its token.
        let page = shop.ask("GET", PATHS[1], &[("x-api-key", &key)]).await.json();
        let next = page["nextLink"].as_str().expect("more than three orders").to_owned();
        let path = next.strip_prefix(&shop.world.url()).expect("our own address");
        assert_eq!(shop.get(path, &token).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn the_role_header_and_the_scheme_are_compared_as_with_a_key() {
    let shop = Shop::open().await;
    let token = shop.token("north").await;
    let role = format!("key_{}", shop.key_id("north"));
    for path in PATHS {
        for (said, status) in [(&*role, 200), ("datalake_user", 403), ("", 403)] {
            let headers = [("authorization", &*token.bearer), ("x-ms-api-role", said)];
            assert_eq!(shop.ask("GET", path, &headers).await.status, status, "{path} {said:?}");
        }
    }
    for (scheme, status) in [("Bearer", 200), ("bearer", 200), ("BEARER", 200), ("Basic", 401), ("", 401)] {
        let value = format!("{scheme} {}", token.text());
        let reply = shop.ask("GET", PATHS[1], &[("authorization", &value)]).await;
        assert_eq!(reply.status, status, "{scheme:?}");
    }
    let key = shop.world.key("north");
    let headers = [("x-api-key", &*key), ("x-ms-api-role", "datalake_user")];
    assert_eq!(shop.ask("POST", EXCHANGE, &headers).await.status, 403);
}

#[tokio::test]
async fn a_key_and_a_token_together_are_refused_and_a_token_is_not_exchanged() {
    let shop = Shop::open().await;
    let (key, token) = (shop.world.key("north"), shop.token("north").await);
    let stranger = shop.stranger().await;
    for (method, path) in PATHS.map(|path| ("GET", path)).into_iter().chain([("POST", EXCHANGE)]) {
        for (key, bearer) in
            [(&*key, &*token.bearer), ("x", &token.bearer), (&key, "Bearer x"), (&key, "Basic x")]
        {
            let reply = shop.ask(method, path, &[("x-api-key", key), ("authorization", bearer)]).await;
            assert_eq!(reply.status, 400, "{path}");
            assert_eq!(reply.json()["error"]["code"], "BadRequest");
        }
        let twice = [("authorization", &*token.bearer), ("authorization", &*token.bearer)];
        assert_eq!(shop.ask(method, path, &twice).await, stranger, "{path}");
    }
    assert_eq!(shop.ask("POST", EXCHANGE, &[("authorization", &token.bearer)]).await, stranger);
    assert_eq!(shop.ask("POST", EXCHANGE, &[("x-api-key", "shop:dlk_x")]).await, stranger);
    assert_eq!(shop.ask("POST", EXCHANGE, &[]).await, stranger);
    assert!(stranger.challenge.expect("a 401 has it").contains("Bearer"));
    let wrong_method = shop.ask("GET", EXCHANGE, &[("x-api-key", &key)]).await;
    assert_eq!(wrong_method.json()["error"]["code"], "MethodNotAllowed");
    let url = format!("{}{EXCHANGE}", shop.world.url());
    let with_body = reqwest::Client::new().post(url).header("x-api-key", &key).body("{}");
    assert_eq!(with_body.send().await.expect("an answer").status(), 400);
}

#[tokio::test]
async fn anybody_may_have_the_public_keys_and_no_cache_keeps_a_token() {
    let shop = Shop::open().await;
    let reply = shop.ask("GET", "/.well-known/jwks.json", &[]).await;
    assert_eq!((reply.status.as_u16(), &*reply.cache), (200, "public, max-age=300"));
    let token = shop.token("north").await;
    let kid = token.part(0)["kid"].clone();
    let keys = reply.json()["keys"].clone();
    assert_eq!(keys.as_array().map(Vec::len), Some(1));
    let key = keys[0].as_object().expect("an object");
    let names: Vec<_> = key.keys().map(String::as_str).collect();
    assert_eq!(names, ["kty", "crv", "alg", "use", "kid", "x"], "and never d");
    assert_eq!((&key["kid"], &key["alg"], &key["crv"]), (&kid, &json!("EdDSA"), &json!("Ed25519")));
    let exchanged = shop.ask("POST", EXCHANGE, &[("x-api-key", &shop.world.key("north"))]).await;
    assert_eq!(exchanged.cache, "private, no-store");
    // Keys are greeted with on standard output, and nowhere else; tokens nowhere.
    let log = std::fs::read_to_string(shop.world.folder().join("stderr")).expect("the log of standalone");
    assert!(log.contains(EXCHANGE), "{log}");
    let key = shop.world.key("north");
    for secret in [token.text(), token.text().rsplit('.').next().expect("a signature"), &key[10..]] {
        assert!(!log.contains(secret), "{log}");
    }
}
