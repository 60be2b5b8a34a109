//! Real PostgreSQL servers for tests, started by the product's own launcher.
//!
//! `initdb` runs once per machine; every cluster is a copy of its result, so a fresh one costs half a second. Copies
//! share their system identifier.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::connect::login::Login;
use rowgate_pg::wire::Sessions;
use rowgate_standalone::postgres::{Binaries, Postgres, PostgresConfig, SESSION_MEMORY, binaries};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Executor as _};
use tokio::sync::OnceCell;

use crate::scratch::Scratch;
use crate::servers::pooler::{ASKER, Pooler};
use crate::servers::setup;
use crate::servers::tls::{self, Authority, Issued, Validity};
use crate::sweep;
use crate::wait::until;
use crate::world::free_port;

mod adopting;
pub mod settings;
mod stopping;
mod template;
mod upgrade;

pub use settings::QUICK;
pub(crate) use template::copy;
pub use template::seed;
pub use upgrade::Programs;

/// The environment variable that says how tests reach their servers; without it, by a Unix socket.
pub const OVER: &str = "ROWGATE_TESTS_OVER";

/// The folder of the PostgreSQL to test with, where one was named; without it, what standalone finds. Processes that
/// tests start inherit it: it is the variable of `--postgres-bin`.
pub const BIN: &str = "ROWGATE_POSTGRES_BIN";

/// A server that ends with this value, or with the test process.
#[derive(Debug)]
pub struct Server {
    postgres: Postgres,
    wish: PostgresConfig,
    scratch: Scratch,
    tls: Option<Endpoint>,
    pooler: Option<Pooler>,
}

/// The one server that tests share. Roles are cluster-wide and a cluster takes one installation: use
/// [`Server::own`] for a test that founds one. It never ends, so each test looks at what those before it left there.
pub async fn shared() -> &'static Server {
    static SHARED: OnceCell<Server> = OnceCell::const_new();
    let server = SHARED.get_or_init(Server::own).await;
    let leaks = sweep::look(server.scratch.path());
    assert!(leaks.is_empty(), "a test that used the shared server before left secrets: {}", leaks.join("; "));
    server
}

impl Server {
    /// A fresh cluster.
    pub async fn own() -> Server {
        Server::with(&[]).await
    }

    /// A fresh cluster with further server settings, such as `log_statement=all`.
    pub async fn with(settings: &[&str]) -> Server {
        match std::env::var(OVER).as_deref() {
            Ok("tls") => {
                let authority = Authority::new();
                Server::with_tls(settings, &authority, &authority.issue("localhost", Validity::Now)).await
            }
            Ok("pgbouncer") => Server::with_pooler(settings, 20).await,
            Ok(other) => panic!("{OVER}: there is no way {other:?} to a server"),
            Err(_) => Server::start(settings, Scratch::new()).await,
        }
    }

    /// As [`Server::with`], which listens on TCP too and shows this certificate there.
    pub async fn with_tls(settings: &[&str], authority: &Authority, certificate: &Issued) -> Server {
        let (server, port) = Server::on_tcp(settings, "hostssl").await;
        server.with_certificate(port, authority, certificate).await
    }

    /// As [`Server::with_tls`], initialised by itself; `bin`: as in [`Server::of_its_own_cluster_of`].
    pub async fn of_its_own_cluster_with_tls(
        bin: Option<PathBuf>,
        authority: &Authority,
        certificate: &Issued,
    ) -> Server {
        let scratch = Scratch::new();
        make_state(&scratch);
        let (server, port) = Server::on_tcp_of(&[], "hostssl", scratch, bin).await;
        server.with_certificate(port, authority, certificate).await
    }

    async fn with_certificate(mut self, port: u16, authority: &Authority, certificate: &Issued) -> Server {
        let server = &mut self;
        tls::install(&server.postgres, certificate);
        let mut superuser = server.connect("postgres").await;
        execute(&mut superuser, "alter system set ssl = on").await;
        execute(&mut superuser, "select pg_reload_conf()").await;
        until("TLS", async || tls::offered(port).await.then_some(())).await;
        server.tls = Some(authority.endpoint("localhost", port));
        self
    }

