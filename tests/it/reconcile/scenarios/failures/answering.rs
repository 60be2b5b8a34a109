//! `Ready` is true only while requests are answered: a database that lets the data plane's login in otherwise than by SCRAM, or not
//! at all, is told with what to change, and nothing is restarted when that was done.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rowgate_pg::connect::login::Endpoint;
use rowgate_tests::client::Client;
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::servers::tls::{Authority, Validity};
use rowgate_tests::stage::{DONE, On, Stage, Wish};
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::get;
use rowgate_tests::world::status::{holds, ready};
use serde_json::Value;
use sqlx::PgConnection;

use super::messages::event;
use crate::reconcile::acme::{SPEC, keys, tenant};
use crate::reconcile::scenarios::NOTES;

scenarios!(
    ready_waits_until_requests_are_answered_and_says_what_to_change,
    a_replica_that_cannot_connect_holds_ready_back_while_others_serve
);

/// As the servers of tests are.
const SCRAM: &str = "local all all scram-sha-256\nhost all all all scram-sha-256\n";
/// The login of requests alone.
const AUTH: &str = "\"/^t[0-9a-z]+_auth$\"";

/// A name, the lines before [`SCRAM`], and what is said.
const CASES: [(&str, &str, &str); 3] = [
    ("trusting", "local all all trust\nhost all all all trust\n", "PostgreSQL asks for no password (trust)"),
    ("password", "local all AUTH password\n", "PostgreSQL asks for the password in clear text"),
    ("unreachable", "local all AUTH reject\n", "pg_hba.conf rejects connection"),
];

fn hba(lines: &str) -> String {
    format!("{}{SCRAM}", lines.replace("AUTH", AUTH))
}

async fn acme_over(on: On, server: Server) -> Stage {
    let manifests = format!("{}{}", tenant("acme", SPEC), keys());
    Stage::over(on, Wish::default(), server, &manifests).await
}

/// Ends the connections of requests, so that others are opened.
async fn cut(superuser: &mut PgConnection) {
    execute(
        superuser,
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename ~ '^t.*_auth$'",
    )
    .await;
}

