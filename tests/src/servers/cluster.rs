//! A real Kubernetes API server for tests: etcd and kube-apiserver as processes, with our custom resources in it, and
//! kubectl to speak to it. Nothing else of Kubernetes runs: no Pod starts, nothing is garbage collected, and a namespace
//! that is deleted stays.
//!
//! RBAC is on. Whoever is not `admin`, whom RBAC does not bind, is a ServiceAccount with a token of the server's own.

mod audit;
mod gate;
mod kstatus;
mod kubectl;
mod namespace;
mod recording;
mod server;
mod tools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::Signal;
pub use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub use audit::{AuditMark, Write};
pub use gate::Gate;
pub use kstatus::{Verdict, kstatus};
pub use kubectl::Said;
pub use namespace::{Namespace, plural};
pub use recording::{Recording, State};
pub use tools::{tool, tools};

use crate::servers::tls::Authority;
use crate::sweep;
use crate::wait::until;
use kubectl::Kubectl;
use server::Server;

/// An API server that ends with this value, or with the test process.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    n_namespaces: AtomicUsize,
}

impl Cluster {
    /// The one server that tests share, each in a namespace of its own. Never stop it: use [`Cluster::own`] for that.
    pub async fn shared() -> &'static Cluster {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        let cluster = SHARED.get_or_init(Cluster::own).await;
        let leaks = sweep::look(cluster.server.scratch().path());
        assert!(
            leaks.is_empty(),
            "a test that used the shared cluster before left secrets: {}",
            leaks.join("; ")
        );
        cluster
    }

    /// A fresh server.
    pub async fn own() -> Cluster {
        Cluster::with(&[]).await
    }

    /// A fresh server with further flags of kube-apiserver, such as `--goaway-chance=0.01`.
    pub async fn with(flags: &[&str]) -> Cluster {
        let server = Server::start(flags).await;
        let cluster = Cluster { server, n_namespaces: AtomicUsize::new(0) };
        cluster.establish().await;
        cluster
    }

    /// Our custom resources, served.
    async fn establish(&self) {
        let folder = crds();
        let folder = folder.to_str().expect("the checkout's path is UTF-8");
        self.kubectl(&["apply", "--filename", folder]).await.ok();
        self.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "--filename", folder])
            .await
            .ok();
        self.serves_our_kinds().await;
    }

    /// For a moment after it has taken a definition, and after its own start, the server asks to come later.
    async fn serves_our_kinds(&self) {
        for kind in ["tenants", "apikeys", "relationships", "webhooksubscriptions"] {
            let path = format!("/apis/rowgate.dev/v1alpha1/{kind}");
            let look =
                async || self.send(Method::GET, &path, &Value::Null).await.0.is_success().then_some(());
            until(kind, look).await;
        }
    }

    /// A fresh namespace.
    pub async fn namespace(&self) -> Namespace<'_> {
        let n = self.n_namespaces.fetch_add(1, Ordering::Relaxed) + 1;
        self.namespace_called(&format!("test-{n}")).await
    }

    /// This namespace, which is made if there is none.
    pub async fn namespace_called(&self, name: &str) -> Namespace<'_> {
        if self.get(&format!("/api/v1/namespaces/{name}")).await.is_none() {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            let (status, answer) = self.send(Method::POST, "/api/v1/namespaces", &namespace).await;
            assert!(status.is_success(), "{status} {answer}");
        }
        Namespace::new(self, name.to_owned())
    }

    /// Runs kubectl as `admin`.
    pub async fn kubectl(&self, args: &[&str]) -> Said {
        self.server.kubectl().run(args, "").await
    }

    /// `kubectl apply` of a text with any number of documents, as `admin`.
    pub async fn apply(&self, yaml: &str) -> Said {
        self.server.kubectl().run(&["apply", "--filename", "-"], yaml).await
    }

    /// What the server answers to a `GET` by `admin`, such as of `/api/v1/namespaces/a/secrets/b`; `None`: it is not there.
    /// Cheap enough for [`until`].
    pub async fn get(&self, path: &str) -> Option<Value> {
        self.server.window().get(path).await
    }

    /// What the server answers to another request by `admin`: for many at a time, and for what kubectl would not send.
    /// `PATCH` is a merge patch.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        self.server.window().send(method, path, body).await
    }

    /// A kubeconfig by which `kubectl` is `admin`.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.server.kubeconfig().to_owned()
    }

    /// The API server's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Where the server listens on 127.0.0.1, with TLS and a certificate of [`Cluster::authority`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Whom clients of the server trust: for a test that stands between.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        self.server.authority()
    }

    /// Now, for [`Cluster::writes_since`].
    #[must_use]
    pub fn audit_mark(&self) -> AuditMark {
        audit::mark(&self.server.audit_log())
    }

    /// What changed objects since `mark` by the server's audit log, refused attempts included. The server writes a line
    /// once it has answered, so one that was answered just now may be missing.
    #[must_use]
    pub fn writes_since(&self, mark: &AuditMark) -> Vec<Write> {
        audit::writes_since(&self.server.audit_log(), mark)
    }

    /// How many requests of `user` the server has answered since `mark`, by verb and resource, such as `get secrets`;
    /// watches that have only begun included.
    #[must_use]
    pub fn requests_since(&self, mark: &AuditMark, user: &str) -> BTreeMap<String, usize> {
        audit::requests_since(&self.server.audit_log(), mark, user)
    }

    /// What the server has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// SIGSTOP and SIGCONT, and whatever else does not end the API server.
    pub fn signal(&self, signal: Signal) {
        self.server.signal(signal);
    }

    /// SIGKILL for the API server; what it stored stays.
    pub async fn kill(&mut self) {
        self.server.kill().await;
    }

    /// Starts the API server anew after [`Cluster::kill`], at its old address, and returns when it is ready.
    pub async fn start_again(&mut self) {
        self.server.start_again().await;
        self.serves_our_kinds().await;
    }

    fn client(&self) -> Kubectl<'_> {
        self.server.kubectl()
    }
}

/// The folder with the definitions of our custom resources.
fn crds() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests stand in the workspace").join("crds")
}
