//! A Secret whose key string is another key's, or that of a dead one: its ApiKey is told so, and nothing else stalls.

use std::collections::BTreeMap;

use rowgate_tests::asked::Asked;
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use crate::reconcile::acme::{SPEC, key, keys, reader, tenant};
use crate::reconcile::scenarios::scenarios;

const NOTES: &str = "/auth/acme/api/notes?$first=1";
const OTHERS: &str = "/auth/beta/api/notes?$first=1";

scenarios!(a_secret_that_holds_another_keys_string_is_told_to_its_key_alone);

fn holds(string: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("apiKey".to_owned(), string.to_owned())])
}

/// Seen to fail without `Strings::problem`.
async fn a_secret_that_holds_another_keys_string_is_told_to_its_key_alone(on: On) {
    let beta = tenant("beta", SPEC) + &key("other", "beta", &reader("north", "['*']"));
    let mut stage = Stage::open(on, &format!("{}{}---\n{beta}", tenant("acme", SPEC), keys())).await;
    for (kind, name) in [("ApiKey", "north"), ("ApiKey", "south"), ("ApiKey", "other")] {
        stage.told(kind, name, 1, DONE).await;
    }
    let (north, south, other) =
        (stage.key("north").await, stage.key("south").await, stage.key("other").await);
    let neighbour = Asked::begin(format!("{}{OTHERS}", stage.url()), other.clone(), &stage.pids());
    let revoked = format!("{}, revoked: true", reader("south", "[id, body]"));
    stage.put(&key("south", "acme", &revoked)).await;
    stage.told("ApiKey", "south", 2, "Revoked").await;

    // a string that nobody has used yet, in two Secrets at once
    let (_, string) = other.split_once(':').expect("a slug before it");
    let new = format!("acme:{string}");
    for (name, string) in
        [("twin", &north), ("restored", &south), ("foreign", &other), ("first", &new), ("second", &new)]
    {
        stage.set_secret(name, &holds(string)).await;
    }
    let scope = reader("north", "['*']");
    let more = ["twin", "restored", "foreign"].map(|name| key(name, "acme", &scope)).concat();
    stage.put(&more).await;
    for (name, parts) in [
        ("twin", &["Secret twin holds the key of ApiKey north", "delete the Secret"][..]),
        ("restored", &["a revoked key", "delete the Secret"]),
        ("foreign", &["holds no API key of this tenant", "delete it"]),
    ] {
        let status = stage.told("ApiKey", name, 1, "SecretInvalid").await;
        let (_, message) = ready(&status);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert!(!message.contains("beta") && !message.contains("dlk_"), "{message}");
        assert!(status["conditions"].to_string().contains("\"Stalled\""), "{status}");
    }
    stage.put(&["first", "second"].map(|name| key(name, "acme", &scope)).concat()).await;
    let (first, second) =
        (stage.settled("ApiKey", "first", 1).await, stage.settled("ApiKey", "second", 1).await);
    let mut reasons = [ready(&first).0, ready(&second).0];
    reasons.sort_unstable();
    assert_eq!(reasons, ["SecretInvalid", DONE], "{first} {second}");
    assert!(stage.opens(&new, NOTES).await);

    // nobody else stalls, and what was whole works on
    stage.told("Tenant", "acme", 1, DONE).await;
    stage.told("ApiKey", "north", 1, DONE).await;
    assert!(stage.opens(&north, NOTES).await && !stage.opens(&south, NOTES).await);
    assert_eq!(stage.key("twin").await, north, "it is left as it was written");

    for name in ["twin", "restored"] {
        stage.drop_secret(name).await;
        stage.told("ApiKey", name, 1, DONE).await;
        let own =
            until("authenticates as that ApiKey", async || stage.secret(name).await).await["apiKey"].clone();
        assert!(own != north && own != south && stage.opens(&own, NOTES).await);
    }
    assert!(stage.opens(&north, NOTES).await);
    stage.told("Tenant", "beta", 1, DONE).await;
    neighbour.always_answered().await;
}
