//! Whose turn it is: tenants do not wait for each other, and two reconcilers never work at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rowgate_reconcile::dir_source::DirSource;
use rowgate_reconcile::{Ended, Settings, run};
use rowgate_tests::postgres::execute;
use rowgate_tests::reconciler::{DONE, Reconciler};
use tokio_util::sync::CancellationToken;

use super::{acme, key};

/// More than pass at once in both lanes together.
const N_STUCK: usize = 9;

fn bare(name: &str) -> String {
    format!("---\napiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec: {{}}\n")
}

#[tokio::test]
async fn a_tenant_does_not_wait_for_others_whose_databases_do_not_answer() {
    let stuck: Vec<String> = (0..N_STUCK).map(|i| format!("stuck{i}")).collect();
    let manifest: String = stuck.iter().map(|name| bare(name)).collect();
    let reconciler = Reconciler::new(&[("stuck.yaml", &manifest), ("well.yaml", &bare("well"))]).await;
    let mut locks = Vec::new();
    for name in &stuck {
        reconciler.told("tenant", name, 1, DONE).await;
        let mut conn = reconciler.server.connect(name).await;
        execute(&mut conn, "begin; lock table dl.state in access exclusive mode").await;
        locks.push(conn);
    }
    reconciler.told("tenant", "well", 1, DONE).await;
    // every one of them hangs now, or will at its next look
    let keys: String = stuck.iter().map(|name| key(&format!("of-{name}"), name, "")).collect();
    reconciler.write("keys.yaml", &keys);
    for i in 0..3 {
        let name = format!("well{i}");
        let began = Instant::now();
        reconciler.write(&format!("{name}.yaml"), &key(&name, "well", ""));
        reconciler.told("apikey", &name, 1, DONE).await;
        println!("a key of the tenant that answers was done after {} ms", began.elapsed().as_millis());
        assert!(began.elapsed() < Duration::from_secs(15), "it waited for the others");
    }
    drop(locks);
    for name in &stuck {
        reconciler.told("apikey", &format!("of-{name}"), 1, DONE).await;
    }
}

#[tokio::test]
async fn a_reconciler_that_was_replaced_ends_and_changes_nothing() {
    let mut reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let source = DirSource::open(reconciler.manifests(), reconciler.state()).expect("the same folders");
    let shutdown = CancellationToken::new();
    let settings = Settings { relook: Duration::from_secs(1), api_url: "http://127.0.0.1:1".to_owned() };
    let second =
        tokio::spawn(run(Arc::new(source), reconciler.installation.clone(), settings, shutdown.clone()));
    // by itself
    reconciler.ended().await;
    reconciler.write("more.yaml", &key("more", "acme", ""));
    reconciler.told("apikey", "more", 1, DONE).await;
    shutdown.cancel();
    assert_eq!(second.await.expect("no panic"), Ended::Shutdown);
}
