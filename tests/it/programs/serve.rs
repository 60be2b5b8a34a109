//! `serve` as it is started on another machine than PostgreSQL's: through TLS, and through a pooler.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reqwest::StatusCode;
use rowgate_pg::connect::login::Endpoint;
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::servers::tls::{Authority, Validity};
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary, get};
use serde_json::json;

const ORDERS: &str = "/auth/shop/api/orders?$first=1";

fn root(world: &World) -> PathBuf {
    world.state().join("dataplane.root")
}

/// As `--control` and `--pooler` take it.
fn place(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Unix { directory, port } => format!("{}:{port}", directory.display()),
        Endpoint::Tcp { host, port, .. } => format!("{host}:{port}"),
    }
}

#[tokio::test]
async fn postgresql_on_another_machine_is_met_by_its_verified_name_or_not_at_all() {
    let authority = Authority::new();
    let server = Server::with_tls(&[], &authority, &authority.issue("localhost", Validity::Now)).await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let (control, key) = (place(&server.way()), world.key("shop-admin"));
    let plane = DataPlane::start_with(Path::new(&control), &root(&world), |command| {
        command.arg("--database-ca").arg(authority.file());
    })
    .await;
    let answer = get(&format!("{}{ORDERS}", plane.url()), &key).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let clear = "select count(*) as n from pg_stat_ssl s join pg_stat_activity a using (pid)
        where a.client_addr is not null and not s.ssl";
    let mut superuser = server.connect("postgres").await;
    assert_eq!(rows(&mut superuser, clear).await, [json!({"n": 0})]);

    let stranger = Authority::new();
    let address = control.replace("localhost", "127.0.0.1");
    for (control, ca, expected) in [
        (
            &control,
            &stranger,
            "comes from no authority that is trusted: give the file of its authority with --database-ca",
        ),
        (&address, &authority, "is not for this host's name"),
    ] {
        refused(control, &root(&world), &ca.file(), expected).await;
    }
}

/// It goes on trying, because the server may be given another certificate, and says why it is not ready.
async fn refused(control: &str, root: &Path, ca: &Path, expected: &str) {
    let scratch = Scratch::new();
    let log = scratch.path().join("log");
    let mut child = Command::new(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--control", control])
        .arg("--root-file")
        .arg(root)
        .arg("--database-ca")
        .arg(ca)
        .stdout(Stdio::null())
        .stderr(File::create(&log).expect("the folder is ours"))
        .spawn()
        .expect("the binary was built; `make test` builds it");
    scratch.adopt(child.id());
    let told = async || std::fs::read_to_string(&log).expect("a log").contains(expected).then_some(());
    until(&format!("{expected:?} in {}", log.display()), told).await;
    child.kill().expect("it is our child");
    child.wait().expect("it is our child");
    scratch.forget(child.id());
}

/// PgBouncer comes by TCP, the rest by the socket.
#[tokio::test]
async fn requests_go_through_the_pooler_and_everything_else_does_not() {
    let server = Server::with_pooler(&[], 3).await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let plane = DataPlane::start_with(Path::new(&place(server.endpoint())), &root(&world), |command| {
        command.args(["--pooler", &place(&server.way()), "--database-tls", "disable"]);
    })
    .await;
    let url = format!("{}{ORDERS}", plane.url());
    for key in ["shop-admin", "north"] {
        let (through, direct) = (get(&url, &world.key(key)).await, world.get(&world.key(key), ORDERS).await);
        assert_eq!(
            (through.status, &through.body["value"]),
            (StatusCode::OK, &direct.body["value"]),
            "{key}"
        );
    }
    let through =
        "select distinct application_name as name, usename like '%\\_auth' as is_auth from pg_stat_activity
        where client_addr is not null and usename <> 'pooler_asks'";
    let mut superuser = server.connect("postgres").await;
    assert_eq!(rows(&mut superuser, through).await, [json!({"name": "rowgate", "is_auth": true})]);
}

/// Else an export or a backlog of webhooks takes twice the memory (docs/benchmarks.md). Seen to fail without `.cargo/config.toml`.
#[test]
fn its_allocator_takes_pages_from_the_system_as_they_are_used() {
    let output = Command::new(binary()).arg("--version").env("MIMALLOC_VERBOSE", "1").output();
    let output = output.expect("the program was built");
    let printed = String::from_utf8_lossy(&output.stderr);
    let option = printed.lines().find(|line| line.contains("'arena_eager_commit'")).map(str::trim);
    assert_eq!(option, Some("option 'arena_eager_commit': 0"), "{printed}");
}
