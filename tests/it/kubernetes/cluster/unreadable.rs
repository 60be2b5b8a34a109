//! Objects that the API server holds and the operator cannot read, as after a step back to an older version.

use nix::sys::signal::Signal;
use rowgate_tests::servers::cluster::{Cluster, Namespace};
use rowgate_tests::servers::operator::Operator;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::shop::{apply, gone, key, orders};
use crate::reconcile::scenarios::quiet::statements;

/// Takes the rules from a resource: the server accepts whatever anybody writes.
async fn relax(cluster: &Cluster, resource: &str) {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let path = "/spec/versions/0/schema/openAPIV3Schema";
    let change = json!([{ "op": "replace", "path": path, "value": schema }]).to_string();
    let definition = format!("{resource}.rowgate.dev");
    cluster.kubectl(&["patch", "crd", &definition, "--type=json", "--patch", &change]).await.ok();
}

async fn patch(namespace: &Namespace<'_>, object: &str, spec: Value) -> bool {
    let change = json!({ "spec": spec }).to_string();
    namespace.kubectl(&["patch", object, "--type=merge", "--patch", &change]).await.status.success()
}

/// Waits until the relaxed rules let it pass.
async fn spoil(namespace: &Namespace<'_>, object: &str, spec: Value) {
    until(object, async || patch(namespace, object, spec.clone()).await.then_some(())).await;
}

/// Another operator, which knows nothing of what the first had read and has looked for Tenants without an object again and
/// again: of them, it sees to the end.
async fn another(namespace: &Namespace<'_>, server: &Server, identity: &str) -> Operator {
    let lists = || statements(&server.log()).iter().filter(|it| it.contains("phase <> 'retained'")).count();
    let before = lists();
    let operator = Operator::start(namespace, server, identity).await;
    until("looks for Tenants that are gone", async || (before + 6 <= lists()).then_some(())).await;
    operator
}

/// Seen to fail with `Snapshot::unread` left empty: the key whose ApiKey cannot be read answers 401; and with no Tenant in
/// it: every key does.
#[tokio::test]
async fn what_cannot_be_read_after_a_restart_lives_on_and_what_is_revoked_beside_it_dies() {
    let cluster = Cluster::own().await;
    let namespace = cluster.namespace().await;
    let server = Server::with(&["log_statement=all"]).await;
    let mut first = Operator::start(&namespace, &server, "a").await;
    let data_plane = first.data_plane(&namespace, &server).await;
    apply(&namespace).await;
    namespace.told("tenants", "shop", 1, "Served").await;
    let admin = key(&namespace, "shop-admin").await;
    let (north, south) = (key(&namespace, "north").await, key(&namespace, "south").await);
    let before = (orders(&data_plane, &admin).await, orders(&data_plane, &north).await);
    assert_eq!((before.0.0, before.1.0), (200, 200));

    assert!(first.end(Signal::SIGTERM).await.success(), "{}", first.log());
    relax(&cluster, "apikeys").await;
    spoil(&namespace, "apikey/north", json!({ "revoked": "perhaps" })).await;
    namespace.kubectl(&["delete", "apikey", "south", "--wait=false"]).await.ok();
    let mut second = another(&namespace, &server, "b").await;
    gone(&namespace, "apikeys", "south").await;
    assert_eq!(orders(&data_plane, &south).await.0, 401);
    assert_eq!((orders(&data_plane, &admin).await, orders(&data_plane, &north).await), before);
    let told = namespace.told("tenants", "shop", 1, "NotServedYet").await;
    assert!(told.to_string().contains("/north cannot be read by this version"), "{told}");
    assert_eq!(second.metric("rowgate_operator_unreadable_objects").await, Some(1.0));
    assert!(second.log().contains("this version cannot read the object"), "{}", second.log());

    assert!(second.end(Signal::SIGTERM).await.success(), "{}", second.log());
    relax(&cluster, "tenants").await;
    spoil(&namespace, "tenant/shop", json!({ "limits": { "maxPageSize": "many" } })).await;
    let third = another(&namespace, &server, "c").await;
    assert_eq!((orders(&data_plane, &admin).await, orders(&data_plane, &north).await), before);
    assert!(patch(&namespace, "apikey/shop-admin", json!({ "revoked": true })).await);
    let refused = async || (orders(&data_plane, &admin).await.0 == 401).then_some(());
    until("the end of a revoked key of a Tenant that cannot be read", refused).await;
    assert_eq!(orders(&data_plane, &north).await, before.1);
    assert!(namespace.secret("north").await.is_some(), "{}", third.log());

    // readable again, all is as it was
    assert!(patch(&namespace, "apikey/north", json!({ "revoked": false })).await);
    assert!(patch(&namespace, "tenant/shop", json!({ "limits": null })).await);
    namespace.told("tenants", "shop", 3, "Served").await;
    namespace.told("apikeys", "north", 3, "Served").await;
    assert_eq!(orders(&data_plane, &north).await, before.1);
}
