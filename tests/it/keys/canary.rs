//! Canaries: after a tour of everything that the product does, no key, token, password or root stands anywhere but in
//! the files that are there for it.

mod secrets;
mod tour;

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rowgate_core::derive::Root;
use rowgate_tests::client::Client;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{BIN, Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use secrets::Secrets;
use tour::{STRANGER, Tour};

use crate::http::hostile::{raw, table};

/// PostgreSQL writes down all that it can.
const LOUD: [&str; 8] = [
    "shared_preload_libraries=pg_stat_statements",
    "log_statement=all",
    "log_min_duration_statement=0",
    "log_parameter_max_length=-1",
    "log_parameter_max_length_on_error=-1",
    "log_error_verbosity=verbose",
    "log_min_messages=debug1",
    "log_connections=on",
];
const BROKEN: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: broken}
spec:
  database: {bootstrap: {configMapRef: {name: broken, key: schema.sql}}}
  entities: [{name: x, source: {schema: public, object: x}, rowLevelSecurity: {none: true}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: broken}
data: {schema.sql: create table nowhere.x ()}
";
const TURNING: &str = "apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: turning, annotations: {rowgate.dev/rotate: NONCE}}
spec: {tenantRef: {name: shop}, rotation: {every: 30d, overlap: 1d}}
";
const PASSWORD: &str = "C4nary-password-of-nobody";
/// Seen to fail with a line at trace level that holds a request's headers, and with a `revoke` that repeats what it was
/// given instead of a key's id, and with a `rotate-signing-key` that shows its root where it fails.
#[tokio::test]
async fn no_secret_stands_where_it_does_not_belong() {
    let server = Server::with(&LOUD).await;
    let mut admin = server.connect("postgres").await;
    execute(&mut admin, "create extension pg_stat_statements").await;
    let mut world = World::shop_on(&server);
    world.write("broken.yaml", BROKEN);
    world
        .start_with(|command| {
            command.env("ROWGATE_LOG", "trace");
        })
        .await;
    let root = world.state().join("dataplane.root");
    let plane = DataPlane::start_with(&world.socket(), &root, |command| {
        command.env("ROWGATE_LOG", "trace");
    })
    .await;
    let mut tour = Tour { secrets: Secrets::default(), heard: Vec::new() };

    let names = ["shop-admin", "north", "south"];
    let keys: Vec<String> = names.iter().map(|name| world.key(name)).collect();
    let mut tokens = Vec::new();
    for (name, key) in names.iter().zip(&keys) {
        tokens.push(tour.add_key_and_token(plane.url(), name, key).await);
    }
    tour.secrets.add_key("of nobody", STRANGER);
    tour.secrets.add("the password of nobody", PASSWORD.as_bytes());

    for url in [world.url(), plane.url().to_owned()] {
        tour.ask_everything(&url, &keys, &tokens).await;
    }
    let place = plane.url().trim_start_matches("http://").parse().expect("an address");
    for case in table::cases(&keys[0]) {
        for answer in raw::exchange(place, &case.bytes, case.ends).await {
            let body = String::from_utf8_lossy(&answer.body);
            let body = if body.contains("\"expiresIn\"") { "a token" } else { &*body };
            tour.hear(
                format!("the answer to {}", case.name),
                format!("{} {:?} {body}", answer.status, answer.headers),
            );
        }
    }
    for path in [format!("{}/metrics", world.probes_url()), format!("{}/readyz", world.probes_url())] {
        let reply = Client::new().get(&path, &[]).await;
        tour.hear(path, format!("{reply:?}"));
    }

    // A key's secret is replaced by another; then the key that signs tokens, under the right root and a wrong one.
    let mut turned = Vec::new();
    for nonce in ["a", "b"] {
        world.write("turning.yaml", &TURNING.replace("NONCE", nonce));
        let key = until("the key of this annotation", async || {
            world.secret("turning").filter(|key| !turned.contains(key))
        })
        .await;
        let opens = async || (plane_get(&plane, &key).await == 200).then_some(());
        until("the key to work", opens).await;
        tokens.push(tour.add_key_and_token(plane.url(), &format!("turning {nonce}"), &key).await);
        turned.push(key);
    }
    let other = world.folder().join("other.root");
    fs::write(&other, Root::new([9; 32]).reveal_hex()).expect("the folder is ours");
    for root in [&root, &root, &other] {
        tour.run(|command| {
            command
                .args(["rotate-signing-key", "--control"])
                .arg(world.socket())
                .arg("--root-file")
                .arg(root);
        });
    }
    assert!(tour.heard.iter().any(|(_, text)| text.contains("signing key 2 is in the JWKS")));
    tour.ask_everything(&world.url(), &turned, &tokens[names.len()..]).await;

    // A key is revoked, another's Secret is made anew, and commands fail in all ways that have a secret at hand.
    let id = world.status("ApiKey", "south")["apiKeyId"].as_str().expect("it has one").to_owned();
    for (id, root) in [(&*id, &root), ("x", &root), (&*id, &other), (&keys[0], &root)] {
        tour.run(|command| {
            command.args(["revoke", id, "--control"]).arg(world.socket()).arg("--root-file").arg(root);
        });
    }
    tour.run(|command| {
        command.args(["check", "--manifests"]).arg(world.manifests());
    });
    let folder = world.socket();
    for url in [
        format!("mysql://a:{PASSWORD}@h"),
        format!("postgres://a:{PASSWORD}@db:many/app"),
        format!("postgres://a:{PASSWORD}@/app"),
        format!("postgres://a:{PASSWORD}%zz@db/app"),
        format!("postgres://a:{PASSWORD}@db?sslmode=require"),
        format!("postgres://rowgate_superuser:{PASSWORD}@/postgres?host={}", folder.display()),
        format!("postgres://nobody:{PASSWORD}@/postgres?host={}", folder.display()),
        format!("postgres://a:{PASSWORD}@/postgres?host=/nonexistent"),
    ] {
        let state = world.folder().join("elsewhere");
        tour.run(|command| {
            command.args(["standalone", "--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--manifests"]);
            command
                .arg(world.manifests())
                .arg("--state")
                .arg(state)
                .arg("--database-url")
                .arg(url)
                .env_remove(BIN);
        });
    }

    // The data plane's passwords are wrong, and its connections gone.
    execute(&mut admin, "alter role rowgate_dataplane password 'another'").await;
    execute(
        &mut admin,
        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()",
    )
    .await;
    until("a login that fails", async || {
        server.log().contains("password authentication failed for user \"rowgate_dataplane\"").then_some(())
    })
    .await;
    tour.ask_everything(plane.url(), &keys, &tokens).await;

    let system = rows(&mut admin, "select system_identifier::text as id from pg_control_system()").await;
    let system = system[0]["id"].as_str().expect("a text").to_owned();
    for name in ["operator.root", "dataplane.root"] {
        let text = fs::read_to_string(world.state().join(name)).expect("it was made");
        let root = Root::from_hex(&text).expect("a root");
        tour.secrets.add_root(name, &text);
        for role in rows(&mut admin, "select rolname from pg_roles where rolcanlogin").await {
            let role = role["rolname"].as_str().expect("a text");
            let password = root.password(&system, role, 1);
            tour.secrets.add(&format!("the password of {role}"), password.reveal().as_bytes());
        }
    }
    tour.secrets.add("the superuser's password", server.superuser("postgres").password.reveal().as_bytes());

    for query in ["select query from pg_stat_activity", "select query from pg_stat_statements"] {
        let found = rows(&mut admin, query).await;
        tour.hear(query, format!("{found:?}"));
    }
    tour.hear_database(&server, "rowgate").await;
    let databases =
        "select datname from pg_database where datname like 't%' and datallowconn and not datistemplate";
    for database in rows(&mut admin, databases).await {
        tour.hear_database(&server, database["datname"].as_str().expect("a text")).await;
    }
    // PostgreSQL stops for good: what is asked and run from here on fails.
    let pid = Pid::from_raw(server.pid().try_into().expect("process ids are positive 32-bit numbers"));
    kill(pid, Signal::SIGINT).expect("it runs");
    until("the end of PostgreSQL", async || {
        server.log().contains("database system is shut down").then_some(())
    })
    .await;
    for url in [world.url(), plane.url().to_owned()] {
        tour.ask_everything(&url, &[&keys[..], &turned].concat(), &tokens).await;
    }
    for command_line in [&["revoke", &id][..], &["rotate-signing-key"]] {
        tour.run(|command| {
            command.args(command_line).arg("--control").arg(&folder).arg("--root-file").arg(&root);
        });
    }
    assert!(world.stop().await.success());

    tour.hear_folder(&world.state());
    let log = fs::read_to_string(world.folder().join("stderr")).expect("standalone logs there");
    for (place, text) in
        [("standalone's log", log), ("the data plane's log", plane.log()), ("PostgreSQL's log", server.log())]
    {
        assert!(10_000 < text.len(), "{place} is loud: {text}");
        tour.hear(place, text);
    }
    let n_bytes: usize = tour.heard.iter().map(|(_, text)| text.len()).sum();
    println!("{} places, {n_bytes} bytes", tour.heard.len());
    let mut found = tour.secrets.found_in(&tour.heard);
    found.truncate(20);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

async fn plane_get(plane: &DataPlane, key: &str) -> u16 {
    let url = format!("{}/auth/shop/api", plane.url());
    Client::new().get(&url, &[("x-api-key", key)]).await.status.as_u16()
}