    /// Shows another certificate to whoever connects from now on.
    pub async fn show(&self, certificate: &Issued) {
        tls::install(&self.postgres, certificate);
        execute(&mut self.connect("postgres").await, "select pg_reload_conf()").await;
    }

    /// Checks the certificates that clients show against this authority, where pg_hba.conf asks for one.
    pub async fn take_clients_of(&self, authority: &Authority) {
        tls::install_authority(&self.postgres, authority);
        let mut superuser = self.connect("postgres").await;
        execute(&mut superuser, "alter system set ssl_ca_file = 'ca.crt'").await;
        execute(&mut superuser, "select pg_reload_conf()").await;
    }

    /// Replaces pg_hba.conf of a server that listens on a port, and returns when new connections are judged by it.
    pub async fn set_hba(&self, lines: &str) {
        fs::write(self.scratch.path().join("pg_hba.conf"), lines).expect("the folder is ours");
        let mut superuser = self.connect("postgres").await;
        let loaded = "select pg_conf_load_time()::text";
        let load_time = async |conn: &mut PgConnection| {
            sqlx::query_scalar::<_, String>(loaded)
                .fetch_one(conn)
                .await
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let before = load_time(&mut superuser).await;
        execute(&mut superuser, "select pg_reload_conf()").await;
        until("another pg_hba.conf", async || {
            // each new session is told by the postmaster
            (load_time(&mut self.connect("postgres").await).await != before).then_some(())
        })
        .await;
    }

    /// A PgBouncer that knows nobody and asks for nobody, before the port of this server.
    pub async fn unasking_pooler(&self) -> Pooler {
        let mut superuser = self.connect("postgres").await;
        execute(&mut superuser, &format!("create role {ASKER} login superuser password '{ASKER}'")).await;
        Pooler::unasking(self.port(), self.data()).await
    }

    /// The port that it listens on, where it does.
    #[must_use]
    pub fn port(&self) -> u16 {
        let Endpoint::Unix { port, .. } = self.endpoint() else { panic!("it has a socket") };
        *port
    }

    /// As [`Server::with`], with a PgBouncer before it that opens `n_sessions` for each database and role.
    pub async fn with_pooler(settings: &[&str], n_sessions: usize) -> Server {
        let (mut server, port) = Server::on_tcp(settings, "host").await;
        let mut superuser = server.connect("postgres").await;
        execute(&mut superuser, &format!("create role {ASKER} login superuser password '{ASKER}'")).await;
        server.pooler = Some(Pooler::before(port, server.postgres.data(), n_sessions).await);
        server
    }

    /// As [`Server::with`], with its superuser's address by TCP on loopback beside the one by its socket: the log tells who
    /// came which way.
    pub async fn with_two_ways(settings: &[&str]) -> (Server, String) {
        let (server, port) = Server::on_tcp(settings, "host").await;
        let login = server.superuser("postgres");
        let (role, password) = (&login.role, login.password.reveal());
        let url = format!("postgres://{role}:{password}@127.0.0.1:{port}/postgres?sslmode=disable");
        (server, url)
    }

    /// As [`Server::with_two_ways`], initialised by itself: all others are copies of one cluster, whose system identifier they have.
    pub async fn of_its_own_cluster() -> (Server, String) {
        let scratch = Scratch::new();
        make_state(&scratch);
        let (server, port) = Server::on_tcp_of(&[], "host", scratch, bin()).await;
        let login = server.superuser("postgres");
        let (role, password) = (&login.role, login.password.reveal());
        let url = format!("postgres://{role}:{password}@127.0.0.1:{port}/postgres?sslmode=disable");
        (server, url)
    }

    /// As [`Server::with`], which listens on a port of loopback too, for connections of this kind of pg_hba.conf.
    async fn on_tcp(settings: &[&str], kind: &str) -> (Server, u16) {
        Server::on_tcp_of(settings, kind, Scratch::new(), bin()).await
    }

    /// `bin`: the folder of its programs; `None`: what is found.
    async fn on_tcp_of(
        settings: &[&str],
        kind: &str,
        scratch: Scratch,
        bin: Option<PathBuf>,
    ) -> (Server, u16) {
        let (port, hba) = (free_port(), scratch.path().join("pg_hba.conf"));
        let lines = format!("local all all scram-sha-256\n{kind} all all all scram-sha-256\n");
        fs::write(&hba, lines).expect("the folder is ours");
        let own = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            format!("hba_file={}", hba.display()),
        ];
        let settings: Vec<&str> = own.iter().map(String::as_str).chain(settings.iter().copied()).collect();
        (Server::start_of(&settings, scratch, bin).await, port)
    }

