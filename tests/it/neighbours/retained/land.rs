//! Two teams with a namespace each on one installation: files of two namespaces in a folder, or kubectl with rights in one
//! namespace, and the platform team's commands.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::cluster::{Cluster, Namespace, plural, tool};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::operator::{ACCOUNT, Operator, grant, rights};
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::stage::On;
use rowgate_tests::sweep;
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::status::ready;
use rowgate_tests::world::{World, binary, get};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Team {
    A,
    B,
}

pub(super) struct Land {
    pub(super) server: Server,
    names: [String; 2],
    kind: Kind,
}

enum Kind {
    Folder(Box<World>),
    Cluster(Box<Teams>),
}

struct Teams {
    namespaces: [Namespace<'static>; 2],
    kubeconfigs: [PathBuf; 2],
    /// With the roots, as a platform team fetches them.
    scratch: Scratch,
    data_plane: DataPlane,
    operator: Operator,
}

impl Land {
    pub(super) async fn open(on: On) -> Land {
        let server = Server::own().await;
        let (names, kind) = match on {
            On::Folder => {
                let mut world = World::on(&server, &[]).compared_every(1);
                world.spawn(|_| ());
                (["team-a", "team-b"].map(str::to_owned), Kind::Folder(Box::new(world)))
            }
            On::Cluster => {
                let teams = Teams::open(&server).await;
                let names = teams.namespaces.each_ref().map(|it| it.name().to_owned());
                (names, Kind::Cluster(Box::new(teams)))
            }
        };
        Land { server, names, kind }
    }

    /// Its namespace.
    pub(super) fn name(&self, team: Team) -> &str {
        &self.names[team as usize]
    }

    /// The team applies an object.
    pub(super) fn put(&self, team: Team, kind: &str, name: &str, spec: &str) {
        self.apply(team, "rowgate.dev/v1alpha1", kind, name, &format!("spec: {spec}\n"));
    }

    pub(super) fn put_config_map(&self, team: Team, name: &str, body: &str) {
        self.apply(team, "v1", "ConfigMap", name, body);
    }

    fn apply(&self, team: Team, version: &str, kind: &str, name: &str, body: &str) {
        let namespace = self.name(team);
        let text = format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{namespace: {namespace}, name: {name}}}\n{body}"
        );
        match &self.kind {
            Kind::Folder(world) => world.write(&file(namespace, kind, name), &text),
            Kind::Cluster(teams) => {
                teams.kubectl(team, &["apply", "--filename", "-"], &text).expect("it may");
            }
        }
    }

    /// The team deletes an object, and waits for nothing.
    pub(super) fn remove(&self, team: Team, kind: &str, name: &str) {
        match &self.kind {
            Kind::Folder(world) => {
                let path = world.manifests().join(file(self.name(team), kind, name));
                fs::remove_file(path).expect("it was put");
            }
            Kind::Cluster(teams) => {
                teams.kubectl(team, &["delete", "--wait=false", plural(kind), name], "").expect("it may");
            }
        }
    }

    async fn object(&self, team: Team, kind: &str, name: &str) -> Option<Value> {
        match &self.kind {
            Kind::Folder(world) => {
                let file = format!("status/{}_{}_{name}.yaml", kind.to_lowercase(), self.name(team));
                serde_yaml::from_str(&fs::read_to_string(world.state().join(file)).ok()?).ok()
            }
            Kind::Cluster(teams) => teams.namespaces[team as usize].get(plural(kind), name).await,
        }
    }

    pub(super) async fn gone(&self, team: Team, kind: &str, name: &str) {
        until(&format!("the end of {kind} {name}"), async || {
            self.object(team, kind, name).await.is_none().then_some(())
        })
        .await;
    }

    /// Waits until the object says this reason, and gives its status.
    pub(super) async fn told(&self, team: Team, kind: &str, name: &str, reason: &str) -> Value {
        until_ok(&format!("{reason} for {kind} {name} of {team:?}"), async || {
            let status = self.object(team, kind, name).await.unwrap_or_default()["status"].take();
            if ready(&status).0 == reason { Ok(status) } else { Err(format!("{:?}", ready(&status))) }
        })
        .await
    }

    /// What the team reads of Events in its namespace.
    pub(super) fn events(&self, team: Team) -> String {
        match &self.kind {
            Kind::Folder(_) => String::new(),
            Kind::Cluster(teams) => {
                teams.kubectl(team, &["get", "events", "--output", "yaml"], "").expect("it may")
            }
        }
    }

    /// The key string of an ApiKey.
    pub(super) async fn key(&self, team: Team, name: &str) -> String {
        let secret = async || match &self.kind {
            Kind::Folder(world) => {
                let file = format!("secrets/{}/{name}.yaml", self.name(team));
                let text = fs::read_to_string(world.state().join(file)).ok()?;
                let secret: Value = serde_yaml::from_str(&text).ok()?;
                serde_json::from_value::<BTreeMap<String, String>>(secret["stringData"].clone()).ok()
            }
            Kind::Cluster(teams) => teams.namespaces[team as usize].secret(name).await,
        };
        let key = until("a key", async || secret().await?.remove("apiKey")).await;
        sweep::remember(&key);
        key
    }

    pub(super) fn url(&self) -> String {
        match &self.kind {
            Kind::Folder(world) => world.url(),
            Kind::Cluster(teams) => teams.data_plane.url().to_owned(),
        }
    }

    /// Of each process of ours.
    pub(super) fn pids(&self) -> Vec<u32> {
        match &self.kind {
            Kind::Folder(world) => vec![world.pid()],
            Kind::Cluster(teams) => vec![teams.operator.pid(), teams.data_plane.pid()],
        }
    }

    /// Whether a key works; it must be answered with 200 or 401.
    pub(super) async fn opens(&self, key: &str, path: &str) -> bool {
        let answer = get(&format!("{}{path}", self.url()), key).await;
        assert!([200, 401].contains(&answer.status.as_u16()), "{answer:?}");
        answer.status == 200
    }

    /// The platform team runs `retained` and types `input`: what it prints, or what it says when it fails.
    pub(super) async fn retained(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = Command::new(binary());
        command.arg("retained").args(arguments).env_remove("ROWGATE_STATE");
        match &self.kind {
            Kind::Folder(world) => {
                command.arg("--state").arg(world.state());
            }
            Kind::Cluster(teams) => {
                let root = |name: &str| teams.scratch.path().join(format!("state/{name}.root"));
                command.arg("--root-file").arg(root("dataplane"));
                command.arg("--operator-root-file").arg(root("operator"));
                command.env("ROWGATE_DATABASE_URL", self.server.url());
            }
        }
        let input = input.to_owned();
        let output = tokio::task::spawn_blocking(move || typed(command, &input)).await.expect("it runs");
        said(&output)
    }
}

