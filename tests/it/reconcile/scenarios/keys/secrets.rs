//! Secrets that somebody else writes or deletes.

use std::collections::BTreeMap;

use rowgate_tests::stage::{DONE, On};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use crate::reconcile::acme::key;
use crate::reconcile::scenarios::{NOTES, acme};

scenarios!(
    a_secret_deleted_by_hand_is_issued_anew_and_the_old_one_dies,
    a_secret_that_is_somebody_elses_is_left_alone,
);

async fn a_secret_deleted_by_hand_is_issued_anew_and_the_old_one_dies(on: On) {
    let stage = acme(on).await;
    let (before, old) = (stage.status("ApiKey", "north").await, stage.key("north").await);
    stage.drop_secret("north").await;
    let new = until("a new secret", async || stage.secret("north").await).await["apiKey"].clone();
    assert_ne!(new, old);
    until("the new one to work", async || stage.opens(&new, NOTES).await.then_some(())).await;
    assert!(!stage.opens(&old, NOTES).await);
    assert_eq!(stage.owner("north").await, Some(("ApiKey".to_owned(), "north".to_owned())));
    until("an event", async || {
        (stage.n_events("ApiKey", "north", "SecretReissued").await == 1).then_some(())
    })
    .await;
    let after = stage.told("ApiKey", "north", 1, DONE).await;
    assert_eq!((&after["apiKeyId"], &after["role"]), (&before["apiKeyId"], &before["role"]));

    // one that holds something else is left alone, and told
    stage.set_secret("north", &BTreeMap::from([("apiKey".to_owned(), "mine".to_owned())])).await;
    let status = stage.told("ApiKey", "north", 1, "SecretInvalid").await;
    assert!(ready(&status).1.contains("delete it to get a new key"), "{status}");
    assert_eq!(stage.key("north").await, "mine");
}

async fn a_secret_that_is_somebody_elses_is_left_alone(on: On) {
    let mut stage = acme(on).await;
    let theirs = BTreeMap::from([("password".to_owned(), "theirs".to_owned())]);
    stage.set_secret("late", &theirs).await;
    stage.put(&key("late", "acme", "")).await;
    stage.told("ApiKey", "late", 1, "SecretInvalid").await;
    stage.told("ApiKey", "north", 1, DONE).await;
    assert_eq!((stage.secret("late").await, stage.owner("late").await), (Some(theirs), None));
    // whoever takes it away gets a key there
    stage.drop_secret("late").await;
    stage.told("ApiKey", "late", 1, DONE).await;
    assert!(stage.opens(&stage.key("late").await, NOTES).await);
}
