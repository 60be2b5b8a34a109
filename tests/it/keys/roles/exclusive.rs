//! Two reconcilers never work at once.

use std::sync::Arc;
use std::time::Duration;

use rowgate_reconcile::source::dir::DirSource;
use rowgate_reconcile::{Ended, PublicUrls, Settings, run};
use rowgate_tests::servers::reconciler::{DONE, Reconciler};
use tokio_util::sync::CancellationToken;

use crate::reconcile::acme::{SPEC, key, keys, tenant};

#[tokio::test]
async fn a_reconciler_that_was_replaced_ends_and_changes_nothing() {
    let files = [("acme.yaml", &*tenant("acme", SPEC)), ("keys.yaml", &*keys())];
    let mut reconciler = Reconciler::new(&files).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let source = DirSource::open(reconciler.manifests(), reconciler.state()).expect("the same folders");
    let shutdown = CancellationToken::new();
    let settings = Settings {
        resync: Duration::from_secs(1),
        urls: PublicUrls::at("http://127.0.0.1:1"),
        webhook_ranges: Vec::new(),
        server_namespaces: rowgate_reconcile::ServerNamespaces::All,
    };
    let second =
        tokio::spawn(run(Arc::new(source), reconciler.installation.clone(), settings, shutdown.clone()));
    // by itself
    reconciler.ended().await;
    reconciler.write("more.yaml", &key("more", "acme", ""));
    reconciler.told("apikey", "more", 1, DONE).await;
    shutdown.cancel();
    assert_eq!(second.await.expect("no panic"), Ended::Shutdown);
}
