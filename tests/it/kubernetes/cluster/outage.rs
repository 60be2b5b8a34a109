//! Between the operator and the API server stands a gate of the test: outages, lists that take their time, watches that
//! fall silent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use nix::sys::signal::Signal;
use rowgate_tests::servers::cluster::{Cluster, Gate, Method, Namespace, StatusCode};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::operator::{ACCOUNT, Operator, rights};
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::status::ready;
use serde_json::{Value, json};
use tokio::time::sleep;

const N_TENANTS: usize = 10;
/// With the Tenants these are 1,000 objects; ten pages.
const N_KEYS: usize = 990;
/// Requests of the test that are under way at once.
const AT_ONCE: usize = 16;
/// Keys of the first page, of the second, which is held back, of one in the middle and of the last.
const PLACES: [usize; 4] = [40, 140, 540, 960];

fn tenant(name: &str) -> Value {
    json!({ "apiVersion": "rowgate.dev/v1alpha1", "kind": "Tenant", "metadata": { "name": name }, "spec": {} })
}

fn key(name: &str, tenant: usize) -> Value {
    json!({
        "apiVersion": "rowgate.dev/v1alpha1", "kind": "ApiKey", "metadata": { "name": name },
        "spec": { "tenantRef": { "name": tenant_name(tenant) } },
    })
}

fn tenant_name(n: usize) -> String {
    format!("tenant-{}", n % N_TENANTS)
}

fn key_name(n: usize) -> String {
    format!("key-{n:03}")
}

const END: &str = "2099-01-01T00:00:00Z";

/// A change as a request: method, resource, name (none of what is made), body.
type Change = (Method, &'static str, String, Value);

async fn send(namespace: &Namespace<'_>, changes: Vec<Change>) {
    stream::iter(changes)
        .for_each_concurrent(AT_ONCE, |(method, resource, name, body)| async move {
            let folder = namespace.path(resource);
            let path = if name.is_empty() { folder } else { format!("{folder}/{name}") };
            let (status, answer) = namespace.cluster().send(method, &path, &body).await;
            let good = [StatusCode::OK, StatusCode::CREATED, StatusCode::ACCEPTED];
            assert!(good.contains(&status), "{path}: {status} {answer}");
        })
        .await;
}

/// In each place a key is made, one revoked, one given an end and one deleted; a Tenant is made, with a key, and one changed.
/// `turn` tells which ones, so that two turns touch different objects.
fn changes(turn: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    for place in PLACES {
        let n = place + 10 * turn;
        let made = format!("{}-new", key_name(n));
        changes.push((Method::POST, "apikeys", String::new(), key(&made, n)));
        changes.push((Method::PATCH, "apikeys", key_name(n + 1), json!({ "spec": { "revoked": true } })));
        changes.push((Method::PATCH, "apikeys", key_name(n + 2), json!({ "spec": { "expiresAt": END } })));
        changes.push((Method::DELETE, "apikeys", key_name(n + 3), json!({})));
    }
    changes.push((
        Method::PATCH,
        "tenants",
        tenant_name(turn),
        json!({ "spec": { "limits": { "maxPageSize": 7 } } }),
    ));
    let name = format!("tenant-{}", N_TENANTS + turn);
    changes.push((Method::POST, "tenants", String::new(), tenant(&name)));
    let mut its = key(&format!("key-of-{name}"), 0);
    its["spec"]["tenantRef"]["name"] = json!(name);
    changes.push((Method::POST, "apikeys", String::new(), its));
    changes
}

/// What each object is to become: `Served`, or `Revoked`. Names of those that are to go are left out.
fn expected(turns: &[usize]) -> BTreeMap<String, &'static str> {
    let tenants = (0..N_TENANTS).map(tenant_name);
    let keys = (0..N_KEYS).map(key_name);
    let mut all: BTreeMap<String, &str> = tenants.chain(keys).map(|name| (name, "Served")).collect();
    for (method, _, name, body) in turns.iter().flat_map(|turn| changes(*turn)) {
        let is_revoked = body["spec"]["revoked"] == true;
        match method {
            Method::DELETE => all.remove(&name),
            Method::POST => {
                all.insert(body["metadata"]["name"].as_str().expect("a name").to_owned(), "Served")
            }
            _ => all.insert(name, if is_revoked { "Revoked" } else { "Served" }),
        };
    }
    all
}