impl Teams {
    async fn open(server: &Server) -> Teams {
        let cluster = Cluster::shared().await;
        let home = cluster.namespace().await;
        let namespaces = [cluster.namespace().await, cluster.namespace().await];
        let kubeconfig = home.kubeconfig_for(ACCOUNT).await;
        grant(&home).await;
        for namespace in &namespaces {
            // the operator's rights there, for its account at home
            let subject = |it: &Namespace<'_>| format!("\"namespace\":\"{}\"", it.name());
            let rights = rights(namespace.name()).replace(&subject(namespace), &subject(&home));
            namespace.put_all(&format!("{rights}---\n{}", team(namespace.name()))).await;
            let may =
                async || kubectl(&kubeconfig, &["--namespace", namespace.name(), "get", "apikeys"], "").ok();
            until("the operator's rights", may).await;
        }
        let kubeconfigs =
            [namespaces[0].kubeconfig_for("team").await, namespaces[1].kubeconfig_for("team").await];
        let both = namespaces.each_ref().map(Namespace::name).join(",");
        let flags = ["--namespace", &both];
        let operator = Operator::start_with(&kubeconfig, home.name(), &server.url(), "platform", &flags);
        let data_plane = operator.data_plane(&home, server).await;
        let scratch = Scratch::new();
        fs::create_dir(scratch.path().join("state")).expect("the folder is ours");
        for name in ["operator", "dataplane"] {
            let root = home.secret(&format!("rowgate-{name}-root")).await.expect("it was made");
            sweep::remember(root["root"].trim());
            let file = scratch.path().join(format!("state/{name}.root"));
            fs::write(file, &root["root"]).expect("the folder is ours");
        }
        let teams = Teams { namespaces, kubeconfigs, scratch, data_plane, operator };
        for team in [Team::A, Team::B] {
            let other = teams.namespaces[1 - team as usize].name();
            let may = async || teams.kubectl(team, &["get", "tenants,apikeys,events"], "").ok();
            until("the team's rights", may).await;
            let foreign = teams.kubectl(team, &["--namespace", other, "get", "tenants,events"], "");
            assert!(foreign.expect_err("it is not theirs").contains("forbidden"));
        }
        teams
    }

    /// kubectl as a team, which has rights in its namespace only.
    fn kubectl(&self, team: Team, arguments: &[&str], input: &str) -> Result<String, String> {
        kubectl(&self.kubeconfigs[team as usize], arguments, input)
    }
}

fn kubectl(kubeconfig: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut command = Command::new(tool("kubectl"));
    command.env("KUBECONFIG", kubeconfig).args(arguments);
    said(&typed(command, input))
}

/// Everything that a team does in its namespace, and nothing beyond it.
fn team(namespace: &str) -> String {
    let group = "rbac.authorization.k8s.io";
    format!(
        "apiVersion: {group}/v1\nkind: Role\nmetadata: {{name: team}}\nrules:\n\
         - {{apiGroups: ['', events.k8s.io, rowgate.dev], resources: ['*'], verbs: ['*']}}\n---\n\
         apiVersion: {group}/v1\nkind: RoleBinding\nmetadata: {{name: team}}\n\
         roleRef: {{apiGroup: {group}, kind: Role, name: team}}\n\
         subjects: [{{kind: ServiceAccount, name: team, namespace: {namespace}}}]\n"
    )
}

fn file(namespace: &str, kind: &str, name: &str) -> String {
    format!("{namespace}-{}-{name}.yaml", kind.to_lowercase())
}

fn typed(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it was built");
    // who does not ask reads nothing
    let _unread = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn said(output: &Output) -> Result<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
