//! kubectl: as a command, and as a window to the server in plain HTTP.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use super::tools::{HEAP, tool};
use crate::scratch::Scratch;
use crate::wait::until;

/// How to call it. What it keeps for the next call stands beside the kubeconfig.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kubectl<'a> {
    pub(super) kubeconfig: &'a Path,
}

/// What a call has printed.
#[derive(Debug, Clone)]
pub struct Said {
    args: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// What it printed when all went well; the test fails otherwise.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.status.success(), "kubectl {}: {}{}", self.args, self.stdout, self.stderr);
        self.stdout
    }

    /// What it said when it failed; the test fails when it did not.
    #[track_caller]
    pub fn refused(self) -> String {
        assert!(!self.status.success(), "kubectl {} was not refused: {}", self.args, self.stdout);
        self.stderr
    }
}

impl Kubectl<'_> {
    pub(super) fn command(self, args: &[&str]) -> Command {
        let mut command = Command::new(tool("kubectl"));
        // Nothing of the person who runs the tests: neither clusters nor preferences.
        command.env_remove("KUBECONFIG").env("KUBERC", "off").env(HEAP.0, HEAP.1);
        command.arg("--kubeconfig").arg(self.kubeconfig);
        command.arg("--cache-dir").arg(self.kubeconfig.with_extension("cache"));
        command.args(args);
        command
    }

    pub(super) async fn run(self, args: &[&str], input: &str) -> Said {
        let mut command = tokio::process::Command::from(self.command(args));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("kubectl was built");
        let mut stdin = child.stdin.take().expect("it is piped");
        let write = async move {
            match stdin.write_all(input.as_bytes()).await {
                // It may end without having read everything.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => panic!("kubectl's input: {error}"),
                _ => drop(stdin),
            }
        };
        let ((), output) = tokio::join!(write, child.wait_with_output());
        let output = output.expect("kubectl runs");
        let text = |bytes| String::from_utf8(bytes).expect("kubectl prints UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Said { args: args.join(" "), status: output.status, stdout, stderr }
    }
}

/// `kubectl proxy`: it ends with the folder that it was opened in.
#[derive(Debug, Clone)]
pub(super) struct Window {
    url: String,
    client: reqwest::Client,
    _proxy: Arc<Child>,
}

impl Window {
    pub(super) async fn open(kubectl: &Kubectl<'_>, scratch: &Scratch) -> Window {
        let log = scratch.path().join("proxy.log");
        let file = || File::create(&log).expect("the folder is ours");
        let mut command = kubectl.command(&["proxy", "--port=0"]);
        command.stdin(Stdio::null()).stdout(file()).stderr(Stdio::null());
        let proxy = command.spawn().expect("kubectl was built");
        scratch.adopt(proxy.id());
        let url = until("kubectl proxy", async || {
            let text = fs::read_to_string(&log).ok()?;
            let address = text.strip_prefix("Starting to serve on ")?.strip_suffix('\n')?;
            Some(format!("http://{address}"))
        });
        // A connection of its own for each request: one that is kept may be closed just as it is used again.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().expect("no TLS is needed");
        Window { url: url.await, client, _proxy: Arc::new(proxy) }
    }

    pub(super) async fn get(&self, path: &str) -> Option<Value> {
        let (status, answer) = read(path, self.ask(path).await).await;
        if status == StatusCode::NOT_FOUND {
            return None;
        }
        assert!(status.is_success(), "GET {path}: {status} {answer}");
        Some(answer)
    }

    pub(super) async fn ask(&self, path: &str) -> reqwest::Response {
        let answer = self.client.get(format!("{}{path}", self.url)).send().await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(super) async fn apply(&self, path: &str, document: &Value) -> (StatusCode, Value) {
        let url = format!("{}{path}?fieldManager=tests&force=true&fieldValidation=Strict", self.url);
        let request = self.client.patch(url).body(document.to_string());
        let answer = request.header(CONTENT_TYPE, "application/apply-patch+yaml").send().await;
        read(path, answer.unwrap_or_else(|error| panic!("{path}: {error}"))).await
    }

    pub(super) async fn send(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = self.client.request(method, format!("{}{path}", self.url)).header(CONTENT_TYPE, kind);
        let answer = request.json(body).send().await;
        read(path, answer.unwrap_or_else(|error| panic!("{path}: {error}"))).await
    }
}

async fn read(path: &str, answer: reqwest::Response) -> (StatusCode, Value) {
    let status = answer.status();
    let text = answer.text().await.unwrap_or_else(|error| panic!("{path}: {error}"));
    let body = serde_json::from_str(&text);
    (status, body.unwrap_or_else(|_| panic!("{path}: {status} {text}")))
}