/// What is not yet as it is to be, of all objects: empty when nothing is lost.
async fn lost(namespace: &Namespace<'_>, expected: &BTreeMap<String, &'static str>) -> Vec<String> {
    let mut objects = namespace.list("tenants").await;
    objects.extend(namespace.list("apikeys").await);
    let mut lost = Vec::new();
    let mut there = BTreeSet::new();
    for object in &objects {
        let name = object["metadata"]["name"].as_str().expect("it has one");
        let (generation, observed) =
            (&object["metadata"]["generation"], &object["status"]["observedGeneration"]);
        let reason = ready(&object["status"]).0;
        match expected.get(name) {
            None => lost.push(format!("{name} is still there ({reason})")),
            Some(wanted) if *wanted != reason || generation != observed => {
                lost.push(format!("{name} says {reason:?} at {observed} of {generation}"))
            }
            Some(_) => {}
        }
        let ends = object["spec"]["expiresAt"].as_str();
        if ends.is_some() && object["status"]["expiresAt"].as_str() != ends {
            lost.push(format!("{name} does not end"));
        }
        there.insert(name);
    }
    lost.extend(
        expected.keys().filter(|name| !there.contains(name.as_str())).map(|name| format!("{name} is gone")),
    );
    lost
}

/// Waits until nothing is lost, for as long as there is progress.
async fn settled(namespace: &Namespace<'_>, expected: &BTreeMap<String, &'static str>) {
    let mut before = usize::MAX;
    while 0 < before {
        before = until_ok("progress with all objects", async || {
            let lost = lost(namespace, expected).await;
            if lost.len() < before {
                return Ok(lost.len());
            }
            // a look at all of them is work for the server
            sleep(Duration::from_millis(500)).await;
            Err(format!("{} objects: {:?}", lost.len(), lost.iter().take(20).collect::<Vec<_>>()))
        })
        .await;
    }
}

/// The key strings by the names of their Secrets.
async fn keys(namespace: &Namespace<'_>) -> BTreeMap<String, String> {
    let secrets = namespace.list("secrets").await;
    let of = |secret: &Value| {
        let text = STANDARD.decode(secret["data"]["apiKey"].as_str()?).expect("base 64");
        let text = String::from_utf8(text).expect("a key is ASCII");
        rowgate_tests::sweep::remember(&text);
        Some((secret["metadata"]["name"].as_str()?.to_owned(), text))
    };
    secrets.iter().filter_map(of).collect()
}

/// What the data plane answers to each of these keys.
async fn answers(data_plane: &DataPlane, keys: &BTreeMap<String, String>) -> BTreeMap<String, u16> {
    let client = reqwest::Client::new();
    let answers = stream::iter(keys).map(|(name, key)| {
        let tenant = key.split(':').next().expect("a key begins with its tenant");
        let request = client.get(format!("{}/auth/{tenant}/api", data_plane.url())).header("X-API-Key", key);
        async move { (name.clone(), request.send().await.expect("it serves").status().as_u16()) }
    });
    answers.buffer_unordered(AT_ONCE).collect().await
}

/// How often each of our kinds was listed. Of the Secrets' metadata the server remembers everything.
async fn lists(operator: &Operator) -> [f64; 2] {
    let of = async |kind: &str| {
        let name = format!("rowgate_operator_lists_total{{kind=\"{kind}\"}}");
        operator.metric(&name).await.expect("it counts them")
    };
    [of("tenants").await, of("apikeys").await]
}

/// Waits until the leader has just renewed its Lease: it ends when it cannot for 11 s.
async fn renewed(namespace: &Namespace<'_>) {
    let version = async || {
        let lease = namespace.get("leases", "rowgate-operator").await?;
        lease["metadata"]["resourceVersion"].as_str().map(str::to_owned)
    };
    let before = version().await;
    until("a renewal of the Lease", async || (version().await != before).then_some(())).await;
}

