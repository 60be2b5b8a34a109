//! A signal of our own that a tenant's code gives, and whatever else such code does to the pass over its tenant.

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::stage::{DONE, On};
use rowgate_tests::wait::until;
use sqlx::Connection as _;

use super::hostile::HOSTILE;
use super::neighbour::Neighbour;
use crate::reconcile::acme::{SPEC, key, one, tenant};
use crate::reconcile::scenarios::{acme, scenarios};

scenarios!(
    what_a_script_raises_ends_in_its_tenants_status,
    a_fence_that_is_closed_by_hand_is_told_and_the_keys_of_its_tenant_die,
    a_script_that_hangs_does_not_outlive_the_process,
);

async fn what_a_script_raises_ends_in_its_tenants_status(on: On) {
    let mut stage = acme(on).await;
    let neighbour = Neighbour::of(&stage).await;
    for hostile in HOSTILE {
        stage.put(&hostile.manifests()).await;
    }
    for hostile in HOSTILE {
        hostile.is_told(&stage).await;
    }
    for hostile in HOSTILE {
        stage.remove("Tenant", hostile.name).await;
    }
    for hostile in HOSTILE {
        stage.gone("Tenant", hostile.name).await;
    }
    assert!(!stage.log().contains(&"x".repeat(600)), "the log quotes at length what a tenant raises");
    neighbour.ends_well(&stage).await;
}

const CLOSED: &str = "create or replace function dl.fence(wanted bigint) returns void language plpgsql as
    $$ begin raise exception 'closed' using errcode = 'RG001'; end $$";
const TRAPPED: &str = "create function public.trap() returns trigger language plpgsql as
        $$ begin raise exception 'trapped' using errcode = 'RG001'; end $$;
    create trigger trap before update on dl.keys execute function public.trap()";

/// By a superuser, who alone can, beside the owner of schema `dl`. Seen to fail with a fence of a tenant's that is believed: the process ended.
async fn a_fence_that_is_closed_by_hand_is_told_and_the_keys_of_its_tenant_die(on: On) {
    let mut stage = acme(on).await;
    let doomed = tenant("odd", SPEC).replace("database: {", "database: {deletionPolicy: Delete, ");
    stage.put(&format!("{doomed}{}{}", key("first", "odd", ""), key("second", "odd", ""))).await;
    for name in ["first", "second"] {
        stage.told("ApiKey", name, 1, DONE).await;
    }
    let (first, path) = (stage.key("first").await, "/auth/odd/api/notes?$first=1");
    let neighbour = Neighbour::of(&stage).await;
    let mut superuser = stage.server.connect("odd").await;
    let fence: String =
        one(&mut superuser, "select pg_get_functiondef('dl.fence(bigint)'::regprocedure)").await;

    // the number alone: the fence is taken again
    execute(&mut superuser, "update dl.state set epoch = epoch + 1000").await;
    stage.put(&key("third", "odd", "")).await;
    stage.told("ApiKey", "third", 1, DONE).await;

    execute(&mut superuser, CLOSED).await;
    stage.put(&key("fourth", "odd", "")).await;
    let status = stage.told("Tenant", "odd", 1, "StatementRefused").await;
    assert!(status.to_string().contains("restore dl.fence and dl.state"), "{status}");
    stage.remove("ApiKey", "first").await;
    until("the end of a key", async || (!stage.opens(&first, path).await).then_some(())).await;
    stage.gone("ApiKey", "first").await;

    execute(&mut superuser, &fence).await;
    stage.told("Tenant", "odd", 1, DONE).await;
    stage.told("ApiKey", "fourth", 1, DONE).await;
    assert!(stage.opens(&stage.key("fourth").await, path).await);

    // in a cluster the database goes although its keys cannot be revoked; a folder's is kept
    let traps: &[&str] = if stage.holds_deleted() { &[CLOSED, TRAPPED] } else { &[CLOSED] };
    for trap in traps {
        execute(&mut superuser, trap).await;
    }
    // only those of the tenant are ended
    superuser.close().await.expect("it ends");
    stage.remove("Tenant", "odd").await;
    stage.gone("Tenant", "odd").await;
    let mut control = stage.server.connect("rowgate").await;
    until("the end of the tenant", async || {
        let ended =
            "select not exists (select from control.tenants where name = 'odd' and phase <> 'retained')";
        one::<bool>(&mut control, ended).await.then_some(())
    })
    .await;
    let kept: bool = one(&mut control, "select exists (select from pg_database where datname = 'odd')").await;
    assert_eq!(kept, !stage.holds_deleted());
    neighbour.ends_well(&stage).await;
}

/// PostgreSQL does not notice that the client of a sleeping statement has gone. Seen to fail when the process does not wait
/// for what it ends.
async fn a_script_that_hangs_does_not_outlive_the_process(on: On) {
    let mut stage = acme(on).await;
    let hangs = HOSTILE.iter().find(|hostile| hostile.name == "hangs").expect("it is one of them");
    stage.put(&hangs.manifests()).await;
    let sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    let mut superuser = stage.server.connect("postgres").await;
    until("the script", async || (one::<i64>(&mut superuser, sleeping).await == 1).then_some(())).await;
    stage.stop().await;
    assert_eq!(one::<i64>(&mut superuser, sleeping).await, 0);
}
