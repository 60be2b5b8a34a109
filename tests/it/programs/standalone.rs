//! Standalone from outside: what it says when it cannot begin, and that neither Ctrl-C nor kill -9 loses anything.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary, get};

/// Runs a command that ends by itself, and checks its exit code and every part of what it says.
fn refuses(command: &mut Command, code: i32, parts: &[&str]) -> Output {
    let output = command.output().expect("the binary was built; `make test` builds it");
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
    output
}

#[tokio::test]
async fn a_busy_port_is_told_before_anything_starts() {
    let world = World::new(&[]).await;
    let taken = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    let address = taken.local_addr().expect("it is bound").to_string();
    for flag in ["--listen", "--probes"] {
        let state = world.folder().join("untouched");
        let mut command = Command::new(binary());
        command.arg("standalone").arg("--manifests").arg(world.manifests()).arg("--state").arg(&state);
        let other = if flag == "--listen" { "--probes" } else { "--listen" };
        command.args([flag, &address, other, "127.0.0.1:0"]);
        refuses(&mut command, 2, &[flag, &address, "another port"]);
        assert!(!state.exists(), "nothing was started");
    }
}

#[tokio::test]
async fn without_a_usable_postgresql_the_message_names_folders_versions_and_remedies() {
    let world = World::new(&[]).await;
    let old = world.folder().join("old");
    fs::create_dir(&old).expect("the folder is ours");
    fs::write(old.join("postgres"), "#!/bin/sh\necho 'postgres (PostgreSQL) 15.18'\n").expect("it is ours");
    fs::set_permissions(old.join("postgres"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let parts = [
        &*old.display().to_string(),
        "15.18",
        "too old",
        "--postgres-bin",
        "--database-url",
        "make postgres",
    ];
    refuses(world.command().arg("--postgres-bin").arg(&old), 2, &parts);

    let empty = world.folder().join("empty");
    fs::create_dir(&empty).expect("the folder is ours");
    let parts = [&*empty.display().to_string(), "postgres not found", "16 or newer"];
    refuses(world.command().arg("--postgres-bin").arg(&empty), 2, &parts);
}

/// Seen to fail without the look at how the data plane's login gets in.
#[tokio::test]
async fn a_postgresql_that_would_not_ask_for_scram_is_refused_with_the_line_that_mends_it() {
    let (server, url) = Server::with_two_ways(&[]).await;
    let world = World::shop_on(&server);
    let scram = "local all all scram-sha-256\nhost all all all scram-sha-256\n";
    for (lines, says) in [
        ("local all all trust\nhost all all all trust\n", "asks for no password (trust)"),
        ("local all rowgate_dataplane password\n", "asks for the password in clear text"),
        ("local all rowgate_operator reject\n", "pg_hba.conf rejects connection"),
    ] {
        let lines = format!("{lines}{scram}");
        server.set_hba(&lines).await;
        let parts = ["--database-url", says, "put the line `local all \"/^(rowgate_", "pg_reload_conf"];
        let output = refuses(&mut world.command(), 2, &parts);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("listening") && output.stdout.is_empty(), "nothing is served: {said}");
    }
    let lines = format!("host all rowgate_dataplane all trust\n{scram}");
    server.set_hba(&lines).await;
    // by TCP the line names where we come from
    let mut by_tcp = world.over(&server, url);
    let output = refuses(&mut by_tcp.command(), 2, &["127.0.0.1/32 scram-sha-256`"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.split('`').nth(1).expect("a line");
    server.set_hba(&format!("{line}\n{lines}")).await;
    by_tcp.start().await;
    assert!(by_tcp.stop().await.success());
}

#[tokio::test]
async fn a_missing_folder_is_named_with_its_flag() {
    let world = World::new(&[]).await;
    fs::remove_dir(world.manifests()).expect("it is empty");
    let folder = world.manifests().display().to_string();
    refuses(&mut world.command(), 2, &["--manifests", &folder, "examples/shop"]);
}

#[test]
fn every_wrong_flag_is_told_at_once() {
    let mut command = Command::new(binary());
    command.args([
        "standalone",
        "--manifests",
        "x",
        "--database-url",
        "mysql://x",
        "--drain-seconds",
        "soon",
    ]);
    refuses(
        &mut command,
        2,
        &["--database-url: does not start with postgres://", "--drain-seconds: \"soon\""],
    );
}

#[tokio::test]
async fn a_typing_error_is_told_with_its_remedy_and_the_rest_is_served() {
    let mut world = World::shop().await;
    let wrong = "apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {name: wrong}\n\
                 spec: {tenantRef: {name: shop}, revokd: true}\n";
    world.write("wrong.yaml", wrong);
    let folder = world.manifests();
    let mut check = Command::new(binary());
    refuses(check.arg("check").arg("--manifests").arg(&folder), 1, &["wrong.yaml", "revokd", "revoked"]);

    world.start().await;
    world.says("wrong.yaml").await;
    world.says("revokd").await;
    let answer = world.get(&world.key("shop-admin"), "/auth/shop/api/products?$first=1").await;
    assert_eq!(answer.status, 200, "{answer:?}");

    world.write("wrong.yaml", &wrong.replace("revokd: true", "revoked: false"));
    world.says("all manifests are valid again").await;
    // what is no mistake by itself, and leaves the resource ready: a name that is nobody's
    let tenant = fs::read_to_string(folder.join("tenant.yaml")).expect("the shop's");
    world.write(
        "tenant.yaml",
        &tenant.replace("roles: [datalake_user]", "roles: [datalake_user, shop-admln]"),
    );
    world.says("warning: entities[customers]").await;
    world.says("shop-admln, which is not an ApiKey of this tenant").await;
    until("the mended key", async || {
        (world.status("ApiKey", "wrong")["secretName"].is_string()).then_some(())
    })
    .await;
    // one that is stalled is told once, and so is the Event of it
    let scope = "scope: {permissions: [{entity: ordrs, actions: [read], fields: {include: ['*']}}]}";
    world.write("wrong.yaml", &wrong.replace("revokd: true", scope));
    let told = "permissions name the entity ordrs, which is not served";
    world.says(&format!("stalled: EntityNotFound: {told}")).await;
    until("the Event", async || {
        let file = fs::read_to_string(world.state().join("status/apikey_default_wrong.yaml")).ok()?;
        let events = file.split_once("events:")?.1;
        (events.contains("type: Warning") && events.contains(told)).then_some(())
    })
    .await;
    assert_eq!(world.log().matches(told).count(), 1, "{}", world.log());
    fs::remove_file(folder.join("wrong.yaml")).expect("it is there");
    let mut check = Command::new(binary());
    refuses(check.arg("check").arg("--manifests").arg(&folder), 0, &["all manifests", "are valid"]);
    assert!(world.stop().await.success());
}

#[tokio::test]
async fn a_second_process_on_the_same_state_is_told_who_holds_it() {
    let mut world = World::shop().await;
    world.start().await;
    let holder = format!("(process {})", world.pid());
    let mut second = Command::new(binary());
    second.arg("standalone").arg("--manifests").arg(world.manifests()).arg("--state").arg(world.state());
    second.args(["--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0"]);
    refuses(&mut second, 2, &[&holder, "--state"]);
    assert!(world.stop().await.success());
}

#[tokio::test]
async fn after_kill_9_the_next_start_takes_the_running_postgresql_over_with_data_and_keys() {
    let mut world = World::shop().await;
    world.start().await;
    let path = "/auth/shop/api/orders?$first=-1";
    let keys = ["shop-admin", "north", "south"];
    let mut before = Vec::new();
    for name in keys {
        before.push((world.key(name), world.get(&world.key(name), path).await));
    }
    assert!(before.iter().all(|(_, answer)| answer.status == 200), "{before:?}");
    let postmaster = || {
        let path = world.state().join("postgres/data/postmaster.pid");
        fs::read_to_string(path).ok().and_then(|text| text.lines().next().map(str::to_owned))
    };
    let running = postmaster().expect("PostgreSQL runs");
    world.kill().await;
    let postmaster = || fs::read_to_string(world.state().join("postgres/data/postmaster.pid"));
    assert!(postmaster().expect("PostgreSQL runs on").starts_with(&running));

    world.start().await;
    assert!(
        world.log().contains(&format!("PostgreSQL is still running (process {running})")),
        "{}",
        world.log()
    );
    for (name, (key, answer)) in keys.into_iter().zip(&before) {
        assert_eq!(&world.key(name), key);
        assert_eq!(&world.get(key, path).await, answer);
    }

    // An orderly end stops PostgreSQL, too; the third start finds everything again.
    assert!(world.stop().await.success());
    let stopped = fs::read_to_string(world.state().join("postgres/data/postmaster.pid"));
    assert!(stopped.is_err(), "PostgreSQL runs on: {stopped:?}");
    world.start().await;
    for (key, answer) in &before {
        assert_eq!(&world.get(key, path).await, answer);
    }
    assert!(world.stop().await.success());
}

#[tokio::test]
async fn another_data_plane_over_the_same_control_database_gives_the_same_answers() {
    let mut world = World::shop().await;
    world.start().await;
    let other = world.serve().await;
    let path = "/auth/shop/api/customers?$select=id&$orderby=id";
    for name in ["shop-admin", "north", "south"] {
        let key = world.key(name);
        let here = world.get(&key, path).await;
        assert_eq!(here.status, 200);
        assert_eq!(get(&format!("{other}{path}"), &key).await, here);
    }
    assert!(world.stop().await.success());
}

#[tokio::test]
async fn a_running_postgresql_is_used_and_left_running() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let answer = world.get(&world.key("north"), "/auth/shop/api/orders?$first=1").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!world.state().join("postgres/data/postmaster.pid").exists(), "no PostgreSQL of our own");
    assert!(world.stop().await.success());

    let mut connection = server.connect("rowgate").await;
    let replicas: i64 =
        sqlx::query_scalar("select count(*) from control.replicas").fetch_one(&mut connection).await.unwrap();
    assert_eq!(replicas, 0, "the replica took its row away");
}
