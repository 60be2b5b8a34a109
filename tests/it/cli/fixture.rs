//! A tenant with 250 orders of two regions, and `rowgate` as a person or a script runs it, with a home folder of its own.
//! `all` is unscoped; `north` reads three columns of the orders of its region.

use std::fs;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::world::{World, program};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

const TENANT: &str = include_str!("tenant.yaml");

pub(super) struct Desk {
    pub(super) world: World,
    /// Not below the world's folder: that is searched for keys, and profiles hold some.
    home: TempDir,
}

/// What a run has printed, and how it ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A run that goes on, and is killed with this value.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) stdout: Lines<BufReader<ChildStdout>>,
    pub(super) stderr: Lines<BufReader<ChildStderr>>,
}

impl Desk {
    /// Webhooks may go to this machine.
    pub(super) async fn open() -> Desk {
        let mut desk = Desk { world: World::founded(&[("desk.yaml", TENANT)]).await, home: home() };
        desk.start().await;
        desk
    }

    pub(super) async fn start(&mut self) {
        self.world
            .start_with(|command| {
                command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
            })
            .await;
    }

    /// As the superuser.
    pub(super) async fn sql(&self, script: &str) {
        execute(&mut self.world.superuser("desk").await, script).await;
    }

    /// What the superuser sees.
    pub(super) async fn seen(&self, query: &str) -> Value {
        Value::Array(rows(&mut self.world.superuser("desk").await, query).await)
    }

    /// With the server and this key in the environment, as scripts have them.
    pub(super) fn command(&self, key: &str, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        command.env("ROWGATE_URL", self.world.url()).env("ROWGATE_KEY", self.world.key(key));
        command
    }

    /// Without either: profiles count.
    pub(super) fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("ROWGATE_CLI_BIN", "rowgate"));
        command.args(arguments).env_clear().env("HOME", self.home.path());
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Where profiles stand.
    pub(super) fn profiles(&self) -> PathBuf {
        self.home.path().join(".config/rowgate/profiles.json")
    }

    /// A file for the command line.
    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, text).expect("the folder is ours");
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    pub(super) async fn run(&self, key: &str, arguments: &[&str]) -> Done {
        done(self.command(key, arguments)).await
    }

    /// Standard output of a run that succeeds and has nothing to note.
    pub(super) async fn prints(&self, key: &str, arguments: &[&str]) -> String {
        let Done { code, stdout, stderr } = self.run(key, arguments).await;
        assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}: {stdout}");
        stdout
    }

    /// As [`Desk::prints`], of JSON.
    pub(super) async fn json(&self, key: &str, arguments: &[&str]) -> Value {
        let stdout = self.prints(key, arguments).await;
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error} in {stdout}"))
    }

    /// What a run that fails says, with the exit code in front. The id of the request differs and is left out. Nothing stands
    /// on standard output.
    pub(super) async fn fails(&self, key: &str, arguments: &[&str]) -> String {
        failure(&self.run(key, arguments).await)
    }

    pub(super) fn spawn(&self, key: &str, arguments: &[&str]) -> Running {
        let mut command = self.command(key, arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built");
        let stdout = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        let stderr = BufReader::new(child.stderr.take().expect("it is a pipe")).lines();
        Running { child, stdout, stderr }
    }
}

impl Running {
    /// Ctrl-C, and the exit code.
    pub(super) async fn interrupt(&mut self) -> Option<i32> {
        let pid = i32::try_from(self.child.id().expect("it runs")).expect("process ids are positive");
        kill(Pid::from_raw(pid), Signal::SIGINT).expect("it is our child");
        self.child.wait().await.expect("it is our child").code()
    }
}

fn home() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// See [`Desk::fails`].
pub(super) fn failure(done: &Done) -> String {
    assert_eq!(done.stdout, "", "{done:?}");
    let lines = done.stderr.lines().filter(|line| !line.starts_with("  request id: "));
    format!("{} {}", done.code, lines.collect::<Vec<_>>().join("\n"))
}

/// Runs it to its end. No key stands in what it prints.
pub(super) async fn done(mut command: Command) -> Done {
    let output = command.output().await.expect("the binary was built; `make test` builds it");
    checked(output)
}

/// As [`done`], with this text on standard input.
pub(super) async fn done_with(mut command: Command, input: &str) -> Done {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it was built");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    // a program that needs no input may have closed it
    let _closed = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    checked(child.wait_with_output().await.expect("it runs"))
}

fn checked(output: Output) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    let code = output.status.code().unwrap_or_else(|| panic!("{:?}", output.status));
    let done = Done { code, stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!secretive(&done.stdout) && !secretive(&done.stderr), "a key is printed: {done:?}");
    done
}

/// Whether a key stands in a text. `dlk_...` is how messages describe one.
pub(super) fn secretive(text: &str) -> bool {
    text.split("dlk_").skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// The next line.
pub(super) async fn line<R: tokio::io::AsyncBufRead + Unpin>(lines: &mut Lines<R>) -> String {
    let next = timeout(rowgate_tests::wait::DEADLINE, lines.next_line()).await;
    next.expect("a line within the deadline").expect("it is text").expect("it goes on")
}
