//! A real `standalone` process over temporary folders, and what a test does with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::Signal;
use reqwest::StatusCode;
use rowgate_core::secret::{ApiKeySecret, ENTROPY_LEN};
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_standalone::roots;
use serde_json::Value;
use sqlx::PgConnection;

use crate::scratch::Scratch;
use crate::servers::data_plane::{DataPlane, send};
pub use crate::servers::ports::free_port;
use crate::servers::postgres::{BIN, Server, connect_to, seed, settings};
use crate::sweep;
use crate::wait::until;

mod founded;
mod published;
pub mod status;

/// A second tenant, `guest`, with nothing in it and the key `guest-key`.
pub const GUEST: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: guest}
spec: {database: {}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: guest-key}
spec: {tenantRef: {name: guest}}
";

/// Seconds. A look costs a seventh of a second of a core, and most tests end before the first one; a test that turns out to wait for it
/// is slow and does not fail.
pub const SELDOM: u32 = 15;

/// Folders, ports and the process. Everything ends with this value, or with the test process.
#[derive(Debug)]
pub struct World {
    scratch: Scratch,
    port: u16,
    probes: u16,
    child: Option<Child>,
    /// `None`: standalone starts a PostgreSQL of its own.
    database_url: Option<String>,
    /// The folder of the socket of that database.
    socket: Option<PathBuf>,
    /// With its port, as `--control` takes it.
    control: Option<PathBuf>,
    /// Further data planes.
    replicas: Vec<DataPlane>,
    /// After how many seconds everything is compared although nothing changed: [`SELDOM`], where a test asks for nothing else.
    pub resync_seconds: u32,
    /// The address that is listened on, without its port.
    pub host: &'static str,
}

/// An answer, read whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
}

impl World {
    /// Nothing runs yet, and the manifests are what `files` gives by name.
    pub async fn new(files: &[(&str, &str)]) -> World {
        let world = World::bare(files);
        seed(&world.state()).await;
        world
    }

    /// As [`World::new`], on a server that runs already.
    #[must_use]
    pub fn on(server: &Server, files: &[(&str, &str)]) -> World {
        World::bare(files).over(server, server.url())
    }

    fn bare(files: &[(&str, &str)]) -> World {
        let scratch = Scratch::new();
        fs::create_dir(scratch.path().join("manifests")).expect("the folder is ours");
        let world = World {
            scratch,
            port: free_port(),
            probes: free_port(),
            child: None,
            database_url: None,
            socket: None,
            control: None,
            replicas: Vec::new(),
            resync_seconds: SELDOM,
            host: "127.0.0.1",
        };
        for (name, text) in files {
            world.write(name, text);
        }
        world
    }

    /// Over this server, which it reaches at `url`.
    #[must_use]
    pub fn over(self, server: &Server, url: String) -> World {
        World {
            database_url: Some(url),
            socket: Some(server.socket()),
            control: Some(server.control()),
            ..self
        }
    }

    /// Everything is compared after so many seconds although nothing changed: what is done by hand is noticed.
    #[must_use]
    pub fn compared_every(self, seconds: u32) -> World {
        World { resync_seconds: seconds, ..self }
    }

