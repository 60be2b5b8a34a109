//! A tenant whose owner is hostile: each thing that it may do with the rights of its roles, beside a neighbour that is served and edited,
//! gets a key and loses one, and a tenant that is deleted. The table is `docs/decisions/neighbours.md`.

mod acts;
mod held;
mod refused;
mod scene;
mod served;

use std::time::Duration;

use rowgate_tests::servers::postgres::major;
use rowgate_tests::stage::{DONE, Stage};
use rowgate_tests::wait::until_ok;
use rowgate_tests::world::status::ready;
use serde_json::Value;

use crate::reconcile::acme::key;
use scene::{Hostile, SCOPED};
use served::Served;

/// Each of the operator's passes for the neighbour waits for a second at most, a few times.
const BOUND: Duration = Duration::from_secs(60);

/// Seen to fail without a bound of time for locks in the operator's transactions (`records::short_lock_waits`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_is_served_and_reconciled_whatever_an_owner_does() {
    assert!(60 <= acts::count() + held::count() + refused::count(), "the table is long");
    let mut stage = scene::open().await;
    let served = Served::begin(&stage).await;
    let hostile = Hostile::of(&stage).await;
    let mut wrong = Vec::new();

    let edited = async {
        stage.put(&scene::edited()).await;
        stage.told("Tenant", "beta", 2, DONE).await;
        let web = stage.key("beta-web").await;
        assert!(stage.opens(&web, "/auth/beta/api/extra?$first=1").await);
        stage
    };
    let (stage, by_owner) = tokio::join!(within("an edit", edited), hostile.as_owner());
    wrong.extend(by_owner);

    let holding = hostile.hold(&mut wrong).await;
    let (stage, by_keys) = tokio::join!(keys_come_and_go(stage), hostile.as_keys());
    wrong.extend(by_keys);
    assert!(
        wrong.is_empty(),
        "it is otherwise than the table says on PostgreSQL {}:\n{}",
        major(),
        wrong.join("\n")
    );
    drop(holding);
    // with a word on its objects that name others' roles
    honest(&stage, |status| ready(status).0 == DONE && status["warnings"].is_array()).await;

    end_of_the_hostile(stage, &hostile, served).await;
}

/// A key is made and used, one is deleted and refused, and a tenant goes, while the hostile one holds what it can.
async fn keys_come_and_go(mut stage: Stage) -> Stage {
    let notes = "/auth/beta/api/notes?$first=1";
    let made = async {
        stage.put(&key("beta-new", "beta", SCOPED)).await;
        stage.told("ApiKey", "beta-new", 1, DONE).await;
        assert!(stage.opens(&stage.key("beta-new").await, notes).await);
        stage
    };
    let mut stage = within("a new key", made).await;
    let lost = stage.key("beta-lost").await;
    assert!(stage.opens(&lost, notes).await);
    let removed = async {
        stage.remove("ApiKey", "beta-lost").await;
        stage.gone("ApiKey", "beta-lost").await;
        assert!(!stage.opens(&lost, notes).await);
        stage
    };
    let mut stage = within("the end of a key", removed).await;
    let deleted = async {
        stage.remove("Tenant", "gamma").await;
        stage.remove("ApiKey", "gamma-web").await;
        stage.gone("ApiKey", "gamma-web").await;
        stage.gone("Tenant", "gamma").await;
        stage
    };
    within("the end of a tenant", deleted).await
}

/// It shuts its database to everybody, and goes all the same.
async fn end_of_the_hostile(mut stage: Stage, hostile: &Hostile, served: Served) {
    let (wrong, _holding) = hostile.shut().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    honest(&stage, |status| ready(status).0 != DONE && !ready(status).1.is_empty()).await;
    let gone = async {
        stage.remove("Tenant", "acme").await;
        for name in ["acme-web", "acme-north"] {
            stage.remove("ApiKey", name).await;
            stage.gone("ApiKey", name).await;
        }
        stage.gone("Tenant", "acme").await;
        stage
    };
    let stage = within("the end of the hostile tenant", gone).await;
    stage.told("Tenant", "beta", 2, DONE).await;
    served.ends_well().await;
}

async fn within<T>(what: &str, step: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(BOUND, Box::pin(step)).await;
    done.unwrap_or_else(|_| panic!("{what} took longer than {} s", BOUND.as_secs()))
}

/// What the operator says of the hostile tenant in the end.
async fn honest(stage: &Stage, fits: impl Fn(&Value) -> bool) {
    until_ok("an honest status", async || {
        let status = stage.status("Tenant", "acme").await;
        if fits(&status) { Ok(()) } else { Err(status) }
    })
    .await;
}
