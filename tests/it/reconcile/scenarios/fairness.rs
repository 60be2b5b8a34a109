//! Whose turn it is: tenants do not wait for each other.

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::stage::{DONE, On, Stage, Wish};

use crate::reconcile::acme::key;

scenarios!(a_tenant_does_not_wait_for_others_whose_databases_do_not_answer);

/// More than pass at once in both queues together.
const N_STUCK: usize = 9;

fn bare(name: &str) -> String {
    format!("---\napiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec: {{}}\n")
}

/// Seen to fail where a pass that takes long is neither moved nor cut off.
async fn a_tenant_does_not_wait_for_others_whose_databases_do_not_answer(on: On) {
    let stuck: Vec<String> = (0..N_STUCK).map(|i| format!("stuck{i}")).collect();
    let manifest: String = stuck.iter().map(|name| bare(name)).collect();
    let mut stage = Stage::with(on, Wish::seldom(), &(manifest + &bare("well"))).await;
    let mut locks = Vec::new();
    for name in &stuck {
        stage.told("Tenant", name, 1, DONE).await;
        let mut conn = stage.server.connect(name).await;
        execute(&mut conn, "begin; lock table dl.state in exclusive mode").await;
        locks.push(conn);
    }
    stage.told("Tenant", "well", 1, DONE).await;
    // every one of them hangs now, or will at its next look
    let keys: String = stuck.iter().map(|name| key(&format!("of-{name}"), name, "")).collect();
    stage.put(&keys).await;
    for i in 0..3 {
        let name = format!("well{i}");
        stage.put(&key(&name, "well", "")).await;
        stage.told("ApiKey", &name, 1, DONE).await;
    }
    drop(locks);
    for name in &stuck {
        stage.told("ApiKey", &format!("of-{name}"), 1, DONE).await;
    }
}