    /// How requests of the product are to reach it: by its socket, by a pooler's where it has one, or, where it has a
    /// certificate, by TCP and TLS.
    #[must_use]
    pub fn way(&self) -> Endpoint {
        let pooler = self.pooler.as_ref().map(Pooler::endpoint);
        pooler.or_else(|| self.tls.clone()).unwrap_or_else(|| self.endpoint().clone())
    }

    /// Whose sessions are found there.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        if self.pooler.is_some() { Sessions::Pooled } else { Sessions::Own }
    }

    async fn start(settings: &[&str], scratch: Scratch) -> Server {
        Server::start_of(settings, scratch, bin()).await
    }

    async fn start_of(settings: &[&str], scratch: Scratch, bin: Option<PathBuf>) -> Server {
        let state = scratch.path().join("state");
        // a folder that is there is a cluster's that is initialised by itself
        if !state.exists() {
            seed(&state).await;
        }
        let settings =
            settings::of_all().into_iter().chain(settings.iter().map(ToString::to_string)).collect();
        let wish = PostgresConfig { state, bin, settings, session_memory: SESSION_MEMORY };
        let postgres = Postgres::start(&wish, &|_| ()).await.unwrap_or_else(|error| panic!("{error}"));
        Server { postgres, wish, scratch, tls: None, pooler: None }
    }

    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.postgres.superuser().endpoint
    }

    /// The superuser on `database`.
    #[must_use]
    pub fn superuser(&self, database: &str) -> Login {
        Login { database: database.to_owned(), ..self.postgres.superuser().clone() }
    }

    /// The superuser as an address for `--database-url`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_in(&self.socket())
    }

    /// As [`Server::url`], by way of a socket of the same name in another folder: for a test that stands between.
    #[must_use]
    pub fn url_in(&self, folder: &Path) -> String {
        let login = self.superuser("postgres");
        let Endpoint::Unix { port, .. } = &login.endpoint else { panic!("it has a socket") };
        let (role, password) = (&login.role, login.password.reveal());
        format!("postgres://{role}:{password}@/postgres?host={}&port={port}", folder.display())
    }

    /// The folder of its socket, as `--control` takes it.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        let Endpoint::Unix { directory, .. } = self.endpoint() else { panic!("test servers have no TCP") };
        directory.clone()
    }

    /// Folder and port of its socket, as `--control` takes them.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        format!("{}:{}", self.socket().display(), self.port()).into()
    }

    /// A connection of the superuser to a database, or else to that of the tenant with this slug.
    pub async fn connect(&self, name: &str) -> PgConnection {
        connect_to(&self.superuser(name)).await
    }

    /// A fresh empty database, for tests that need no installation.
    pub async fn database(&self, name: &str) -> PgConnection {
        let mut connection = self.connect("postgres").await;
        execute(&mut connection, &format!("create database {name}")).await;
        self.connect(name).await
    }

    /// The folder of its data.
    #[must_use]
    pub fn data(&self) -> &Path {
        self.postgres.data()
    }

    /// The process id of the postmaster.
    #[must_use]
    pub fn pid(&self) -> u32 {
        let note = fs::read_to_string(self.scratch.path().join("state/postgres/data/postmaster.pid"));
        let note = note.expect("PostgreSQL runs");
        note.lines().next().and_then(|line| line.parse().ok()).expect("the first line is its process id")
    }

    /// Everything that the server has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.postgres.log()).expect("the server writes its log from the start")
    }
}

