//! An installation that upgrades: the operator is newer than the definitions in the cluster.

use rowgate_crds::{Kind, yaml};
use rowgate_tests::servers::cluster::Cluster;
use rowgate_tests::servers::operator::Operator;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::shop::shop;
use rowgate_tests::wait::until;

const RELATIONSHIP: &str = "
apiVersion: rowgate.dev/v1alpha1
kind: Relationship
metadata: {name: buyer}
spec:
  tenantRef: {name: shop}
  name: buyer
  from: {entity: orders}
  to: {entity: customers}
  cardinality: One
";

/// Seen to fail with an operator that waits for the first list of each kind, the undefined one too.
#[tokio::test]
async fn a_kind_without_a_definition_holds_up_no_other_and_is_served_once_it_has_one() {
    let cluster = Cluster::own().await;
    let namespace = cluster.namespace().await;
    cluster.kubectl(&["delete", "crd", "relationships.rowgate.dev"]).await.ok();
    let server = Server::own().await;
    let operator = Operator::start(&namespace, &server, "a").await;
    let _data_plane = operator.data_plane(&namespace, &server).await;
    // the API server takes none of a kind that it does not know
    for (_, manifest) in shop().iter().filter(|(file, _)| *file != "relationships.yaml") {
        namespace.apply(manifest).await.ok();
    }
    namespace.told("tenants", "shop", 1, "Served").await;
    let (status, _) = operator.asked("/readyz").await.expect("it answers");
    assert_eq!(status, 200);
    let (log, line) = (operator.log(), "the API server does not know the kind");
    assert_eq!(log.matches(line).count(), 1, "{log}");
    assert!(log.contains("apply its CustomResourceDefinition") && log.contains("Relationship"), "{log}");

    cluster.apply(&yaml(Kind::Relationship)).await.ok();
    until("the definition", async || namespace.apply(RELATIONSHIP).await.status.success().then_some(()))
        .await;
    namespace.told("relationships", "buyer", 1, "Served").await;
}
