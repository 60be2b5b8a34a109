//! What is no token: forms that anybody can make without the signing key, and tokens of another tenant.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use rowgate_core::derive::Root;
use rowgate_core::jwt::{Claims, MAX_LEN, Signers};
use rowgate_core::name::Ulid;
use serde_json::{Value, json};
use sha2::Sha256;

use super::shop::{EXCHANGE, PATHS, Shop};

fn encode(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

fn hs256(header: &Value, payload: &str, key: &[u8]) -> String {
    let signed = format!("{}.{payload}", encode(header));
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

#[tokio::test]
async fn forged_tokens_get_the_answer_that_strangers_get() {
    let shop = Shop::open().await;
    let token = shop.token("shop-admin").await;
    let parts: Vec<&str> = token.text().split('.').collect();
    let (header, payload, signature) = (parts[0], parts[1], parts[2]);
    let jwks = shop.ask("GET", "/.well-known/jwks.json", &[]).await;
    let x = jwks.json()["keys"][0]["x"].as_str().expect("a text").to_owned();
    let public = URL_SAFE_NO_PAD.decode(&x).expect("base64url");
    let kid = token.part(0)["kid"].clone();
    let mut forms: Vec<(String, String)> = Vec::new();
    let mut form = |name: &str, text: String| forms.push((name.to_owned(), text));

    for alg in ["none", "None", "NONE", "nOnE", "HS256", "RS256", "ES256", "EdDSA ", ""] {
        let head = encode(&json!({"alg": alg, "kid": kid, "typ": "JWT"}));
        form(&format!("alg {alg:?}, no signature"), format!("{head}.{payload}."));
        form(&format!("alg {alg:?}, the old signature"), format!("{head}.{payload}.{signature}"));
    }
    for other in
        [json!("2"), json!(""), json!(null), json!(1), json!("../../etc/passwd"), json!("' or '1'='1")]
    {
        let head = encode(&json!({"alg": "EdDSA", "kid": other, "typ": "JWT"}));
        form(&format!("kid {other}"), format!("{head}.{payload}.{signature}"));
    }
    for extra in [
        json!({"crit": ["exp"]}),
        json!({"jku": "http://127.0.0.1/"}),
        json!({"jwk": {"kty": "OKP", "crv": "Ed25519", "x": x}}),
        json!({"zip": "DEF"}),
    ] {
        let mut head = token.part(0);
        let extra = extra.as_object().expect("an object").clone();
        head.as_object_mut().expect("an object").extend(extra.clone());
        form(&format!("header with {extra:?}"), format!("{}.{payload}.{signature}", encode(&head)));
    }
    let hs = json!({"alg": "HS256", "kid": kid, "typ": "JWT"});
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode([&[0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0][..], &public].concat())
    );
    for (name, key) in
        [("bytes", &*public), ("x", x.as_bytes()), ("PEM", pem.as_bytes()), ("JWKS", jwks.body.as_bytes())]
    {
        form(&format!("HS256 under our public key as {name}"), hs256(&hs, payload, key));
        form(&format!("HMAC called EdDSA under {name}"), hs256(&token.part(0), payload, key));
    }
    for (claim, value) in [
        ("sub", json!(shop.key_id("north"))),
        ("sid", json!(Ulid::from_parts(1, [0; 10]))),
        ("tenant", json!("spa")),
        ("exp", json!(4_000_000_000_i64)),
        ("iat", json!(0)),
        ("nbf", json!(0)),
        ("iss", json!("x")),
        ("aud", json!(["x"])),
        ("role", json!("datalake_user")),
    ] {
        let mut edited = token.part(1);
        edited[claim] = value;
        form(&format!("edited {claim}"), format!("{header}.{}.{signature}", encode(&edited)));
    }
    let of_another_root = Signers::new(Root::new([9; 32]).signing_key(1), Vec::new()).sign(&token.claims());
    form("another root's key", of_another_root.clone());
    let (_, foreign) = of_another_root.rsplit_once('.').expect("three parts");
    form("another root's signature", format!("{header}.{payload}.{foreign}"));
    form("another root's generation 2", {
        Signers::new(Root::new([9; 32]).signing_key(2), Vec::new()).sign(&token.claims())
    });
    form("no text", String::new());
    form("dots", "..".to_owned());
    form("two parts", format!("{header}.{payload}"));
    form("four parts", format!("{}.x", token.text()));
    form("a zero signature", format!("{header}.{payload}.{}", "A".repeat(86)));
    form("half a signature", format!("{header}.{payload}.{}", &signature[..43]));
    form("padding", format!("{}==", token.text()));
    form("quotes", format!("\"{}\"", token.text()));
    form("two of them", format!("{0},{0}", token.text()));
    form("a second Bearer", format!("Bearer {}", token.text()));
    form("too long", format!("{}{}", token.text(), "A".repeat(MAX_LEN)));
    form("the key", shop.world.key("shop-admin"));

    assert!(30 < forms.len(), "{}", forms.len());
    let stranger = shop.stranger().await;
    for (name, text) in forms {
        let bearer = format!("Bearer {text}");
        for path in PATHS {
            assert_eq!(
                shop.ask("GET", path, &[("authorization", &bearer)]).await,
                stranger,
                "{name}: {path}"
            );
        }
        assert_eq!(shop.ask("POST", EXCHANGE, &[("authorization", &bearer)]).await, stranger, "{name}");
    }
    assert_eq!(shop.get(PATHS[1], &token).await.status, 200, "the token itself still holds");
}

#[tokio::test]
async fn a_token_opens_its_own_tenant_only_even_when_we_signed_it() {
    let shop = Shop::open().await;
    let (ours, theirs) = (shop.token("shop-admin").await, shop.token("guest").await);
    let stranger = shop.stranger().await;
    let spa = "/auth/spa/api/products?$first=1";
    assert_eq!(shop.get(spa, &theirs).await.status, 200);
    for path in
        [spa, "/auth/spa/api", "/auth/Shop/api", "/auth/nobody/api", "/auth//api", "/auth/sh%6Fp%20/api"]
    {
        assert_eq!(shop.get(path, &ours).await, stranger, "{path}");
    }
    for path in PATHS {
        assert_eq!(shop.get(path, &theirs).await, stranger, "{path}");
    }
    let (ours, theirs, north) = (ours.claims(), theirs.claims(), shop.token("north").await.claims());
    for (path, claims) in [
        // A key of the shop in the spa, and the other way round.
        (spa, Claims { tenant: theirs.tenant.clone(), ..ours.clone() }),
        (PATHS[1], Claims { tenant: ours.tenant.clone(), ..theirs.clone() }),
        // Another key's secret.
        (PATHS[1], Claims { secret: north.secret.clone(), ..ours.clone() }),
        (PATHS[1], Claims { key: north.key.clone(), ..ours.clone() }),
        (PATHS[1], Claims { secret: Ulid::from_parts(1, [0; 10]), ..ours.clone() }),
        (PATHS[1], Claims { key: Ulid::from_parts(1, [0; 10]), ..ours.clone() }),
        // A tenant that does not exist.
        ("/auth/nobody/api", Claims { tenant: "nobody".parse().expect("a slug"), ..ours.clone() }),
    ] {
        assert_eq!(shop.get(path, &shop.sign(&claims)).await, stranger, "{path} {claims:?}");
    }
}
