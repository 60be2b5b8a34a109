//! Which tokens hold, when, and under which keys.

use serde_json::{Value, json};

use super::*;
use crate::derive::{Root, mac};

const NOW: i64 = 1_800_000_000;

fn signers() -> Signers {
    Signers::new(Root::new([1; 32]).signing_key(1), Vec::new())
}

fn claims() -> Claims {
    let (key, secret) = (Ulid::from_parts(1, [1; 10]), Ulid::from_parts(1, [2; 10]));
    Claims::new(key, secret, "shop".parse().expect("a slug"), NOW, LIFETIME)
}

fn payload() -> Value {
    serde_json::to_value(Payload::of(&claims())).expect("JSON")
}

/// A token of our own key whose payload is any text.
fn sealed(payload: &str) -> String {
    signers().signing.seal(payload.as_bytes())
}

fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// `payload` under another header, signed by our own key.
fn headed(header: &str) -> String {
    let signed = format!("{}.{}", encode(header), encode(&payload().to_string()));
    let signature = signers().signing.key.sign(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

#[test]
fn a_token_says_what_was_signed_and_nothing_secret_is_printed() {
    let token = signers().sign(&claims());
    assert_eq!(signers().verify(&token, NOW), Ok(claims()));
    let payload: Vec<_> = payload().as_object().expect("an object").keys().map(ToOwned::to_owned).collect();
    assert_eq!(payload, ["iss", "aud", "sub", "sid", "tenant", "iat", "nbf", "exp"]);
    let kid = signers().signing.kid;
    assert!(kid.starts_with("1-") && kid.len() == 18, "{kid}");
    let printed = format!("{:?}", signers());
    assert_eq!(
        printed,
        format!("Signers {{ signing: SigningKey({kid}, hidden), retiring: [], unpublished: [] }}")
    );
}

#[test]
fn a_token_holds_from_its_beginning_to_its_end_and_thirty_seconds_around() {
    let holds = |claims: &Claims, now| signers().verify(&signers().sign(claims), now).is_ok();
    for (now, expected) in [
        (NOW - 31, false),
        (NOW - 30, true),
        (NOW, true),
        (NOW + 3629, true),
        (NOW + 3630, false),
        (i64::MAX, false),
        (i64::MIN, false),
    ] {
        assert_eq!(holds(&claims(), now), expected, "{}", now.saturating_sub(NOW));
    }
    let short = Claims::new(claims().key, claims().secret, claims().tenant, NOW, 5);
    assert!(holds(&short, NOW + 34) && !holds(&short, NOW + 35));
    let long = Claims::new(claims().key, claims().secret, claims().tenant, NOW, 1_000_000_000);
    assert_eq!(long.expires, NOW + LIFETIME);
    assert!(!holds(&Claims { expires: NOW + LIFETIME + 1, ..claims() }, NOW), "no key signs a longer one");
}

#[test]
fn two_generations_verify_while_one_follows_the_other() {
    let root = Root::new([1; 32]);
    let (old, new) = (signers(), Signers::new(root.signing_key(2), vec![root.signing_key(1)]));
    let done = Signers::new(root.signing_key(2), Vec::new());
    let (first, second) = (old.sign(&claims()), new.sign(&claims()));
    assert!(new.verify(&first, NOW).is_ok() && new.verify(&second, NOW).is_ok());
    assert!(old.verify(&second, NOW).is_err() && done.verify(&first, NOW).is_err());
    let jwks: Value = serde_json::from_str(&new.jwks()).expect("JSON");
    let kids: Vec<_> = jwks["keys"].as_array().expect("a list").iter().map(|key| &key["kid"]).collect();
    assert_eq!(kids, [&json!(done.signing.kid), &json!(old.signing.kid)]);
    assert_eq!(jwks["keys"][0]["x"].as_str().map(str::len), Some(43));
    let other = Signers::new(Root::new([2; 32]).signing_key(1), Vec::new());
    assert_ne!(other.signing.kid, old.signing.kid);
    assert!(other.verify(&first, NOW).is_err());
}

#[test]
fn another_header_is_refused_even_under_our_own_signature() {
    let kid = signers().signing.kid;
    let ours = format!(r#"{{"alg":"EdDSA","kid":"{kid}","typ":"JWT"}}"#);
    assert!(signers().verify(&headed(&ours), NOW).is_ok());
    for wrong in [
        String::new(),
        "{}".to_owned(),
        ours.replace("EdDSA", "none"),
        ours.replace("EdDSA", "None"),
        ours.replace("EdDSA", "HS256"),
        ours.replace("EdDSA", "Ed25519"),
        ours.replace("EdDSA", "ES256"),
        ours.replace(&kid, "2"),
        ours.replace(&kid, ""),
        ours.replace(&kid, "../../dev/null"),
        ours.replace("kid", "jku"),
        ours.replace("JWT", "JOSE"),
        ours.replace('}', r#","crit":["exp"]}"#),
        ours.replace('}', r#","zip":"DEF"}"#),
        ours.replace('}', r#","jwk":{"kty":"OKP"}}"#),
        format!("{ours} "),
    ] {
        assert_eq!(signers().verify(&headed(&wrong), NOW), Err(NotAToken), "{wrong}");
    }
}

#[test]
fn other_claims_are_refused_even_under_our_own_signature() {
    assert!(signers().verify(&sealed(&payload().to_string()), NOW).is_ok());
    let mut more = payload();
    more["scope"] = json!("later");
    assert!(signers().verify(&sealed(&more.to_string()), NOW).is_ok(), "a newer replica may say more");
    for claim in ["iss", "aud", "sub", "sid", "tenant", "iat", "nbf", "exp"] {
        for wrong in
            [Value::Null, json!("x"), json!(""), json!(-1), json!(1.5), json!([]), json!({}), json!("Ü")]
        {
            // A tenant called x there may be.
            let mut changed = payload();
            changed[claim] = wrong.clone();
            let holds = signers().verify(&sealed(&changed.to_string()), NOW).is_ok();
            let expected = match claim {
                "tenant" => wrong == json!("x"),
                "nbf" => wrong == json!(-1),
                _ => false,
            };
            assert_eq!(holds, expected, "{claim}: {wrong}");
        }
        let mut without = payload();
        without.as_object_mut().expect("an object").remove(claim);
        assert!(signers().verify(&sealed(&without.to_string()), NOW).is_err(), "{claim}");
    }
    let twice = payload().to_string().replace("\"exp\"", "\"exp\":1,\"exp\"");
    for wrong in ["", "{}", "[]", "null", "\0", &twice, &format!("{} x", payload())] {
        assert!(signers().verify(&sealed(wrong), NOW).is_err(), "{wrong}");
    }
}

#[test]
fn what_no_key_of_ours_signed_is_refused() {
    let token = signers().sign(&claims());
    let parts: Vec<_> = token.split('.').collect();
    let (header, body, signature) = (parts[0], parts[1], parts[2]);
    let public = signers().signing.key.verifying_key().to_bytes();
    let hs256 = |key: &[u8]| {
        let head = encode(&format!(r#"{{"alg":"HS256","kid":"{}","typ":"JWT"}}"#, signers().signing.kid));
        let tag = mac(key, format!("{head}.{body}").as_bytes());
        format!("{head}.{body}.{}", URL_SAFE_NO_PAD.encode(tag))
    };
    let kept_header = URL_SAFE_NO_PAD.encode(mac(&public, format!("{header}.{body}").as_bytes()));
    let other = encode(&payload().to_string().replace("shop", "spa"));
    let forms = [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        "a.b.c".to_owned(),
        format!("{header}.{body}"),
        format!("{header}.{body}."),
        format!("{header}..{signature}"),
        format!(".{body}.{signature}"),
        format!("{token}."),
        format!("{token}.{signature}"),
        format!("{token}="),
        format!("{token} "),
        format!(" {token}"),
        format!("{body}.{header}.{signature}"),
        format!("{header}.{other}.{signature}"),
        format!("{header}.{body}.{}", "A".repeat(86)),
        format!("{header}.{body}.{}", &signature[..85]),
        format!("{header}.{body}.{kept_header}"),
        hs256(&public),
        hs256(signers().jwks().as_bytes()),
        hs256(b""),
        format!("{}.{body}.", encode(r#"{"alg":"none"}"#)),
        format!("{header}.{body}.{}", "A".repeat(MAX_LEN)),
        "A".repeat(1 << 20),
    ];
    for wrong in &forms {
        assert_eq!(signers().verify(wrong, NOW), Err(NotAToken), "{}", &wrong[..wrong.len().min(300)]);
    }
    for i in 0..token.len() {
        let mut wrong = token.clone().into_bytes();
        wrong[i] = if wrong[i] == b'A' { b'B' } else { b'A' };
        let wrong = String::from_utf8(wrong).expect("ASCII");
        assert!(signers().verify(&wrong, NOW).is_err(), "{i}: {wrong}");
    }
}