/// Waits until requests are answered with this status.
async fn answers(url: &str, key: &str, status: u16) {
    until_ok(&format!("an answer {status} of {url}"), async || {
        let answer = get(&format!("{url}{NOTES}"), key).await;
        if answer.status == status { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}

/// Waits until Tenant and keys are told so, and gives the Tenant's status.
async fn told(stage: &Stage, reason: &str) -> Value {
    for key in ["north", "south", "web"] {
        stage.told("ApiKey", key, 1, reason).await;
    }
    stage.told("Tenant", "acme", 1, reason).await
}

/// The line that a message says to put into pg_hba.conf.
fn line(message: &str) -> String {
    let mut parts = message.split('`');
    parts.nth(1).unwrap_or_else(|| panic!("no line in {message}")).to_owned() + "\n"
}

/// Seen to fail with replicas that do not say what their connections come to.
async fn ready_waits_until_requests_are_answered_and_says_what_to_change(on: On) {
    let (server, _) = Server::with_two_ways(&["max_connections=40"]).await;
    // the rest of the server asks for SCRAM, or nothing would start
    let trusting = hba("local all AUTH trust\n");
    server.set_hba(&trusting).await;
    let stage = acme_over(on, server).await;
    let status = told(&stage, "LoginRefused").await;
    let message = ready(&status).1.to_owned();
    assert!(holds(&status, "Stalled") && message.contains(CASES[0].2), "{message}");
    // what the reconciler tries itself may be told before the replica has tried its first catalog
    until("a replica that is ready with one tenant's database refused", async || {
        stage.is_ready().await.then_some(())
    })
    .await;
    assert_eq!(stage.n_printed_requests().unwrap_or(0), 0, "nothing could be tried: {}", stage.log());
    let (url, web) = (stage.url(), stage.key("web").await);
    answers(&url, &web, 503).await;
    let notes = format!("{url}/auth/acme/api/notes");
    let client = Client::new();
    let row = r#"{"region": "north", "body": "new"}"#;
    let headers = [("X-API-Key", web.as_str()), ("Content-Type", "application/json")];
    let written = async || client.send("POST", &notes, &headers, row).await;
    let reply = written().await;
    assert_eq!(reply.status, 503);
    assert!(reply.body.contains("nothing was written"), "{reply:?}");

    let mended = line(&message);
    stage.server.set_hba(&format!("{mended}{trusting}")).await;
    told(&stage, DONE).await;
    assert_eq!(written().await.status, 201, "as soon as it is ready");
    // printed once the statuses are written
    until("a request to try for each key", async || {
        (stage.n_printed_requests().unwrap_or(3) == 3).then_some(())
    })
    .await;
    let warnings = |stage: &Stage| stage.log().matches("does not answer").count();
    let before = warnings(&stage);

    let mut superuser = stage.server.connect("postgres").await;
    for (name, lines, says) in CASES {
        stage.server.set_hba(&hba(lines)).await;
        cut(&mut superuser).await;
        answers(&url, &web, 503).await;
        let status = told(&stage, "LoginRefused").await;
        let message = ready(&status).1;
        assert!(holds(&status, "Stalled") && message.contains(says), "{name}: {message}");
        event(&stage, "Tenant", "acme", &status).await;
        assert!(stage.is_ready().await, "{name}");
        assert_eq!(get(&format!("{url}{NOTES}"), &web).await.status, 503, "{name}");
        stage.server.set_hba(&format!("{}{}", line(message), hba(lines))).await;
        let status = told(&stage, DONE).await;
        assert!(holds(&status, "Ready") && !holds(&status, "Stalled"), "{name}: {status}");
        assert_eq!(get(&format!("{url}{NOTES}"), &web).await.status, 200, "{name}");
    }
    // those of the replica stand in the log of standalone alone
    let n_warnings = warnings(&stage) - before;
    assert!(n_warnings <= 2 * CASES.len(), "{n_warnings} warnings, twice for each: {}", stage.log());

    // SCRAM verifiers are asked for by SCRAM, whatever the line is called
    stage.server.set_hba(&SCRAM.replace("scram-sha-256", "md5")).await;
    cut(&mut superuser).await;
    answers(&url, &web, 200).await;
    told(&stage, DONE).await;

    let full = Full::new(&stage.server, &mut superuser).await;
    until_ok("no connection for requests", async || {
        let answer = get(&format!("{url}{NOTES}"), &web).await;
        if answer.status == 503 {
            return Ok(());
        }
        // the replica was faster than the crowd
        cut(&mut superuser).await;
        Err(format!("{answer:?}"))
    })
    .await;
    let status = told(&stage, "DatabaseUnavailable").await;
    let message = ready(&status).1;
    assert!(holds(&status, "Reconciling") && message.contains("raise max_connections"), "{message}");
    assert!(!holds(&status, "Stalled") && stage.is_ready().await, "{status}");
    full.end().await;
    told(&stage, DONE).await;
    answers(&url, &web, 200).await;
}

/// Every connection that PostgreSQL has for others than superusers.
struct Full {
    end: tokio::sync::oneshot::Sender<()>,
    holding: tokio::task::JoinHandle<()>,
}

impl Full {
    /// Takes each connection as soon as it is free, and returns when there was none and requests have none.
    async fn new(server: &Server, superuser: &mut PgConnection) -> Full {
        let crowd = "create role crowd login password 'crowd'; grant connect on database postgres to crowd";
        execute(superuser, crowd).await;
        let mut login = server.superuser("postgres");
        (login.role, login.password) = ("crowd".to_owned(), rowgate_core::derive::Password::given("crowd"));
        let (end, mut ended) = tokio::sync::oneshot::channel();
        let (full, mut is_full) = tokio::sync::watch::channel(false);
        let holding = tokio::spawn(async move {
            let (mut held, mut pace) = (Vec::new(), tokio::time::interval(Duration::from_millis(2)));
            while ended.try_recv().is_err() {
                match rowgate_tests::servers::postgres::connect(&login).await {
                    Ok(conn) => held.push(conn),
                    Err(_) => {
                        full.send_replace(true);
                        pace.tick().await;
                    }
                }
            }
        });
        is_full.wait_for(|is_full| *is_full).await.expect("it goes on");
        cut(superuser).await;
        Full { end, holding }
    }

    async fn end(self) {
        self.end.send(()).expect("it goes on");
        self.holding.await.expect("no panic");
    }
}

/// One more data plane, which goes another way.
async fn replica(stage: &Stage, control: impl AsRef<OsStr>, flags: &[&OsStr]) -> (DataPlane, Scratch) {
    let scratch = Scratch::new();
    let root = scratch.path().join("dataplane.root");
    fs::write(&root, stage.installation().await.roots().dataplane.reveal_hex()).expect("the folder is ours");
    let replica = DataPlane::start_with(Path::new(control.as_ref()), &root, |command| {
        command.args(flags);
    });
    (replica.await, scratch)
}

async fn a_replica_that_cannot_connect_holds_ready_back_while_others_serve(on: On) {
    let authority = Authority::new();
    let server = Server::with_tls(&[], &authority, &authority.issue("localhost", Validity::Now)).await;
    server.take_clients_of(&authority).await;
    let stage = acme_over(on, server).await;
    told(&stage, DONE).await;
    let (url, web, port) = (stage.url(), stage.key("web").await, stage.server.port());
    let mut superuser = stage.server.connect("postgres").await;

    let cert = hba("hostssl all AUTH all cert\n");
    stage.server.set_hba(&cert).await;
    let ca = authority.file();
    let flags = [OsStr::new("--database-ca"), ca.as_os_str()];
    let (second, _folder) = replica(&stage, format!("localhost:{port}"), &flags).await;
    answers(second.url(), &web, 503).await;
    let status = told(&stage, "LoginRefused").await;
    let message = ready(&status).1;
    assert!(message.contains("1 of 2 live replicas cannot connect"), "{message}");
    assert!(message.contains("PostgreSQL asks for a client certificate"), "{message}");
    assert!(holds(&status, "Stalled") && second.is_ready().await && stage.is_ready().await);
    event(&stage, "Tenant", "acme", &status).await;
    assert_eq!(get(&format!("{url}{NOTES}"), &web).await.status, 200, "by the socket");
    stage.server.set_hba(&format!("{}{cert}", line(message))).await;
    let status = told(&stage, DONE).await;
    assert!(ready(&status).1.starts_with("served by 2 live replicas"), "{status}");
    assert_eq!(get(&format!("{}{NOTES}", second.url()), &web).await.status, 200);
    second.signal(nix::sys::signal::Signal::SIGTERM);

    let pooler = stage.server.unasking_pooler().await;
    let Endpoint::Unix { directory, port } = pooler.endpoint() else { panic!("it has a socket") };
    let pooled = format!("{}:{port}", directory.display());
    let flags = [OsStr::new("--pooler"), OsStr::new(&pooled)];
    let (third, _folder) = replica(&stage, stage.server.control(), &flags).await;
    answers(third.url(), &web, 503).await;
    let status = told(&stage, "LoginRefused").await;
    let message = ready(&status).1;
    assert!(message.contains("set auth_user and auth_query in pgbouncer.ini"), "{message}");
    assert!(holds(&status, "Stalled") && third.is_ready().await, "{status}");
    event(&stage, "Tenant", "acme", &status).await;
    pooler.asks();
    told(&stage, DONE).await;
    answers(third.url(), &web, 200).await;
    cut(&mut superuser).await;
    answers(third.url(), &web, 200).await;
}
