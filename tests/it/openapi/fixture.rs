//! The shop, and a tenant with a column of every type, with the documents of their keys.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::world::World;
use serde_json::Value;

use crate::keys::tokens::clients::{packages, tests};

/// A key, the tenant that it is of, and nothing that the tests have of it besides.
pub(crate) const KEYS: [(&str, &str); 5] =
    [("shop", "shop-admin"), ("shop", "north"), ("shop", "south"), ("types", "all-types"), ("types", "few")];

pub(crate) struct Fixture {
    pub(crate) world: World,
    client: Client,
}

impl Fixture {
    pub(crate) async fn open() -> Fixture {
        let types = include_str!("types.yaml");
        let mut world = World::founded_shop_with(|world| world.write("types.yaml", types)).await;
        world.start().await;
        Fixture { world, client: Client::new() }
    }

    /// The address of a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.world.url())
    }

    pub(super) async fn ask(&self, key: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(key, method, path, headers, "").await
    }

    pub(super) async fn send(
        &self,
        key: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let key = self.world.key(key);
        let own = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        let headers: Vec<_> = own.into_iter().chain(headers.iter().copied()).collect();
        self.client.send(method, &self.url(path), &headers, body).await
    }

    /// The document of a key of the tenant.
    pub(super) async fn document(&self, tenant: &str, key: &str) -> Value {
        let reply = self.ask(key, "GET", &format!("/auth/{tenant}/openapi.json"), &[]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }
}

/// Runs a script of `tests/clients/openapi` with Python, which is given `input` and prints JSON.
pub(super) fn python(script: &str, input: &Value) -> Value {
    let start = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2])";
    let mut command = Command::new("python3");
    command.args(["-I", "-B", "-c", start]).arg(packages().join("python"));
    let output = run(command.arg(tests().join("clients/openapi").join(script)), &input.to_string());
    // what the tools print stands before it
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    serde_json::from_str(text.lines().last().unwrap_or_default()).expect("it prints JSON")
}

/// Runs a script of `tests/clients` with Node.js, which is given the packages, a folder to work in, `arguments` and `input`.
pub(crate) fn node(script: &str, work: &Path, arguments: &[&str], input: &str) -> Value {
    let mut command = Command::new("node");
    command.arg(tests().join("clients").join(script)).arg(packages()).arg(work).args(arguments);
    serde_json::from_slice(&run(&mut command, input).stdout).expect("it prints JSON")
}

pub(crate) fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("tests/setup/clients.sh found it");
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{} failed; what it said stands above; {printed}",
        command.get_program().display()
    );
    output
}
