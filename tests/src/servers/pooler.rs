//! A real PgBouncer in transaction mode before a server of a test.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use rowgate_pg::connect::login::Endpoint;
use rowgate_standalone::postgres::binaries;
use tokio::net::UnixStream;

use crate::scratch::Scratch;
use crate::servers::data_plane::send;
use crate::wait::until;

/// The port of its socket's name.
const PORT: u16 = 6432;

/// The role, and its password, as which it asks the server for verifiers.
pub(crate) const ASKER: &str = "pooler_asks";

/// The settings with which it asks.
const ASKS: &str = "auth_user = pooler_asks\n\
                    auth_query = select usename, passwd from pg_catalog.pg_shadow where usename = $1\n";

/// The process ends with this value, or with the test process.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    scratch: Scratch,
}

impl Pooler {
    /// Starts one before the server on this port of loopback, run by the owner of its `data`: it refuses to run as root. A database and role get
    /// `n_sessions` sessions at most. It asks the server for SCRAM verifiers, and passes on what clients prove, so that it
    /// knows no password of ours.
    pub(crate) async fn before(port: u16, data: &Path, n_sessions: usize) -> Pooler {
        Pooler::start(&format!("{}{ASKS}", settings(port, n_sessions)), data).await
    }

    /// As [`Pooler::before`], without the settings with which it asks for verifiers: it knows nobody.
    pub(crate) async fn unasking(port: u16, data: &Path) -> Pooler {
        Pooler::start(&settings(port, 5), data).await
    }

    /// From now on it asks for verifiers.
    pub fn asks(&self) {
        let path = self.scratch.path().join("pooler/settings");
        let mut file = fs::File::options().append(true).open(path).expect("it was made before it");
        file.write_all(ASKS.as_bytes()).expect("the folder is ours");
        send(self.child.id(), Signal::SIGHUP);
    }

    async fn start(settings: &str, data: &Path) -> Pooler {
        let scratch = Scratch::new();
        let folder = scratch.path().join("pooler");
        fs::create_dir(&folder).expect("the folder is ours");
        let users = format!("\"{ASKER}\" \"{ASKER}\"\n");
        let settings = settings.replace("OWN", &folder.display().to_string());
        let log = fs::File::create(folder.join("log")).expect("the folder is ours");
        let owner = fs::metadata(data).expect("it runs there");
        for (name, text) in [("users", users), ("settings", settings)] {
            fs::write(folder.join(name), text).expect("the folder is ours");
            chown(folder.join(name), Some(owner.uid()), Some(owner.gid())).expect("it is ours");
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).expect("it is ours");
        }
        chown(&folder, Some(owner.uid()), Some(owner.gid())).expect("it is ours");
        let program = reachable(program(), &scratch);
        let mut command = Command::new(&program);
        command.arg("--quiet").arg(folder.join("settings")).current_dir("/");
        if program.starts_with(scratch.path()) {
            command.env("LD_LIBRARY_PATH", program.parent().expect("it stands in a folder"));
        }
        if nix::unistd::geteuid().is_root() {
            command.uid(owner.uid()).gid(owner.gid());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        scratch.adopt(child.id());
        until("PgBouncer's socket", async || {
            let ended = child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "PgBouncer ended: {:?}", fs::read_to_string(folder.join("log")));
            UnixStream::connect(folder.join(format!(".s.PGSQL.{PORT}"))).await.ok()
        })
        .await;
        Pooler { child, scratch }
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Unix { directory: self.scratch.path().join("pooler"), port: PORT }
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("pooler/log")).expect("it was made before it")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Nothing of it is wanted any more; what cannot be ended ends with its folder.
        let _killed = self.child.kill();
        let _status = self.child.wait();
        self.scratch.forget(self.child.id());
    }
}

/// What stands in the cache is copied, with its libraries: the cache may be below a private home, where the user that
/// runs it cannot go. It is copied on every machine, so that none of them hides what fails on another.
fn reachable(program: PathBuf, scratch: &Scratch) -> PathBuf {
    if !program.starts_with(binaries::cache()) {
        return program;
    }
    let copy = scratch.path().join("pgbouncer");
    let whole = program.parent().expect("it stands in a folder");
    let status = Command::new("cp").arg("-R").arg(whole).arg(&copy).status().expect("cp runs");
    assert!(status.success(), "cp of PgBouncer failed");
    copy.join("pgbouncer")
}

/// `OWN` is its folder.
fn settings(port: u16, n_sessions: usize) -> String {
    format!(
        "[databases]\n* = host=127.0.0.1 port={port}\n[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\n\
         unix_socket_dir = OWN\npool_mode = transaction\ndefault_pool_size = {n_sessions}\n\
         query_wait_timeout = 2\nserver_login_retry = 1\nauth_type = scram-sha-256\nauth_file = OWN/users\n"
    )
}

/// The installed one, or Debian's in the cache.
fn program() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("setup/pgbouncer.sh");
    let output = Command::new(script).stderr(Stdio::inherit()).output().expect("a shell script runs");
    assert!(output.status.success(), "tests/setup/pgbouncer.sh failed; what it said stands above");
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
}
