//! `kubectl wait --for=condition=Ready` holds until the rows are served, and needs nothing beyond that.

use std::cell::Cell;

use nix::sys::signal::Signal;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;

use super::stage::{Stage, key, tenant};
use super::turnstile::ask;

const ALL: &str = "['*']";

/// Nothing but what changed makes the operator look.
const NEVER: u32 = 3600;

/// How a field is called, which is the replica's catalog to know, and what is read then.
const NAMES: [(&str, &str); 2] = [("text", "id,region,text:5"), ("words", "id,region,words:5")];

impl Stage {
    async fn expose(&self, name: &str) {
        let source = "source: {schema: app, object: notes}";
        let mapped = format!("{source}\n      mappings: {{body: {name}}}");
        let tenant = tenant("acme", ALL, "south", "true").replace(source, &mapped);
        self.namespace.apply(&(tenant + &key("web", "acme", ""))).await.ok();
    }

    /// As the readme says it.
    async fn wait(&self) {
        let waiting = ["wait", "--for=condition=Ready", "rowgate", "--all", "--timeout=60s"];
        self.namespace.kubectl(&waiting).await.ok();
    }
}

/// kubectl compares a condition's generation with the object's: what was ready before the edit does not count.
#[tokio::test]
async fn rows_are_served_the_moment_kubectl_stops_waiting() {
    let stage = Stage::new(Some(NEVER)).await;
    for _ in 0..3 {
        for (name, read) in NAMES {
            stage.expose(name).await;
            stage.wait().await;
            assert_eq!(stage.read("web").await, read);
        }
    }
}

/// A replica that stands still is waited for, and then counted out; `Ready` needs one that serves.
///
/// Seen to fail with verdicts that do not ask for the generation, and with a Tenant that is ready without a replica.
#[tokio::test]
async fn kubectl_waits_while_no_replica_serves_the_edit() {
    let stage = Stage::new(Some(NEVER)).await;
    stage.expose(NAMES[0].0).await;
    stage.wait().await;
    stage.data_plane.signal(Signal::SIGSTOP);
    stage.expose(NAMES[1].0).await;
    let goes_on = Cell::new(false);
    let waiting = async {
        stage.wait().await;
        assert!(goes_on.get(), "nobody serves the edit");
    };
    let going_on = async {
        stage.namespace.told("tenants", "acme", 2, "NoReplica").await;
        stage.polls(2).await;
        goes_on.set(true);
        stage.data_plane.signal(Signal::SIGCONT);
    };
    tokio::join!(waiting, going_on);
    assert_eq!(stage.read("web").await, NAMES[1].1);
}

/// A replica that knows of the edit, and lives, is waited for until it has loaded its catalog. From then on no pass of the
/// operator comes to its end any more, and `Ready` comes all the same, by the word of the replica.
///
/// Seen to fail with a replica that says what it is to serve before it does, and with an operator that tells of replicas in its
/// next pass only.
#[tokio::test]
async fn kubectl_waits_for_the_replica_and_for_nothing_else() {
    let stage = Stage::new(Some(NEVER)).await;
    stage.expose(NAMES[0].0).await;
    stage.wait().await;
    let mut turnstile = stage.turnstile("rowgate", "control.leader").await;
    stage.expose(NAMES[1].0).await;
    let is_loaded = Cell::new(false);
    let waiting = async {
        stage.wait().await;
        assert!(is_loaded.get(), "the replica has not loaded its catalog");
    };
    let loading = async {
        until("the generation that is to be published", async || turnstile.is_met().await.then_some(()))
            .await;
        // every replica looks here before it learns what is to be served, and no pass does
        let mut replicas = stage.server.connect("rowgate").await;
        execute(&mut replicas, "begin; lock table control.signing_keys in access exclusive mode").await;
        turnstile.open().await;
        stage.namespace.told("tenants", "acme", 2, "AwaitingReplicas").await;
        // every pass looks here, and no replica does
        let mut passes = stage.server.connect("acme").await;
        execute(&mut passes, "begin; lock table dl.applied in access exclusive mode").await;
        // what replicas load
        let mut catalogs = stage.server.connect("acme").await;
        execute(&mut catalogs, "begin; lock table dl.entities in access exclusive mode").await;
        execute(&mut replicas, "rollback").await;
        until("a replica that loads", async || {
            let waiting = "select exists (select from pg_locks where not granted and relation = 'dl.entities'::regclass)";
            ask::<bool>(&mut catalogs, waiting.to_owned()).await.then_some(())
        })
        .await;
        stage.polls(5).await;
        is_loaded.set(true);
        execute(&mut catalogs, "rollback").await;
        passes
    };
    let ((), _passes) = tokio::join!(waiting, loading);
    assert_eq!(stage.read("web").await, NAMES[1].1);
}