/// The operator is cut off from the API server; meanwhile keys and Tenants are made, changed, revoked and deleted. When it is
/// let in again its watches are too old to go on, so that it lists, and the second page of ApiKeys takes 2 s, in which as
/// much changes again. Kube's `Controller` lost objects here (docs/decisions/kubernetes-watches.md).
///
/// Seen to fail with a collection that passes over what a list shows after the first one: 20 and more objects stayed as they
/// were.
#[tokio::test]
async fn nothing_that_changes_in_an_outage_is_lost() {
    let cluster = Cluster::shared().await;
    let (namespace, gate, server) =
        (cluster.namespace().await, Gate::before(cluster).await, Server::own().await);
    let kubeconfig = namespace.kubeconfig_through(ACCOUNT, gate.port()).await;
    namespace.apply(&rights(namespace.name())).await.ok();
    // what is lost is not found by looking again soon
    let flags = ["--resync-seconds", "3600"];
    let mut operator = Operator::start_with(&kubeconfig, namespace.name(), &server.url(), "a", &flags);
    operator.leads().await;
    let data_plane = operator.data_plane(&namespace, &server).await;
    let tenants = (0..N_TENANTS).map(|n| (Method::POST, "tenants", String::new(), tenant(&tenant_name(n))));
    let all = (0..N_KEYS).map(|n| (Method::POST, "apikeys", String::new(), key(&key_name(n), n)));
    send(&namespace, tenants.chain(all).collect()).await;
    settled(&namespace, &expected(&[])).await;
    let before = keys(&namespace).await;
    let before_lists = lists(&operator).await;

    renewed(&namespace).await;
    gate.close();
    send(&namespace, changes(0)).await;
    gate.age();
    gate.hold(&["GET ", "/apikeys?", "continue="], Duration::from_secs(2));
    gate.open();
    until("the second page of the list", async || gate.holds().then_some(())).await;
    send(&namespace, changes(1)).await;
    gate.release();

    let expected = expected(&[0, 1]);
    settled(&namespace, &expected).await;
    let listed: Vec<f64> =
        lists(&operator).await.iter().zip(before_lists).map(|(now, then)| now - then).collect();
    assert_eq!(listed, [1.0, 1.0], "each kind was listed once more");
    let after = keys(&namespace).await;
    let all: BTreeMap<String, String> = before.into_iter().chain(after.clone()).collect();
    let live = |name: &String| expected.get(name) == Some(&"Served");
    let wrong: BTreeMap<String, u16> = answers(&data_plane, &all)
        .await
        .into_iter()
        .filter(|(name, status)| *status != if live(name) { 200 } else { 401 })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let keys = expected.keys().filter(|name| name.starts_with("key-"));
    let without: Vec<&String> = keys.filter(|name| live(name) && !after.contains_key(*name)).collect();
    assert!(without.is_empty(), "no Secrets: {without:?}");
    // the same operator all along
    assert!(operator.end(Signal::SIGTERM).await.success(), "{}", operator.log());
}

/// Seen to fail with the silence of the watch that heard last, instead of the one that heard nothing for longest.
#[tokio::test]
async fn a_watch_that_falls_silent_fails_the_health_check_and_an_idle_one_does_not() {
    let cluster = Cluster::shared().await;
    let (namespace, gate, server) =
        (cluster.namespace().await, Gate::before(cluster).await, Server::own().await);
    let kubeconfig = namespace.kubeconfig_through(ACCOUNT, gate.port()).await;
    namespace.apply(&rights(namespace.name())).await.ok();
    let flags = ["--watch-seconds", "10"];
    let operator = Operator::start_with(&kubeconfig, namespace.name(), &server.url(), "a", &flags);
    operator.leads().await;
    let silence =
        async || operator.metric("rowgate_operator_watch_silence_seconds").await.unwrap_or_default();
    // both have been silent, and were asked anew
    until("idle watches", async || (16.0 < silence().await).then_some(())).await;
    until("further ones", async || (silence().await < 8.0).then_some(())).await;
    assert_eq!(operator.asked("/healthz").await, Some((200, "alive\n".to_owned())));

    // of one kind only; whoever leads goes on
    gate.silence(Some(&["GET ", "/apikeys?"]));
    let (status, text) = until("the health check to fail", async || {
        let (status, text) = operator.asked("/healthz").await?;
        (status != 200).then_some((status, text))
    })
    .await;
    assert!(
        status == 503 && text.starts_with("a watch has heard nothing from the API server for 2"),
        "{text}"
    );
    assert_eq!(operator.metric("rowgate_operator_leader").await, Some(1.0));

    gate.silence(None);
    until("the watch to go on", async || (operator.asked("/healthz").await?.0 == 200).then_some(())).await;
}
