//! A namespace of one test.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::Cluster;
use super::audit::{AuditMark, Write};
use super::kubectl::Said;
use super::recording::Recording;
use crate::sweep;
use crate::wait::until_ok;
use crate::world::status::ready;

/// See the module's page. Nothing deletes it: it goes with the server.
#[derive(Debug)]
pub struct Namespace<'a> {
    cluster: &'a Cluster,
    name: String,
}

impl<'a> Namespace<'a> {
    pub(super) fn new(cluster: &'a Cluster, name: String) -> Namespace<'a> {
        Namespace { cluster, name }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// Runs kubectl as `admin`, in this namespace.
    pub async fn kubectl(&self, args: &[&str]) -> Said {
        self.cluster.kubectl(&[&["--namespace", &self.name], args].concat()).await
    }

    /// `kubectl apply` of a text with any number of documents, as `admin`, in this namespace.
    pub async fn apply(&self, yaml: &str) -> Said {
        self.kubectl_with(&["apply", "--filename", "-"], yaml).await
    }

    /// As [`Namespace::kubectl`], with something to read, for `--filename -`.
    pub async fn kubectl_with(&self, args: &[&str], input: &str) -> Said {
        self.cluster.client().run(&[&["--namespace", &self.name], args].concat(), input).await
    }

    /// Server-side apply of one document, as `admin`: what an earlier one said and this one does not say goes. Cheaper than
    /// [`Namespace::apply`], for many at a time.
    pub async fn put(&self, document: &Value) -> (StatusCode, Value) {
        let name = document["metadata"]["name"].as_str().expect("a name");
        let resource = plural(document["kind"].as_str().expect("a kind"));
        self.cluster.server.window().apply(&format!("{}/{name}", self.path(resource)), document).await
    }

    /// As [`Namespace::put`], of each document of a text; none may be refused.
    pub async fn put_all(&self, yaml: &str) {
        for document in serde_yaml::Deserializer::from_str(yaml) {
            let document = Value::deserialize(document).expect("YAML");
            let (status, answer) = self.put(&document).await;
            assert!(status.is_success(), "{status} {answer}");
        }
    }

    /// An object of this namespace at this moment. `resource` is a plural, such as `tenants` or `secrets`.
    pub async fn get(&self, resource: &str, name: &str) -> Option<Value> {
        self.cluster.get(&format!("{}/{name}", self.path(resource))).await
    }

    /// All objects of a resource.
    pub async fn list(&self, resource: &str) -> Vec<Value> {
        let list = self.cluster.get(&self.path(resource)).await.expect("the server knows the resource");
        list["items"].as_array().expect("a list").clone()
    }

    /// Where the objects of a resource are.
    #[must_use]
    pub fn path(&self, resource: &str) -> String {
        let group = match resource {
            "tenants" | "apikeys" | "relationships" | "webhooksubscriptions" => "/apis/rowgate.dev/v1alpha1",
            "leases" => "/apis/coordination.k8s.io/v1",
            "deployments" => "/apis/apps/v1",
            "roles" | "rolebindings" => "/apis/rbac.authorization.k8s.io/v1",
            _ => "/api/v1",
        };
        format!("{group}/namespaces/{}/{resource}", self.name)
    }

    /// The entries of a Secret, decoded. Its key is searched for in logs from then on.
    pub async fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let secret = self.get("secrets", name).await?;
        let entries = secret["data"].as_object().into_iter().flatten().map(|(name, value)| {
            let text = STANDARD.decode(value.as_str().expect("base 64")).expect("base 64");
            (name.clone(), String::from_utf8(text).expect("our Secrets hold UTF-8"))
        });
        let entries: BTreeMap<String, String> = entries.collect();
        if let Some(key) = entries.get("apiKey").filter(|key| key.contains(":dlk_")) {
            sweep::remember(key);
        }
        Some(entries)
    }

    /// Waits until the object's `Ready` condition has this reason at this generation or a later one, and gives its
    /// status.
    pub async fn told(&self, resource: &str, name: &str, generation: i64, reason: &str) -> Value {
        until_ok(&format!("{reason} at generation {generation} for {resource}/{name}"), async || {
            let status = self.get(resource, name).await.unwrap_or_default()["status"].take();
            let observed = status["observedGeneration"].as_i64().unwrap_or(-1);
            match ready(&status) {
                (told, _) if told == reason && generation <= observed => Ok(status),
                told => Err(format!("{told:?} at {observed}")),
            }
        })
        .await
    }

    /// Writes down every state of a resource's objects that the server shows from now on.
    pub async fn record(&self, resource: &str) -> Recording {
        Recording::begin(self.cluster.server.window(), &self.path(resource)).await
    }

    /// As [`Cluster::writes_since`], of what stands in this namespace.
    #[must_use]
    pub fn writes_since(&self, mark: &AuditMark) -> Vec<Write> {
        let mut writes = self.cluster.writes_since(mark);
        writes.retain(|write| write.namespace == self.name);
        writes
    }

    /// A kubeconfig with a token of this ServiceAccount, which is made if there is none, and of this namespace.
    pub async fn kubeconfig_for(&self, service_account: &str) -> PathBuf {
        self.kubeconfig_through(service_account, self.cluster.port()).await
    }

    /// As [`Namespace::kubeconfig_for`], by way of another port of 127.0.0.1 whose certificate is of
    /// [`Cluster::authority`].
    pub async fn kubeconfig_through(&self, service_account: &str, port: u16) -> PathBuf {
        self.put(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": service_account },
        }))
        .await;
        let path = format!("{}/{service_account}/token", self.path("serviceaccounts"));
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "expirationSeconds": 86_400 },
        });
        let (status, answer) = self.cluster.send(Method::POST, &path, &request).await;
        let token = answer["status"]["token"].as_str().unwrap_or_else(|| panic!("{status} {answer}"));
        self.cluster.server.kubeconfig_with(service_account, token, &self.name, port)
    }
}

/// The plural of a kind.
#[must_use]
pub fn plural(kind: &str) -> &'static str {
    match kind {
        "Tenant" => "tenants",
        "ApiKey" => "apikeys",
        "Relationship" => "relationships",
        "WebhookSubscription" => "webhooksubscriptions",
        "ConfigMap" => "configmaps",
        "Secret" => "secrets",
        "Role" => "roles",
        "RoleBinding" => "rolebindings",
        "ServiceAccount" => "serviceaccounts",
        other => panic!("what is the plural of {other}?"),
    }
}