/// A state folder without a cluster, which PostgreSQL may enter as the user that it runs as.
fn make_state(scratch: &Scratch) {
    let state = scratch.path().join("state");
    fs::create_dir(&state).expect("the folder is ours");
    fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o711)).expect("it is ours");
}

/// A plain connection as any role, for looking at the database from outside the product.
pub async fn connect(login: &Login) -> Result<PgConnection, sqlx::Error> {
    let options = PgConnectOptions::new_without_pgpass()
        .username(&login.role)
        .password(login.password.reveal())
        .database(&login.database);
    let options = match &login.endpoint {
        Endpoint::Unix { directory, port } => options.socket(directory).port(*port),
        Endpoint::Tcp { .. } => panic!("from outside it is looked at through its socket"),
    };
    options.connect().await
}

/// As [`connect`], where the name of the database may be the slug of a tenant instead: its own name says nothing.
pub async fn connect_to(login: &Login) -> PgConnection {
    let error = match connect(login).await {
        Ok(connection) => return connection,
        Err(error) => error,
    };
    let is_absent = error.as_database_error().and_then(|it| it.code()).is_some_and(|code| code == "3D000");
    assert!(is_absent, "{error}");
    let control = Login { database: "rowgate".to_owned(), ..login.clone() };
    let mut control = connect(&control).await.unwrap_or_else(|_| panic!("{error}"));
    let find =
        sqlx::query_scalar("select database from control.tenants where slug = $1").bind(&login.database);
    let database: Option<String> =
        find.fetch_optional(&mut control).await.unwrap_or_else(|_| panic!("{error}"));
    let database = database.unwrap_or_else(|| panic!("{error}"));
    connect(&Login { database, ..login.clone() }).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a script that the test itself wrote, and fails with PostgreSQL's message.
pub async fn execute(connection: &mut PgConnection, script: &str) {
    attempt(connection, script).await.unwrap_or_else(|error| panic!("{error}: {script}"));
}

/// As [`execute`], for statements whose refusal is what the test wants to see.
#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
pub async fn attempt(connection: &mut PgConnection, script: &str) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(script.to_owned()))).await.map(|_| ())
}

/// The rows of a query that the test itself wrote, as PostgreSQL turns them into JSON, in UTC.
#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
pub async fn rows(connection: &mut PgConnection, query: &str) -> Vec<serde_json::Value> {
    execute(connection, "set timezone = 'UTC'").await;
    let text = format!("select to_jsonb(t) from ({query}) as t");
    let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(text)).fetch_all(connection).await;
    rows.unwrap_or_else(|error| panic!("{error}: {query}"))
}

/// The folder that [`BIN`] names.
#[must_use]
pub fn bin() -> Option<PathBuf> {
    std::env::var_os(BIN).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The folder of the programs of the pinned PostgreSQL of a major version.
#[must_use]
pub fn pinned(major: u32) -> PathBuf {
    setup::path("postgres.sh", &[&major.to_string()])
}

/// The PostgreSQL that this run of the tests is about.
#[must_use]
pub fn binaries() -> Binaries {
    binaries::find(bin().as_deref()).unwrap_or_else(|error| panic!("{error}"))
}

/// The major version of [`binaries()`], for tests of what an older PostgreSQL has not.
#[must_use]
pub fn major() -> u32 {
    static MAJOR: LazyLock<u32> = LazyLock::new(|| binaries().version.major);
    *MAJOR
}