    #[must_use]
    pub fn manifests(&self) -> PathBuf {
        self.scratch.path().join("manifests")
    }

    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    /// The folder above both, for whatever else a test needs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    #[must_use]
    pub fn probes_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.probes)
    }

    /// The process id of what runs.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it was started").id()
    }

    /// Writes a manifest as editors do: another file, renamed.
    pub fn write(&self, name: &str, text: &str) {
        let draft = self.scratch.path().join("draft");
        fs::write(&draft, text).expect("the folder is ours");
        fs::rename(&draft, self.manifests().join(name)).expect("the folder is ours");
    }

    /// Replaces `from`, which must stand there exactly once, in a manifest.
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.manifests().join(name)).expect("the manifest is there");
        assert_eq!(text.matches(from).count(), 1, "{from:?} in {name}");
        self.write(name, &text.replace(from, to));
    }

    /// The command line of this world, to be changed before it runs.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.arg("standalone").arg("--manifests").arg(self.manifests()).arg("--state").arg(self.state());
        command.arg("--listen").arg(format!("{}:{}", self.host, self.port));
        command.arg("--probes").arg(format!("127.0.0.1:{}", self.probes));
        command
            .arg("--ready-file")
            .arg(self.ready_file())
            .args(["--resync-seconds", &self.resync_seconds.to_string()]);
        if let Some(url) = &self.database_url {
            command.arg("--database-url").arg(url).env_remove(BIN);
        } else {
            for setting in settings::of_all() {
                command.arg("--postgres-setting").arg(setting);
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// Starts the process and waits until it has greeted.
    pub async fn start(&mut self) {
        self.start_with(|_| ()).await;
    }

    /// As [`World::start`], with further flags.
    pub async fn start_with(&mut self, change: impl FnOnce(&mut Command)) {
        self.spawn(change);
        self.greets().await;
    }

    /// Waits until the process has greeted.
    pub async fn greets(&mut self) {
        let ready = self.ready_file();
        until("the greeting of standalone", async || {
            let ended = self.child.as_mut().expect("it was spawned").try_wait().expect("it is our child");
            assert!(ended.is_none(), "standalone ended: {}", self.log());
            ready.exists().then_some(())
        })
        .await;
    }

    /// Starts the process and waits for nothing.
    pub fn spawn(&mut self, change: impl FnOnce(&mut Command)) {
        assert!(self.child.is_none(), "one process at a time in one state folder");
        // A file of an earlier run would say that this one is ready.
        let _absent = fs::remove_file(self.ready_file());
        let log = |name: &str| File::create(self.scratch.path().join(name)).expect("the folder is ours");
        let mut command = self.command();
        command.stdout(log("stdout")).stderr(log("stderr"));
        change(&mut command);
        let child = command.spawn().expect("the binary was built; `make test` builds it");
        self.scratch.adopt(child.id());
        self.child = Some(child);
    }

    /// What the process has written so far: the lines to paste, and then everything else.
    #[must_use]
    pub fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.scratch.path().join(name)).unwrap_or_default();
        format!("{}{}", read("stdout"), read("stderr"))
    }

    /// Waits until the process has written `text`.
    pub async fn says(&self, text: &str) {
        until(&format!("{text:?} in {}", self.scratch.path().display()), async || {
            self.log().contains(text).then_some(())
        })
        .await;
    }

    /// SIGTERM, and the end of the process.
    pub async fn stop(&mut self) -> ExitStatus {
        self.end(Signal::SIGTERM).await
    }

    /// SIGKILL. PostgreSQL goes on.
    pub async fn kill(&mut self) -> ExitStatus {
        self.end(Signal::SIGKILL).await
    }

    async fn end(&mut self, signal: Signal) -> ExitStatus {
        send(self.pid(), signal);
        self.ended().await
    }

    /// Waits until the process has ended by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it was started");
        let status =
            until("the end of standalone", async || child.try_wait().expect("it is our child")).await;
        self.scratch.forget(child.id());
        status
    }

    /// Starts one more data plane over the same control database, and gives its address once it is ready. It ends with
    /// this world.
    pub async fn serve(&mut self) -> String {
        let replica = self.replica().await;
        let url = replica.url().to_owned();
        self.replicas.push(replica);
        url
    }

    /// As [`World::serve`], for tests that end it or send it signals.
    pub async fn replica(&self) -> DataPlane {
        self.replica_of(&binary()).await
    }

    /// As [`World::replica`], of another build.
    pub async fn replica_of(&self, program: &Path) -> DataPlane {
        let control = self.control.clone().unwrap_or_else(|| self.socket());
        DataPlane::start_of(program, &control, &self.state().join("dataplane.root")).await
    }

    /// As [`World::replica`], with further flags.
    pub async fn replica_with(&self, change: impl FnOnce(&mut Command)) -> DataPlane {
        let control = self.control.clone().unwrap_or_else(|| self.socket());
        DataPlane::start_with(&control, &self.state().join("dataplane.root"), change).await
    }

    /// Where the PostgreSQL is that standalone uses, as `--control` takes it.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| {
            let note = fs::read_to_string(self.state().join("postgres/data/postmaster.pid"));
            PathBuf::from(note.expect("PostgreSQL runs").lines().nth(4).expect("the folder of the socket"))
        })
    }

    /// The superuser in a database of the PostgreSQL that standalone started, or in that of the tenant with this slug.
    pub async fn superuser(&self, database: &str) -> PgConnection {
        let state = self.state();
        let root = roots::load_or_make(&state.join("superuser.root")).expect("standalone has made it");
        let note = fs::read_to_string(state.join("postgres/data/postmaster.pid")).expect("it runs");
        let line = |n: usize| note.lines().nth(n).expect("a published server");
        let login = Login {
            endpoint: Endpoint::Unix {
                directory: line(4).into(),
                port: line(3).parse().expect("the port's number"),
            },
            database: database.to_owned(),
            role: "rowgate_superuser".to_owned(),
            password: root.password("bootstrap", "rowgate_superuser", 1),
        };
        connect_to(&login).await
    }

    /// `GET` with a key. `path` begins after the address.
    pub async fn get(&self, key: &str, path: &str) -> Answer {
        get(&format!("{}{path}", self.url()), key).await
    }

    fn ready_file(&self) -> PathBuf {
        self.scratch.path().join("ready.json")
    }
}

/// `GET` with a key from any process.
pub async fn get(url: &str, key: &str) -> Answer {
    let response = reqwest::Client::new().get(url).header("X-API-Key", key).send().await;
    let response = response.unwrap_or_else(|error| panic!("GET {url}: {error}"));
    let status = response.status();
    let headers = format!("{:?}", response.headers());
    let text = response.text().await.unwrap_or_else(|error| panic!("GET {url}: {error}"));
    sweep::answer(url, &headers, &text);
    let body = if text.is_empty() { Ok(Value::Null) } else { serde_json::from_str(&text) };
    Answer { status, body: body.unwrap_or_else(|_| panic!("GET {url}: {status} {text}")) }
}

/// A well-formed key of a tenant that is no key of any.
#[must_use]
pub fn invented(tenant: &str) -> String {
    ApiKeySecret::generate(&[3; ENTROPY_LEN]).reveal(&tenant.parse().expect("a slug"))
}

/// The program under test: `ROWGATE_BIN`, or what the same build left two folders above the test.
#[must_use]
pub fn binary() -> PathBuf {
    program("ROWGATE_BIN", "rowgate-dataplane")
}

/// The program that an environment variable names, or the one called `name` beside the test.
#[must_use]
pub fn program(variable: &str, name: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().expect("a running test has a path");
    let folder = test.parent().and_then(Path::parent).expect("target/debug/deps");
    folder.join(name)
}

/// The folder `examples`.
#[must_use]
pub fn examples() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests stand in the workspace").join("examples")
}
