//! The cluster's side of a stage: a namespace of the shared API server, the operator as its ServiceAccount with the rights
//! of the chart, and a data plane.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Event, Wish};
use crate::servers::cluster::{AuditMark, Cluster, Gate, Method, Namespace, plural};
use crate::servers::data_plane::DataPlane;
use crate::servers::operator::{ACCOUNT, Operator, grant};
use crate::servers::postgres::Server;
use crate::steps::Steps;
use crate::wait::until;

#[derive(Debug)]
pub(super) struct InCluster {
    namespace: Namespace<'static>,
    /// What the operator asks for passes by there.
    _gate: Option<Gate>,
    kubeconfig: PathBuf,
    /// Where the operator reaches PostgreSQL.
    url: String,
    serving: Vec<String>,
    resync_seconds: String,
    operator: Option<Operator>,
    data_plane: Option<DataPlane>,
}

impl InCluster {
    pub(super) async fn new(url: String, wish: Wish<'_>, steps: &Steps) -> InCluster {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace().await;
        let gate = if wish.by_steps { Some(steps.before_cluster(cluster).await) } else { None };
        let port = gate.as_ref().map_or(cluster.port(), Gate::port);
        let kubeconfig = namespace.kubeconfig_through(ACCOUNT, port).await;
        grant(&namespace).await;
        InCluster {
            namespace,
            _gate: gate,
            kubeconfig,
            url,
            serving: wish.serving.iter().map(ToString::to_string).collect(),
            resync_seconds: wish.resync_seconds.to_string(),
            operator: None,
            data_plane: None,
        }
    }

    /// The operator, always under the name of one Pod, as when its container is started again.
    pub(super) async fn start(&mut self, server: &Server) {
        assert!(self.operator.is_none(), "one at a time");
        let flags = ["--resync-seconds", &self.resync_seconds];
        let operator =
            Operator::start_with(&self.kubeconfig, self.namespace.name(), &self.url, "pod", &flags);
        if self.data_plane.is_none() {
            let serving: Vec<&str> = self.serving.iter().map(String::as_str).collect();
            self.data_plane = Some(operator.data_plane_with(&self.namespace, server, &serving).await);
        }
        self.operator = Some(operator);
    }

    pub(super) async fn ended(&mut self) -> bool {
        self.operator.take().expect("it runs").ended().await.success()
    }

    pub(super) fn pid(&self) -> u32 {
        self.operator.as_ref().expect("it runs").pid()
    }

    pub(super) fn log(&self) -> String {
        self.operator.as_ref().map(Operator::log).unwrap_or_default()
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        [self.pid()].into_iter().chain(self.data_plane.as_ref().map(DataPlane::pid)).collect()
    }

    pub(super) fn logs(&self) -> String {
        [self.log(), self.data_plane.as_ref().map(DataPlane::log).unwrap_or_default()].concat()
    }

    pub(super) async fn put(&self, text: &str) {
        self.namespace.put_all(text).await;
    }

    pub(super) async fn refused(&self, text: &str) -> String {
        let document = Value::deserialize(serde_yaml::Deserializer::from_str(text)).expect("YAML");
        let (status, answer) = self.namespace.put(&document).await;
        assert!(status.is_client_error(), "{status} {answer}");
        answer["message"].as_str().expect("a message").to_owned()
    }

    pub(super) async fn remove(&self, kind: &str, name: &str) {
        let path = format!("{}/{name}", self.namespace.path(plural(kind)));
        let (status, answer) = self.namespace.cluster().send(Method::DELETE, &path, &Value::Null).await;
        assert!(status.is_success(), "{status} {answer}");
    }

    pub(super) async fn object(&self, kind: &str, name: &str) -> Option<Value> {
        self.namespace.get(plural(kind), name).await
    }

    pub(super) async fn events(&self, kind: &str, name: &str) -> Vec<Event> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = self.namespace.list("events").await.into_iter();
        let events = events.filter(|event| {
            let object = &event["involvedObject"];
            object["kind"] == kind && object["name"] == name
        });
        let told = events.map(|event| Event {
            reason: text(&event["reason"]),
            note: text(&event["message"]),
            warning: event["type"] == "Warning",
            count: event["series"]["count"].as_u64().unwrap_or(1),
        });
        told.collect()
    }

    pub(super) async fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.namespace.secret(name).await
    }

    pub(super) async fn set_secret(&self, name: &str, entries: &BTreeMap<String, String>) {
        let path = self.namespace.path("secrets");
        let (method, path, mut secret) = match self.object("Secret", name).await {
            Some(there) => (Method::PUT, format!("{path}/{name}"), there),
            None => {
                let new = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
                (Method::POST, path, new)
            }
        };
        secret.as_object_mut().expect("an object").remove("data");
        secret["stringData"] = json!(entries);
        let (status, answer) = self.namespace.cluster().send(method, &path, &secret).await;
        assert!(status.is_success(), "{status} {answer}");
    }

    pub(super) async fn drop_secret(&self, name: &str) {
        self.remove("Secret", name).await;
    }

    pub(super) fn mark(&self) -> AuditMark {
        self.namespace.cluster().audit_mark()
    }

    pub(super) fn writes_since(&self, mark: &AuditMark) -> Vec<String> {
        let operator = format!("system:serviceaccount:{}:{ACCOUNT}", self.namespace.name());
        let writes = self.namespace.writes_since(mark).into_iter();
        let writes = writes.filter(|write| write.user == operator && write.resource != "leases");
        writes.map(|write| format!("{} {}/{}", write.verb, write.resource, write.name)).collect()
    }

    pub(super) fn url(&self) -> String {
        self.data_plane.as_ref().expect("it was started").url().to_owned()
    }

    pub(super) async fn is_ready(&self) -> bool {
        self.data_plane.as_ref().expect("it was started").is_ready().await
    }

    pub(super) async fn replica(&self, server: &Server) -> DataPlane {
        self.operator.as_ref().expect("it runs").data_plane(&self.namespace, server).await
    }

    /// The operator's and the data plane's.
    pub(super) async fn roots(&self) -> [String; 2] {
        let mut roots = [String::new(), String::new()];
        for (root, name) in roots.iter_mut().zip(["operator", "dataplane"]) {
            let name = format!("rowgate-{name}-root");
            let entry = async || self.namespace.secret(&name).await?.remove("root");
            until(&name, entry).await.trim().clone_into(root);
        }
        roots
    }
}
