//! The status of a key says when it was last used.

use jiff::{SignedDuration, Timestamp};
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::stage::{On, Stage, Wish};
use rowgate_tests::wait::until;

use crate::keys::rotation::used::written;
use crate::reconcile::scenarios::{NOTES, acme_with};

scenarios!(the_status_says_when_a_key_was_last_used_and_is_not_written_with_every_use);

async fn last_used(stage: &Stage, name: &str) -> Option<Timestamp> {
    let status = stage.status("ApiKey", name).await;
    status["lastUsedAt"].as_str().map(|text| text.parse().expect("a time"))
}

/// Seen to fail with a status that follows each written use.
async fn the_status_says_when_a_key_was_last_used_and_is_not_written_with_every_use(on: On) {
    let serving: &[&str] = &["--last-used-seconds", "1"];
    let stage = acme_with(on, Wish { serving, postgres: &["log_statement=all"], ..Wish::default() }).await;
    let north = stage.key("north").await;
    assert_eq!(last_used(&stage, "north").await, None);
    let before = Timestamp::now();
    assert!(stage.opens(&north, NOTES).await);
    let after = Timestamp::now();
    let first = until("the time of the first use", async || last_used(&stage, "north").await).await;
    let second = SignedDuration::from_secs(1);
    assert!(before - second <= first && first <= after + second, "{before} {first} {after}");
    assert_eq!(last_used(&stage, "south").await, None, "nobody used it");

    // used on and on: written down, and not told anew within a minute
    let id = stage.id("north").await;
    let noted = written(&stage.server, &id).await.expect("it was used");
    let mark = stage.mark();
    until("a later use", async || {
        assert!(stage.opens(&north, NOTES).await);
        (noted < written(&stage.server, &id).await?).then_some(())
    })
    .await;
    // a whole look lies between, and what it says
    let n_looks = || stage.server.log().matches("from dl.applied").count();
    let end = n_looks() + 3;
    until("further looks", async || (end <= n_looks()).then_some(())).await;
    let writes = stage.writes_since(&mark);
    assert!(!writes.iter().any(|write| write.contains("north")), "{writes:?}");
    assert_eq!(last_used(&stage, "north").await, Some(first));
    // a minute on, as the database has it
    let mut control = stage.server.connect("rowgate").await;
    let later = format!("update control.key_uses set used_at = used_at + interval '61 s' where key = '{id}'");
    execute(&mut control, &later).await;
    let told =
        until("the time a minute on", async || last_used(&stage, "north").await.filter(|at| *at != first))
            .await;
    assert!(SignedDuration::from_secs(60) <= told.duration_since(first), "{told} {first}");
}
