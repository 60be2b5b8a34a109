//! The API server of the tests itself: who may do what, what it writes down, and that it can be stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use nix::sys::signal::Signal;
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::cluster::{Cluster, Namespace, kstatus, tool};
use rowgate_tests::wait::until;
use serde_json::{Value, json};

const KEY: &str = "
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: k}
spec: {tenantRef: {name: t}}
";

/// kubectl as a ServiceAccount: what it says, all in all.
async fn kubectl_of(namespace: &Namespace<'_>, service_account: &str, args: &[&str]) -> String {
    let kubeconfig = namespace.kubeconfig_for(service_account).await;
    let output = Command::new(tool("kubectl")).arg("--kubeconfig").arg(kubeconfig).args(args).output();
    let output = output.expect("kubectl was built");
    String::from_utf8([output.stdout, output.stderr].concat()).expect("kubectl prints UTF-8")
}

#[tokio::test]
async fn a_service_account_may_do_what_its_role_says_and_no_more() {
    let namespace = Cluster::shared().await.namespace().await;
    let look = ["get", "tenants", "--output", "name"];
    assert!(kubectl_of(&namespace, "a", &look).await.contains("Forbidden"));
    namespace.kubectl(&["create", "role", "r", "--verb=list", "--resource=tenants.rowgate.dev"]).await.ok();
    let account = format!("--serviceaccount={}:a", namespace.name());
    namespace.kubectl(&["create", "rolebinding", "r", "--role=r", &account]).await.ok();
    until("the role", async || kubectl_of(&namespace, "a", &look).await.is_empty().then_some(())).await;
    assert!(kubectl_of(&namespace, "a", &["get", "secrets"]).await.contains("Forbidden"));
}

#[tokio::test]
async fn what_changes_an_object_is_written_down_with_who_did_it() {
    let namespace = Cluster::shared().await.namespace().await;
    let mark = namespace.cluster().audit_mark();
    namespace.apply(KEY).await.ok();
    namespace.apply(KEY).await.ok();
    let patch = r#"{"status": {"observedGeneration": 1}}"#;
    namespace
        .kubectl(&["patch", "apikey", "k", "--subresource=status", "--type=merge", "--patch", patch])
        .await
        .ok();
    namespace.kubectl(&["delete", "apikey", "k"]).await.ok();
    let user = format!("system:serviceaccount:{}:a", namespace.name());
    assert!(kubectl_of(&namespace, "a", &["delete", "apikey", "other"]).await.contains("Forbidden"));
    let written = until("the refusal in the audit log", async || {
        let writes = namespace.writes_since(&mark);
        let written = writes.into_iter().filter(|write| write.resource.starts_with("apikeys"));
        let written: Vec<_> = written
            .map(|write| {
                format!("{} {} {} {} {}", write.user, write.verb, write.resource, write.name, write.code)
            })
            .collect();
        written.last()?.contains("other").then_some(written)
    })
    .await;
    // The second apply changes nothing and asks for nothing.
    let expected = [
        "admin create apikeys k 201".to_owned(),
        "admin patch apikeys/status k 200".to_owned(),
        "admin delete apikeys k 200".to_owned(),
        format!("{user} delete apikeys other 403"),
    ];
    assert_eq!(written, expected);
}

#[tokio::test]
async fn a_recording_has_every_state_and_kstatus_a_word_on_each() {
    let namespace = Cluster::shared().await.namespace().await;
    let recording = namespace.record("apikeys").await;
    namespace.apply(KEY).await.ok();
    for (condition, generation) in [("Reconciling", 1), ("Ready", 1)] {
        let condition = json!([{
            "type": condition, "status": "True", "reason": "Why", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        let patch =
            json!({ "status": { "observedGeneration": generation, "conditions": condition } }).to_string();
        namespace
            .kubectl(&["patch", "apikey", "k", "--subresource=status", "--type=merge", "--patch", &patch])
            .await
            .ok();
    }
    namespace
        .kubectl(&["patch", "apikey", "k", "--type=merge", "--patch", r#"{"spec": {"revoked": true}}"#])
        .await
        .ok();
    namespace.kubectl(&["delete", "apikey", "k"]).await.ok();
    let states = until("the end of the key", async || {
        let states = recording.states();
        (states.last()?.change == "DELETED").then_some(states)
    })
    .await;
    let objects: Vec<Value> = states.into_iter().map(|state| state.object).collect();
    let said: Vec<String> = kstatus(&objects).into_iter().map(|verdict| verdict.status).collect();
    // Created, under way, done, changed; the state in which it went.
    assert_eq!(said, ["InProgress", "InProgress", "Current", "InProgress", "InProgress"]);
}

#[tokio::test]
async fn a_server_of_a_test_keeps_its_objects_when_it_is_killed_and_ends_with_the_test() {
    let mut cluster = Cluster::own().await;
    let kubeconfig = cluster.kubeconfig();
    let name = {
        let namespace = cluster.namespace().await;
        namespace.apply(KEY).await.ok();
        namespace.name().to_owned()
    };
    cluster.signal(Signal::SIGSTOP);
    let args = ["get", "apikeys", "--all-namespaces", "--request-timeout=1s"];
    cluster.kubectl(&args).await.refused();
    cluster.signal(Signal::SIGCONT);
    until("an answer", async || cluster.kubectl(&args).await.status.success().then_some(())).await;
    cluster.kill().await;
    cluster.kubectl(&args).await.refused();
    cluster.start_again().await;
    assert!(cluster.kubectl(&args).await.ok().contains(&name));
    let pid = cluster.pid();
    drop(cluster);
    assert!(!kubeconfig.exists());
    // By process, not by port: another test may have the port by now. One that was killed and not waited for has no
    // program any more.
    until("the end of the API server", async || std::fs::read_link(format!("/proc/{pid}/exe")).err()).await;
}

/// The server's own folder is left out of the search for secrets, what it logs is not.
#[tokio::test]
async fn a_key_in_a_secret_of_the_server_is_searched_for_in_logs() {
    let namespace = Cluster::shared().await.namespace().await;
    let key = format!("t:dlk_{}", "0123456789a".repeat(6).get(..61).expect("ASCII"));
    namespace
        .kubectl(&["create", "secret", "generic", "k", &format!("--from-literal=apiKey={key}")])
        .await
        .ok();
    let read = namespace.secret("k").await.expect("it was made");
    assert_eq!(read["apiKey"], key);
    let folder = Scratch::new();
    std::fs::write(folder.path().join("log"), &key[18..61]).expect("the folder is ours");
    let said = catch_unwind(AssertUnwindSafe(|| drop(folder))).expect_err("a leak");
    assert!(said.downcast_ref::<String>().expect("a text").contains("a secret of a state folder"));
}
