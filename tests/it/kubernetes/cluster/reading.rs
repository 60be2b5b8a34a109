//! What kubectl shows of our objects to people.

use rowgate_tests::servers::cluster::{Cluster, Namespace};
use rowgate_tests::wait::until;
use serde_json::{Value, json};

const OBJECTS: &str = "
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: shop}
spec: {}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: web}
spec: {tenantRef: {name: shop}}
";

async fn publish(namespace: &Namespace<'_>, object: &str, mut status: Value, ready: &str, reason: &str) {
    status["observedGeneration"] = json!(1);
    status["conditions"] = json!([{
        "type": "Ready", "status": ready, "reason": reason, "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let patch = json!({ "status": status }).to_string();
    namespace
        .kubectl(&["patch", object, "--subresource=status", "--type=merge", "--patch", &patch])
        .await
        .ok();
}

/// The lines of a table that kubectl has printed: the words of each, and only the age's unit.
fn lines(table: &str) -> Vec<String> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let row = words.join(" ");
        match row.rsplit_once(' ') {
            Some((row, age)) if age.ends_with('s') && age != "keys" => format!("{row} s"),
            _ => row,
        }
    };
    table.lines().map(row).collect()
}

#[tokio::test]
async fn kubectl_get_rowgate_tells_what_is_there_and_whether_it_works() {
    let namespace = Cluster::shared().await.namespace().await;
    namespace.apply(OBJECTS).await.ok();
    assert_eq!(
        lines(&namespace.kubectl(&["get", "rowgate"]).await.ok()),
        [
            "NAME TENANT READY REASON SECRET EXPIRES REVOKED AGE",
            "apikey.rowgate.dev/web shop s",
            "",
            "NAME READY REASON SLUG ENTITIES KEYS AGE",
            "tenant.rowgate.dev/shop s",
        ]
    );
    let waiting = |timeout| ["wait", "tenant/shop", "--for=condition=Ready", timeout];
    assert!(namespace.kubectl(&waiting("--timeout=1s")).await.refused().contains("timed out"));
    publish(
        &namespace,
        "tenant/shop",
        json!({ "slug": "shop", "entities": 7, "keys": 3, "replicas": 2 }),
        "True",
        "Served",
    )
    .await;
    publish(
        &namespace,
        "apikey/web",
        json!({ "role": "datalake_user", "secretName": "web" }),
        "False",
        "NoReplica",
    )
    .await;
    assert_eq!(
        lines(&namespace.kubectl(&["get", "rgk,rgt"]).await.ok()),
        [
            "NAME TENANT READY REASON SECRET EXPIRES REVOKED AGE",
            "apikey.rowgate.dev/web shop False NoReplica web s",
            "",
            "NAME READY REASON SLUG ENTITIES KEYS AGE",
            "tenant.rowgate.dev/shop True Served shop 7 3 s",
        ]
    );
    let wide = namespace.kubectl(&["get", "apikey", "--output=wide"]).await.ok();
    assert_eq!(lines(&wide)[1], "web shop False NoReplica datalake_user web s");
    assert!(namespace.kubectl(&waiting("--timeout=60s")).await.ok().contains("condition met"));
}

/// Each of our own fields has words, and no line break where kubectl would not make one.
#[tokio::test]
async fn kubectl_explain_has_words_for_every_field() {
    let cluster = Cluster::shared().await;
    // The server publishes what kubectl explains a moment after it serves it.
    let explain = async |what: &str| {
        until(what, async || {
            let said = cluster.kubectl(&["explain", "--recursive=false", what]).await;
            said.status.success().then_some(said.stdout)
        })
        .await
    };
    let slug = explain("tenant.spec.slug").await;
    let words = "The tenant's name in URLs and keys: at most 40 lower-case letters, digits
    and hyphens, starting and ending with a letter or digit. Unique in the
    installation; cannot be changed. Default: the object's name.
";
    assert!(slug.contains(words), "{slug}");
    for part in
        ["tenant.spec", "tenant.status", "tenant.spec.entities", "rgk.spec", "rgk.status", "rgk.spec.scope"]
    {
        let said = explain(part).await;
        assert!(!said.contains("<no description>"), "{part}: {said}");
    }
}
