//! etcd and kube-apiserver, in one folder, on loopback.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use rcgen::KeyPair;

use super::kubectl::{Kubectl, Window};
use super::tools::{HEAP, tool};
use crate::scratch::Scratch;
use crate::servers::data_plane::send;
use crate::servers::tls::{Authority, Issued, Validity};
use crate::wait::until;
use crate::world::free_port;

/// Every request but those of the server to itself, one line each, without bodies.
const AUDIT_POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:apiserver"]}
- {level: Metadata}
"#;

/// See the module's page. Both processes end with the folder.
#[derive(Debug)]
pub(super) struct Server {
    scratch: Scratch,
    authority: Authority,
    port: u16,
    flags: Vec<String>,
    kubeconfig: PathBuf,
    /// Speaks for `admin`, in plain HTTP.
    window: Window,
    api: Option<Child>,
    _etcd: Child,
}

impl Server {
    pub(super) async fn start(flags: &[&str]) -> Server {
        let scratch = Scratch::new();
        // The search for secrets leaves this folder out: it holds the objects, tokens and keys of the server.
        let private = scratch.path().join("state/cluster");
        fs::create_dir_all(&private).expect("the folder is ours");
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).expect("the folder is ours");
        fs::write(scratch.path().join("audit-policy.yaml"), AUDIT_POLICY).expect("the folder is ours");
        let (authority, port) = (Authority::new(), free_port());
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
        put(&private, "server", &authority.issue_for(&names, Validity::Now));
        put(&private, "admin", &authority.issue_client("admin", "system:masters"));
        let signer = KeyPair::generate().expect("a key");
        fs::write(private.join("tokens.key"), signer.serialize_pem()).expect("the folder is ours");
        fs::write(private.join("tokens.pub"), signer.public_key_pem()).expect("the folder is ours");
        fs::copy(authority.file(), private.join("ca.crt")).expect("the folder is ours");
        let kubeconfig = private.join("admin.kubeconfig");
        let user = "{client-certificate: admin.crt, client-key: admin.key}";
        fs::write(&kubeconfig, kubeconfig_text(port, user, "default")).expect("the folder is ours");
        let etcd = etcd(&scratch);
        let flags = flags.iter().map(ToString::to_string).collect();
        let window = Window::open(&Kubectl { kubeconfig: &kubeconfig }, &scratch).await;
        let mut server =
            Server { scratch, authority, port, flags, kubeconfig, window, api: None, _etcd: etcd };
        server.start_again().await;
        server
    }

    pub(super) async fn start_again(&mut self) {
        assert!(self.api.is_none(), "one API server at a time on one port");
        let mut child = self.command().spawn().expect("kube-apiserver was built");
        self.scratch.adopt(child.id());
        until("the API server's readiness", async || {
            let ended = child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "the API server ended: {}", last(&self.log()));
            self.window.ask("/readyz").await.status().is_success().then_some(())
        })
        .await;
        self.api = Some(child);
    }

    fn command(&self) -> Command {
        let private = self.private();
        let mut command = Command::new(tool("kube-apiserver"));
        let mut file = |flag: &str, path: &Path| {
            command.arg(format!("--{flag}={}", path.display()));
        };
        file("cert-dir", &private);
        file("tls-cert-file", &private.join("server.crt"));
        file("tls-private-key-file", &private.join("server.key"));
        file("client-ca-file", &private.join("ca.crt"));
        file("service-account-signing-key-file", &private.join("tokens.key"));
        file("service-account-key-file", &private.join("tokens.pub"));
        file("audit-policy-file", &self.scratch.path().join("audit-policy.yaml"));
        file("audit-log-path", &self.audit_log());
        command
            .env(HEAP.0, HEAP.1)
            .arg(format!("--etcd-servers={}", socket(&private, "etcd")))
            .args(["--audit-log-maxsize=100000", "--service-account-issuer=https://kubernetes.default.svc"])
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg(format!("--secure-port={}", self.port))
            .args(["--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none"])
            .args(["--authorization-mode=RBAC", "--anonymous-auth=false"])
            .args(&self.flags);
        log_to(&mut command, &self.scratch.path().join("kube-apiserver.log"));
        command
    }

    pub(super) async fn kill(&mut self) {
        let mut child = self.api.take().expect("it runs");
        send(child.id(), Signal::SIGKILL);
        until("the end of the API server", async || child.try_wait().expect("it is our child")).await;
        self.scratch.forget(child.id());
    }

    pub(super) fn signal(&self, signal: Signal) {
        send(self.api.as_ref().expect("it runs").id(), signal);
    }

    pub(super) fn pid(&self) -> u32 {
        self.api.as_ref().expect("it runs").id()
    }

    pub(super) fn kubectl(&self) -> Kubectl<'_> {
        Kubectl { kubeconfig: &self.kubeconfig }
    }

    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Writes a kubeconfig for whoever has this token, and gives its path.
    pub(super) fn kubeconfig_with(&self, name: &str, token: &str, namespace: &str, port: u16) -> PathBuf {
        let path = self.private().join(format!("{namespace}-{name}-{port}.kubeconfig"));
        let text = kubeconfig_text(port, &format!("{{token: {token}}}"), namespace);
        fs::write(&path, text).expect("the folder is ours");
        path
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    fn private(&self) -> PathBuf {
        self.scratch.path().join("state/cluster")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.scratch.path().join("audit.log")
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("kube-apiserver.log")).unwrap_or_default()
    }
}

/// It listens on sockets in the folder alone, and gives up surviving a power failure. The addresses that it would tell
/// other members cannot be sockets; there are no others.
fn etcd(scratch: &Scratch) -> Child {
    let private = scratch.path().join("state/cluster");
    let mut command = Command::new(tool("etcd"));
    command
        .env(HEAP.0, HEAP.1)
        .arg("--data-dir")
        .arg(private.join("etcd"))
        .args(["--name=test", "--unsafe-no-fsync", "--log-level=warn", "--quota-backend-bytes=4294967296"])
        .args([
            "--listen-client-urls",
            &socket(&private, "etcd"),
            "--listen-peer-urls",
            &socket(&private, "peer"),
        ])
        .args([
            "--advertise-client-urls=http://localhost:2379",
            "--initial-cluster=test=http://localhost:2380",
        ])
        .arg("--initial-advertise-peer-urls=http://localhost:2380");
    log_to(&mut command, &scratch.path().join("etcd.log"));
    let child = command.spawn().expect("etcd was built");
    scratch.adopt(child.id());
    child
}

/// What a server says when it gives up stands at the end.
fn last(log: &str) -> &str {
    log.lines().next_back().unwrap_or_default()
}

fn socket(folder: &Path, name: &str) -> String {
    format!("unix://{}", folder.join(format!("{name}.sock")).display())
}

fn log_to(command: &mut Command, path: &Path) {
    let log = File::options().append(true).create(true).open(path).expect("the folder is ours");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
}

fn put(folder: &Path, name: &str, issued: &Issued) {
    fs::write(folder.join(format!("{name}.crt")), &issued.certificate).expect("the folder is ours");
    fs::write(folder.join(format!("{name}.key")), &issued.key).expect("the folder is ours");
}

/// File names in it are relative to it.
fn kubeconfig_text(port: u16, user: &str, namespace: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: test
clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: ca.crt}}}}]
users: [{{name: test, user: {user}}}]
contexts: [{{name: test, context: {{cluster: test, user: test, namespace: {namespace}}}}}]
"
    )
}
