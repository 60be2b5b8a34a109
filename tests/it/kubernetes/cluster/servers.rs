//! `spec.database.serverSecretRef` in a cluster: in namespaces that the platform team lists, and in no others.

use nix::sys::signal::Signal;
use rowgate_tests::servers::cluster::Cluster;
use rowgate_tests::servers::operator::{ACCOUNT, Operator, rights};
use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::servers::reconciler::DONE;
use serde_json::json;

use super::leading::paused::TENANT;

/// Seen to fail without the look at the list.
#[tokio::test]
async fn a_server_is_named_in_listed_namespaces_only() {
    let namespace = Cluster::shared().await.namespace().await;
    let (home, (other, url)) = (Server::own().await, Server::of_its_own_cluster().await);
    let kubeconfig = namespace.kubeconfig_for(ACCOUNT).await;
    namespace.apply(&rights(namespace.name())).await.ok();
    let start =
        |flags: &[&str]| Operator::start_with(&kubeconfig, namespace.name(), &home.url(), "servers", flags);
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "other" }, "stringData": { "url": url } });
    namespace.apply(&secret.to_string()).await.ok();
    let mut operator = start(&[]);
    operator.leads().await;
    namespace.apply(&TENANT.replace("{bootstrap:", "{serverSecretRef: {name: other}, bootstrap:")).await.ok();
    let status = namespace.told("tenants", "shop", 1, "ServerRefused").await;
    assert!(status.to_string().contains("may not name a server"), "{status}");
    let made = "select count(*) as n from pg_database where datname in ('rowgate') or datname ~ '^t_'";
    assert_eq!(rows(&mut other.connect("postgres").await, made).await, [json!({"n": 0})]);

    operator.end(Signal::SIGTERM).await;
    let listed = format!("--server-namespaces=elsewhere,{}", namespace.name());
    let operator = start(&[&listed]);
    operator.leads().await;
    namespace.told("tenants", "shop", 1, DONE).await;
    assert_eq!(rows(&mut other.connect("postgres").await, made).await, [json!({"n": 2})]);
    // data planes have no login there
    let closed = "select not rolcanlogin as is from pg_roles where rolname = 'rowgate_dataplane'";
    assert_eq!(rows(&mut other.connect("postgres").await, closed).await, [json!({"is": true})]);
}
