//! The programs of tests/apps, which are an application of a registry: its migrations, a client that writes all the time, COPY.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rowgate_tests::servers::setup;
use rowgate_tests::wait::DEADLINE;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// An application, its database and its role, which have the same name.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) schema: &'static str,
    pub(super) port: u16,
}

/// A client that writes, and notices each error and each statement that touches another number of rows than before. It is killed with
/// this value.
pub(super) struct Writer {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// What it has said of errors and wrong counts.
    noticed: Vec<String>,
}

fn tests() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the packages of the applications are.
fn packages() -> PathBuf {
    setup::path("apps.sh", &[])
}

impl Program {
    fn command(&self, action: &str) -> Command {
        let (packages, apps) = (packages(), tests().join("apps"));
        let mut command = match self.name {
            "wagtail" => {
                let mut command = Command::new("python3");
                command.arg(apps.join("wagtail/main.py")).env("PYTHONPATH", packages.join("python"));
                command
            }
            _ => {
                let mut command = Command::new("node");
                command.arg(apps.join("unleash/main.mjs")).env("ROWGATE_APPS", packages);
                command
            }
        };
        command.arg(action).env("APP_SCHEMA", self.schema).kill_on_drop(true);
        self.reaches(&mut command);
        command
    }

    /// Tells a program of PostgreSQL's or of the application's where the database is, as the application's role.
    pub(super) fn reaches(&self, command: &mut Command) {
        command.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string());
        command.env("PGDATABASE", self.name).env("PGUSER", self.name).env("PGPASSWORD", self.name);
    }

    /// Makes the tables, and says how many.
    pub(super) async fn migrate(&self) -> u64 {
        self.run("migrate").await["tables"].as_u64().expect("a number")
    }

    /// COPY of a table out and in, as the application's role.
    pub(super) async fn copy(&self) {
        let copied = self.run("copy").await;
        assert!(0 < copied["out"].as_u64().expect("a number"), "{copied}");
    }

    async fn run(&self, action: &str) -> Value {
        let printed = printed(self.command(action)).await;
        serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{}, {action}: {printed}", self.name))
    }

    pub(super) fn write(&self) -> Writer {
        let mut command = self.command("write");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was found before");
        let stdin = child.stdin.take().expect("it is a pipe");
        let lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        Writer { child, stdin, lines, noticed: Vec::new() }
    }
}

/// The standard output of a program that ends well.
pub(super) async fn printed(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).output();
    let output = timeout(DEADLINE, output).await.expect("it ends in time").expect("it was found before");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}: {stdout}{stderr}", command.as_std().get_program());
    stdout.into_owned()
}

impl Writer {
    /// Returns when it knows what each statement does.
    pub(super) async fn compares(&mut self) {
        while next(&mut self.lines, &mut self.noticed).await.expect("it goes on")["compared"] != true {}
    }

    /// Ends it; it has noticed nothing. Returns how many statements it wrote.
    pub(super) async fn ends_well(self) -> u64 {
        let Writer { mut child, stdin, mut lines, mut noticed } = self;
        drop(stdin);
        let mut last = Value::Null;
        while let Some(line) = next(&mut lines, &mut noticed).await {
            last = line;
        }
        let status = timeout(DEADLINE, child.wait()).await.expect("it ends").expect("it is our child");
        assert!(noticed.is_empty(), "{}", noticed.join("\n"));
        assert!(status.success() && last["done"] == true && last["compared"] == true, "{status}: {last}");
        assert!(last["errors"] == 0 && last["wrong_counts"] == 0, "{last}");
        last["writes"].as_u64().expect("a number")
    }
}

/// The next line of a client, which prints one each second; `None` after the last. What it has noticed is added to `noticed`.
async fn next(lines: &mut Lines<BufReader<ChildStdout>>, noticed: &mut Vec<String>) -> Option<Value> {
    let line = timeout(DEADLINE, lines.next_line()).await.expect("a line each second").expect("UTF-8")?;
    let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
    for name in ["errors", "wrong_counts"] {
        noticed.extend(line[name].as_array().into_iter().flatten().map(ToString::to_string));
    }
    Some(line)
}
