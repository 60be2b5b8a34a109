//! `make cluster`: what a contributor tries Kubernetes with. An API server, a PostgreSQL, the operator and two data planes
//! as processes on this machine, and the example shop applied. Everything is gone after Ctrl-C.

use std::fs::{self, File};
use std::future::pending;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use rowgate_pg::connect::login::Login;
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::cluster::{Cluster, Namespace, tool, tools};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::operator::owners;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use rowgate_tests::world::{examples, free_port, program};

/// Where the shop is, for people who type no namespace.
const SHOP: &str = "default";
/// Where the operator keeps what is its own.
const HOME: &str = "rowgate-system";
/// What the chart calls it, its ServiceAccount too.
const OPERATOR: &str = "rowgate-operator";

#[tokio::main]
async fn main() {
    // Ctrl-C reaches every process of the terminal; ours has to outlive none of them, but must clean up.
    tokio::select! {
        () = run() => {}
        _ = tokio::signal::ctrl_c() => say("\nstopping"),
    }
}

async fn run() {
    say("starting a Kubernetes API server and a PostgreSQL");
    let (cluster, server) = tokio::join!(Cluster::own(), Server::own());
    let (home, shop) = (cluster.namespace_called(HOME).await, cluster.namespace_called(SHOP).await);
    say("starting the operator and two data planes");
    let ports = [free_port(), free_port()];
    let urls = ports.map(|port| format!("http://127.0.0.1:{port}"));
    let scratch = Scratch::new();
    let mut operator = operator(&home, &server, &urls[0], &scratch).await;
    let root = scratch.path().join("dataplane.root");
    fs::write(&root, made_by_the_operator(&home).await).expect("the folder is ours");
    let socket = server.socket();
    let start = |port| DataPlane::start_at(port, &socket, &root, |_| ());
    let _data_planes = tokio::join!(start(ports[0]), start(ports[1]));
    say("applying examples/shop");
    let folder = examples().join("shop");
    let folder = folder.to_str().expect("the checkout's path is UTF-8");
    say(&shop.kubectl(&["apply", "--filename", folder]).await.ok());
    let ready = ["wait", "tenant,apikey", "--all", "--for=condition=Ready", "--timeout=60s"];
    let waited = shop.kubectl(&ready).await;
    if !waited.status.success() {
        say(&waited.stderr);
    }
    if let Some(status) = operator.try_wait().expect("it is our child") {
        say(&format!(
            "the operator ended with {status}; its log is {}",
            scratch.path().join("log").display()
        ));
    }
    say(&shop.kubectl(&["get", "rowgate"]).await.ok());
    say(&lines(&cluster, &shop, &urls).await);
    say(&tables(&home, &shop, &server).await);
    say(&format!("The other data plane is at {}. Ctrl-C here ends everything.", urls[1]));
    pending().await
}

/// The operator, under the rights that the chart gives it. It ends with `scratch`.
async fn operator(home: &Namespace<'_>, server: &Server, api_url: &str, scratch: &Scratch) -> Child {
    let chart = examples().with_file_name("charts").join("rowgate");
    let rights = Command::new(tool("helm"))
        .args(["template", "rowgate"])
        .arg(chart)
        .args(["--namespace", HOME, "--set", &format!("namespaces={{{SHOP}}}")])
        .args(["--show-only", "templates/rbac.yaml", "--show-only", "templates/serviceaccounts.yaml"])
        .stderr(Stdio::inherit())
        .output()
        .expect("helm was built");
    let rights = String::from_utf8(rights.stdout).expect("helm prints UTF-8");
    home.cluster().apply(&rights).await.ok();
    let log = File::create(scratch.path().join("log")).expect("the folder is ours");
    let child = Command::new(program("ROWGATE_OPERATOR_BIN", OPERATOR))
        .args(["--namespace", SHOP, "--own-namespace", HOME, "--api-url", api_url])
        .args(["--health-address", &format!("127.0.0.1:{}", free_port())])
        .env("KUBECONFIG", home.kubeconfig_for(OPERATOR).await)
        .env("ROWGATE_DATABASE_URL", server.url())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("`make cluster` builds it");
    scratch.adopt(child.id());
    child
}

/// The data plane's root, from the Secret that the operator makes.
async fn made_by_the_operator(home: &Namespace<'_>) -> String {
    let look = async || home.secret("rowgate-dataplane-root").await?.remove("root");
    until("the data plane's root", look).await
}

/// What to paste into another terminal.
async fn lines(cluster: &Cluster, shop: &Namespace<'_>, urls: &[String; 2]) -> String {
    let mut lines = format!(
        "Paste into another terminal:\n\nexport KUBECONFIG={}\nexport PATH={}:$PATH\n\nkubectl get rowgate\n",
        cluster.kubeconfig().display(),
        tools().display()
    );
    for key in shop.list("apikeys").await {
        let text = |pointer: &str| key.pointer(pointer).and_then(|text| text.as_str()).unwrap_or_default();
        let (secret, tenant) = (text("/status/secretName"), text("/spec/tenantRef/name"));
        let name = text("/metadata/name");
        let key = format!("$(kubectl get secret {secret} -o jsonpath='{{.data.apiKey}}' | base64 -d)");
        let url = format!("{}/auth/{tenant}/api/customers?$first=3", urls[0]);
        lines += &format!("\n# key {name}\ncurl -H \"X-API-Key: {key}\" '{url}'\n");
    }
    lines
}

/// How the tables of each Tenant are opened as their owner. On a command line everybody would read the password.
async fn tables(home: &Namespace<'_>, shop: &Namespace<'_>, server: &Server) -> String {
    let mut lines = "# the tables, as their owner (README.md, \"Changing tables\")\n".to_owned();
    for Login { database, role, password, .. } in owners(home, shop, server).await {
        let (folder, password) = (server.socket(), password.reveal());
        lines += &format!("PGPASSWORD={password} psql -h {} -U {role} {database}\n", folder.display());
    }
    lines
}

/// Nothing is said where standard output is closed.
fn say(text: &str) {
    let _told = writeln!(std::io::stdout(), "{text}");
}
