//! The operator as a process of its own: a ServiceAccount with the rights that the chart gives it, and nothing more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::Signal;
use rowgate_core::derive::Root;
use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::login::Login;
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::servers::cluster::{Method, Namespace};
use crate::servers::data_plane::{DataPlane, send};
use crate::servers::postgres::{Server, rows};
use crate::wait::until;
use crate::world::{free_port, program};

/// The ServiceAccount that the operator is.
pub const ACCOUNT: &str = "operator";
/// The one of another operator with the same rights, where a test asks which of two has written something.
pub const OTHER_ACCOUNT: &str = "other-operator";

/// It ends with this value, or with the test process. Home and the one namespace that it looks after are the same.
#[derive(Debug)]
pub struct Operator {
    child: Child,
    scratch: Scratch,
    health: u16,
}

impl Operator {
    /// Starts it under the name `identity`, with the rights of the chart.
    pub async fn start(namespace: &Namespace<'_>, server: &Server, identity: &str) -> Operator {
        Operator::start_every(Some(1), namespace, server, identity).await
    }

    /// As [`Operator::start`], which compares everything each second although nothing changed: this one as seldom as is said
    /// here, or as it is installed.
    pub async fn start_every(
        resync_seconds: Option<u32>,
        namespace: &Namespace<'_>,
        server: &Server,
        identity: &str,
    ) -> Operator {
        let kubeconfig = namespace.kubeconfig_for(ACCOUNT).await;
        grant(namespace).await;
        Operator::spawn(&kubeconfig, namespace.name(), &server.url(), identity, resync_seconds, &[])
    }

    /// As [`Operator::start`], by way of this kubeconfig and with the rights that it has.
    #[must_use]
    pub fn start_at(kubeconfig: &Path, namespace: &str, server: &Server, identity: &str) -> Operator {
        Operator::start_with(kubeconfig, namespace, &server.url(), identity, &[])
    }

    /// As [`Operator::start_at`], with the address of the PostgreSQL and further flags. Unless they say otherwise it looks
    /// at everything each second.
    #[must_use]
    pub fn start_with(
        kubeconfig: &Path,
        namespace: &str,
        database_url: &str,
        identity: &str,
        flags: &[&str],
    ) -> Operator {
        Operator::spawn(kubeconfig, namespace, database_url, identity, Some(1), flags)
    }

    fn spawn(
        kubeconfig: &Path,
        namespace: &str,
        database_url: &str,
        identity: &str,
        resync_seconds: Option<u32>,
        flags: &[&str],
    ) -> Operator {
        let (scratch, health) = (Scratch::new(), free_port());
        let log = File::create(scratch.path().join("log")).expect("the folder is ours");
        let mut command = Command::new(program("ROWGATE_OPERATOR_BIN", "rowgate-operator"));
        command
            .env("KUBECONFIG", kubeconfig)
            .env("ROWGATE_DATABASE_URL", database_url)
            .envs(resync_seconds.map(|seconds| ("ROWGATE_RESYNC_SECONDS", seconds.to_string())))
            .args(["--namespace", namespace, "--own-namespace", namespace, "--identity", identity])
            .args(["--api-url", "http://api.test"])
            .args(["--health-address", &format!("127.0.0.1:{health}")])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().expect("the binary was built; `make test` builds it");
        scratch.adopt(child.id());
        Operator { child, scratch, health }
    }

    /// A data plane over what this operator has installed, once it has.
    pub async fn data_plane(&self, namespace: &Namespace<'_>, server: &Server) -> DataPlane {
        self.data_plane_with(namespace, server, &[]).await
    }

    /// As [`Operator::data_plane`], with further flags.
    pub async fn data_plane_with(
        &self,
        namespace: &Namespace<'_>,
        server: &Server,
        flags: &[&str],
    ) -> DataPlane {
        let state = self.scratch.path().join("state");
        fs::create_dir_all(&state).expect("the folder is ours");
        for name in ["operator", "dataplane"] {
            let secret = format!("rowgate-{name}-root");
            let root = until(&secret, async || namespace.secret(&secret).await).await;
            fs::write(state.join(format!("{name}.root")), &root["root"]).expect("the folder is ours");
        }
        let change = |command: &mut Command| {
            command.args(flags);
        };
        DataPlane::start_with(&server.control(), &state.join("dataplane.root"), change).await
    }

