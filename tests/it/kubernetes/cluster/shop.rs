//! The example shop by kubectl, reconciled by the operator with the rights of the chart and served by a data plane.

use std::collections::BTreeSet;

use rowgate_tests::servers::cluster::{Cluster, Namespace};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::operator::{ACCOUNT, Operator, owners};
use rowgate_tests::servers::postgres::{Server, connect, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::{examples, get};
use serde_json::json;

const KEYS: [&str; 3] = ["shop-admin", "north", "south"];

/// `kubectl apply` of the folder, as the readme says it.
pub(super) async fn apply(namespace: &Namespace<'_>) {
    let folder = examples().join("shop");
    namespace.kubectl(&["apply", "--filename", folder.to_str().expect("UTF-8")]).await.ok();
}

/// Status, how many orders the key sees, and in which regions.
pub(super) async fn orders(data_plane: &DataPlane, key: &str) -> (u16, usize, Vec<String>) {
    let url = format!("{}/auth/shop/api/orders?$select=region&$first=1000", data_plane.url());
    let answer = get(&url, key).await;
    let rows = answer.body["value"].as_array().cloned().unwrap_or_default();
    let regions: BTreeSet<_> =
        rows.iter().filter_map(|row| row["region"].as_str().map(str::to_owned)).collect();
    (answer.status.as_u16(), rows.len(), regions.into_iter().collect())
}

pub(super) async fn key(namespace: &Namespace<'_>, name: &str) -> String {
    let mut secret = namespace.secret(name).await.expect("the key has its Secret");
    secret.remove("apiKey").expect("the Secret holds the key")
}

pub(super) async fn gone(namespace: &Namespace<'_>, resource: &str, name: &str) {
    let what = format!("the end of {resource}/{name}");
    until(&what, async || namespace.get(resource, name).await.is_none().then_some(())).await;
}

#[tokio::test]
async fn the_shop_is_applied_served_revoked_and_deleted() {
    let namespace = Cluster::shared().await.namespace().await;
    let mark = namespace.cluster().audit_mark();
    let server = Server::own().await;
    let operator = Operator::start(&namespace, &server, "a").await;
    let data_plane = operator.data_plane(&namespace, &server).await;
    apply(&namespace).await;
    let waiting = ["wait", "--for=condition=Ready", "rowgate", "--all", "--timeout=60s"];
    namespace.kubectl(&waiting).await.ok();

    // each key its own rows, at once: Ready means served
    let mut seen = Vec::new();
    for name in KEYS {
        seen.push(orders(&data_plane, &key(&namespace, name).await).await);
    }
    let [all, north, south] = &seen[..] else { panic!("{seen:?}") };
    let regions = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((all.0, &all.2), (200, &regions(&["north", "south"])));
    assert_eq!((north.0, &north.2), (200, &regions(&["north"])));
    assert_eq!((south.0, &south.2), (200, &regions(&["south"])));
    assert_eq!(all.1, north.1 + south.1);
    let all = all.clone();
    let told = namespace.told("tenants", "shop", 1, "Served").await;
    assert_eq!(told["endpoints"]["rest"], "http://api.test/auth/shop/api");

    let (admin, north, south) =
        (key(&namespace, KEYS[0]).await, key(&namespace, KEYS[1]).await, key(&namespace, KEYS[2]).await);
    // what `make cluster` prints for psql
    let owners = owners(&namespace, &namespace, &server).await;
    assert_eq!(owners.len(), 1);
    let mut owner = connect(&owners[0]).await.expect("the owner's login");
    execute(&mut owner, "alter table shop.customers add column since integer").await;
    drop(owner);

    // somebody mistypes an entity, and looks why the key does not come
    let wrong = "apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {name: wrong}\nspec: {tenantRef: {name: shop}, \
                 scope: {permissions: [{entity: ordrs, actions: [read], fields: {include: ['*']}}]}}\n";
    namespace.apply(wrong).await.ok();
    let why = "permissions name the entity ordrs, which is not served";
    until("a Warning in kubectl describe", async || {
        let described = namespace.kubectl(&["describe", "apikey", "wrong"]).await.ok();
        let mut lines = described.lines().skip_while(|line| !line.starts_with("Events:"));
        lines
            .find(|line| line.contains("Warning") && line.contains("EntityNotFound") && line.contains(why))?;
        Some(())
    })
    .await;

    let revoke = json!({ "spec": { "revoked": true } }).to_string();
    namespace.kubectl(&["patch", "apikey", "north", "--type=merge", "--patch", &revoke]).await.ok();
    namespace.told("apikeys", "north", 2, "Revoked").await;
    assert_eq!(orders(&data_plane, &north).await.0, 401);

    namespace.kubectl(&["delete", "apikey", "south"]).await.ok();
    gone(&namespace, "apikeys", "south").await;
    assert!(namespace.secret("south").await.is_none());
    assert_eq!(orders(&data_plane, &south).await.0, 401);
    assert_eq!(orders(&data_plane, &admin).await, all);

    namespace.kubectl(&["delete", "tenant", "shop"]).await.ok();
    gone(&namespace, "tenants", "shop").await;
    assert_eq!(orders(&data_plane, &admin).await.0, 401);
    namespace.kubectl(&["delete", "apikey", "--all"]).await.ok();
    assert!(namespace.list("apikeys").await.is_empty());

    let events = until("an Event", async || {
        let events = namespace.kubectl(&["events", "--for=tenant/shop", "--output=json"]).await.ok();
        events.contains("DatabaseRetained").then_some(events)
    });
    assert!(events.await.contains("rowgate-operator"));

    // nothing of this needed a right that the chart does not give
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", namespace.name());
    let refused: Vec<_> =
        namespace.writes_since(&mark).into_iter().filter(|it| it.user == user && it.code == 403).collect();
    assert!(
        refused.is_empty() && !operator.log().contains("answered 403"),
        "{refused:?}\n{}",
        operator.log()
    );
}

/// Seen to fail with keys that always await the newest generation.
#[tokio::test]
async fn a_new_key_writes_nothing_about_the_others() {
    let namespace = Cluster::shared().await.namespace().await;
    let server = Server::own().await;
    let operator = Operator::start(&namespace, &server, "a").await;
    let _data_plane = operator.data_plane(&namespace, &server).await;
    apply(&namespace).await;
    for name in KEYS {
        namespace.told("apikeys", name, 1, "Served").await;
    }
    namespace.told("tenants", "shop", 1, "Served").await;
    let mut more = namespace.get("apikeys", "north").await.expect("it is there");
    more["metadata"] = json!({ "name": "more" });
    more["status"].take();
    let mark = namespace.cluster().audit_mark();
    namespace.apply(&more.to_string()).await.ok();
    namespace.told("apikeys", "more", 1, "Served").await;
    namespace.told("tenants", "shop", 1, "Served").await;
    let writes = namespace.writes_since(&mark);
    let about =
        |resource: &str| writes.iter().filter(|it| it.resource == resource).map(|it| &*it.name).collect();
    let statuses: BTreeSet<&str> = about("apikeys/status");
    let secrets: BTreeSet<&str> = about("secrets");
    assert_eq!((statuses, secrets), (BTreeSet::from(["more"]), BTreeSet::from(["more"])), "{writes:?}");
}
