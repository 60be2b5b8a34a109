//! What the operator learns of Secrets from a watch of their metadata, and what it does where that shows nothing.

use rowgate_tests::servers::cluster::{AuditMark, Cluster, Gate, Namespace};
use rowgate_tests::servers::operator::{ACCOUNT, Operator, grant, grant_these, rights};
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::servers::reconciler::DONE;
use rowgate_tests::wait::until;
use serde_json::Value;

use super::leading::paused::{TENANT, keys};
use super::shop::key;

const NAMES: [&str; 2] = ["one", "two"];

/// A Tenant with two keys, each made after all was quiet: nobody looks between the making of a Secret and what comes next.
async fn make(namespace: &Namespace<'_>) {
    namespace.apply(TENANT).await.ok();
    namespace.told("tenants", "shop", 1, DONE).await;
    for name in NAMES {
        namespace.apply(&keys(&[name.to_owned()])).await.ok();
        namespace.told("apikeys", name, 1, DONE).await;
    }
}

async fn drop_secret(namespace: &Namespace<'_>, name: &str) {
    namespace.kubectl(&["delete", "secret", name]).await.ok();
}

/// Waits until the Secret holds another key string.
async fn issued(namespace: &Namespace<'_>, name: &str, old: &str) -> String {
    until("another key", async || {
        let new = namespace.secret(name).await?.remove("apiKey")?;
        (new != old).then_some(new)
    })
    .await
}

/// What was done to Secrets of keys, the operator's and nobody else's.
fn done(namespace: &Namespace<'_>, mark: &AuditMark) -> Vec<String> {
    let writes = namespace.writes_since(mark).into_iter();
    let writes = writes.filter(|it| it.user.ends_with(ACCOUNT) && it.resource == "secrets" && it.code < 300);
    writes.filter(|it| !it.name.ends_with("-root")).map(|it| format!("{} {}", it.verb, it.name)).collect()
}

async fn looks(server: &Server, n: usize) {
    let looks = || server.log().matches("from dl.applied").count();
    let end = looks() + n;
    until("further looks", async || (end <= looks()).then_some(())).await;
}

async fn labels(namespace: &Namespace<'_>, name: &str) -> Value {
    namespace.get("secrets", name).await.expect("it is there")["metadata"]["labels"].clone()
}

/// Nothing but the watch can tell: looks without a change come once in an hour.
///
/// Seen to fail with a watch whose deletions wake nobody; and with a Secret that is not noted to be there when the pass has
/// made it, for the second key.
#[tokio::test]
async fn a_secret_that_is_deleted_by_hand_is_issued_anew_at_once() {
    let namespace = Cluster::shared().await.namespace().await;
    let server = Server::own().await;
    let _operator = Operator::start_every(Some(3600), &namespace, &server, "a").await;
    make(&namespace).await;
    for name in ["two", "one", "two"] {
        let old = key(&namespace, name).await;
        drop_secret(&namespace, name).await;
        issued(&namespace, name, &old).await;
        until("an event of it", async || {
            let events = namespace.list("events").await;
            let of = |event: &&Value| {
                event["reason"] == "SecretReissued" && event["involvedObject"]["name"] == name
            };
            events.iter().find(of).map(drop)
        })
        .await;
        namespace.told("apikeys", name, 1, DONE).await;
    }
}

/// Seen to fail with an operator that takes what the watch does not show for gone.
#[tokio::test]
async fn a_secret_without_our_label_holds_the_key_all_the_same_and_is_labelled_when_it_is_written() {
    let namespace = Cluster::shared().await.namespace().await;
    let server = Server::with(&["log_statement=all"]).await;
    let _operator = Operator::start(&namespace, &server, "a").await;
    make(&namespace).await;
    let labelled = labels(&namespace, "one").await;
    let old = key(&namespace, "one").await;
    let mark = namespace.cluster().audit_mark();
    namespace.kubectl(&["label", "secret", "one", "app.kubernetes.io/managed-by-"]).await.ok();
    looks(&server, 4).await;
    assert_eq!((key(&namespace, "one").await, done(&namespace, &mark)), (old.clone(), Vec::new()));
    assert_eq!(labels(&namespace, "one").await, Value::Null);
    namespace.told("apikeys", "one", 1, DONE).await;

    namespace.kubectl(&["annotate", "apikey", "one", "rowgate.dev/rotate=now"]).await.ok();
    issued(&namespace, "one", &old).await;
    assert_eq!(labels(&namespace, "one").await, labelled);
    // what nobody sees is found missing all the same
    let old = key(&namespace, "one").await;
    namespace.kubectl(&["label", "secret", "one", "app.kubernetes.io/managed-by-"]).await.ok();
    drop_secret(&namespace, "one").await;
    issued(&namespace, "one", &old).await;
}

/// As a connection that is dead and not known to be: keys are made and rotated meanwhile, each once.
///
/// Seen to fail with an operator that takes what the watch does not show for gone.
#[tokio::test]
async fn a_watch_that_lags_behind_issues_no_secret_twice() {
    let cluster = Cluster::shared().await;
    let (namespace, gate) = (cluster.namespace().await, Gate::before(cluster).await);
    let server = Server::with(&["log_statement=all"]).await;
    let kubeconfig = namespace.kubeconfig_through(ACCOUNT, gate.port()).await;
    grant(&namespace).await;
    gate.silence(Some(&["GET ", "/secrets?", "watch=true"]));
    let operator = Operator::start_at(&kubeconfig, namespace.name(), &server, "a");
    operator.leads().await;
    let mark = cluster.audit_mark();
    make(&namespace).await;
    looks(&server, 3).await;
    assert_eq!(done(&namespace, &mark), ["create one", "create two"]);
    let old = key(&namespace, "one").await;
    namespace.kubectl(&["annotate", "apikey", "one", "rowgate.dev/rotate=now"]).await.ok();
    issued(&namespace, "one", &old).await;
    looks(&server, 3).await;
    assert_eq!(done(&namespace, &mark), ["create one", "create two", "patch one"]);
    // found by the look, as long as nobody is told
    let old = key(&namespace, "two").await;
    drop_secret(&namespace, "two").await;
    issued(&namespace, "two", &old).await;

    let before = [key(&namespace, "one").await, key(&namespace, "two").await];
    let mark = cluster.audit_mark();
    gate.silence(None);
    looks(&server, 3).await;
    assert_eq!([key(&namespace, "one").await, key(&namespace, "two").await], before);
    assert_eq!(done(&namespace, &mark), Vec::<String>::new());
}

/// The rules of an older chart, or of somebody who does not want it to list Secrets.
#[tokio::test]
async fn without_the_right_to_watch_secrets_each_look_reads_them() {
    let namespace = Cluster::shared().await.namespace().await;
    let server = Server::own().await;
    let kubeconfig = namespace.kubeconfig_for(ACCOUNT).await;
    let (all, some) =
        (r#""get","list","watch","create","patch","delete""#, r#""get","create","patch","delete""#);
    let rules = rights(namespace.name());
    assert_eq!(rules.matches(all).count(), 1);
    grant_these(&namespace, &rules.replace(all, some)).await;
    let operator = Operator::start_at(&kubeconfig, namespace.name(), &server, "a");
    operator.leads().await;
    make(&namespace).await;
    let old = key(&namespace, "one").await;
    drop_secret(&namespace, "one").await;
    issued(&namespace, "one", &old).await;
    assert_eq!(operator.asked("/readyz").await.map(|(status, _)| status), Some(200));
    assert!(operator.log().contains("the watch failed"), "{}", operator.log());
}