    /// What it answers at `/healthz`, `/readyz` or `/metrics`: the status and the text; `None`: nobody listens.
    pub async fn asked(&self, path: &str) -> Option<(u16, String)> {
        let answer = reqwest::get(format!("http://127.0.0.1:{}{path}", self.health)).await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    /// The sum of a metric's samples; `None`: there is none.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let (_, page) = self.asked("/metrics").await?;
        let of = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let values = page.lines().filter(of).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        values.reduce(|sum, value| sum + value)
    }

    /// Waits until it leads.
    pub async fn leads(&self) {
        let leads = async || (self.metric("rowgate_operator_leader").await == Some(1.0)).then_some(());
        until("the lead of an operator", leads).await;
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).expect("the file was made before it")
    }

    /// Sends a signal that does not end it.
    pub fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Sends `signal` and waits for the end.
    pub async fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.ended().await
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let status =
            until("the end of an operator", async || self.child.try_wait().expect("our child")).await;
        self.scratch.forget(self.child.id());
        status
    }
}

/// Gives [`ACCOUNT`] the rights of the chart, and returns when the API server knows of them.
pub async fn grant(namespace: &Namespace<'_>) {
    grant_these(namespace, &rights(namespace.name())).await;
}

/// As [`grant`], with `rights` instead of those of the chart: [`rights`] changed in what an operator can do without.
pub async fn grant_these(namespace: &Namespace<'_>, rights: &str) {
    namespace.put_all(rights).await;
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", namespace.name());
    for (group, resource, verb) in
        [("rowgate.dev", "apikeys", "list"), ("coordination.k8s.io", "leases", "create")]
    {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": user, "resourceAttributes": {
                "namespace": namespace.name(), "group": group, "resource": resource, "verb": verb,
            } },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        until("the rights of the operator", async || {
            let (_, answer) = namespace.cluster().send(Method::POST, path, &review).await;
            (answer["status"]["allowed"] == true).then_some(())
        })
        .await;
    }
}

/// The chart's rules, as Roles in this namespace.
#[must_use]
pub fn rights(namespace: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path: PathBuf =
        tests.parent().expect("the tests stand in the workspace").join("charts/rowgate/rbac/rules.yaml");
    let text = fs::read_to_string(path).expect("the chart is committed");
    let rules: Value = serde_yaml::from_str(&text).expect("rules in YAML");
    let group = "rbac.authorization.k8s.io";
    let subject = |name| json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace });
    let subjects = [ACCOUNT, OTHER_ACCOUNT].map(subject);
    let role = |part: &str| {
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": { "name": part }, "rules": rules[part],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": { "name": part },
            "roleRef": { "apiGroup": group, "kind": "Role", "name": part },
            "subjects": subjects,
        });
        format!("{role}\n---\n{binding}\n")
    };
    format!("{}---\n{}", role("namespaces"), role("home"))
}

/// The owner's login of each Tenant in `tenants` that was told its id, as the root in `home` gives it.
pub async fn owners(home: &Namespace<'_>, tenants: &Namespace<'_>, server: &Server) -> Vec<Login> {
    let secret = async || home.secret("rowgate-operator-root").await?.remove("root");
    let root = Root::from_hex(&until("the operator's root", secret).await).expect("a root");
    let label = "select system_identifier::text as it from pg_control_system()";
    let label = rows(&mut server.connect("postgres").await, label).await;
    let label = label[0]["it"].as_str().expect("a text");
    let login = |tenant: &Value| {
        let status = &tenant["status"];
        let role = TenantLogin::Owner.role(&status["tenantId"].as_str()?.parse().ok()?);
        let database = status["database"].as_str()?.to_owned();
        let password = root.password(label, &role, 1);
        Some(Login { endpoint: server.endpoint().clone(), database, role, password })
    };
    tenants.list("tenants").await.iter().filter_map(login).collect()
}
