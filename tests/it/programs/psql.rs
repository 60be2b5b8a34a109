//! `psql TENANT` from outside: what psql is given, that its address is the owner's, how a column and a table come to be
//! served, and what is said when nothing can be opened.
//!
//! PostgreSQL's package for tests has no psql. A script stands in its place, which prints what it was given; a client of
//! SQL logs in with that.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rowgate_core::derive::Password;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_tests::servers::postgres::{Server, attempt, connect, execute, rows};
use rowgate_tests::servers::tls::{Authority, Validity};
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

/// Ends as no other program does here.
const PSQL: &str = "#!/bin/sh\nenv | grep '^PG'\nfor it; do echo \"argument=$it\"; done\ncat\nexit 3\n";

/// A folder with what stands for psql.
fn on_path(world: &World) -> PathBuf {
    let folder = world.folder().join("bin");
    fs::create_dir_all(&folder).expect("the folder is ours");
    fs::write(folder.join("psql"), PSQL).expect("the folder is ours");
    fs::set_permissions(folder.join("psql"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    folder
}

fn psql(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("psql").args(arguments).stdin(Stdio::null());
    command.env("ROWGATE_STATE", world.state());
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it is text")
}

/// What psql was given, by name; its arguments under one.
fn given(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut given: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        given.entry(name).or_default().push(value);
    }
    given
}

/// The login that the environment names.
fn login(given: &BTreeMap<&str, Vec<&str>>) -> Login {
    let one = |name: &str| match given.get(name).map(Vec::as_slice) {
        Some([one]) => (*one).to_owned(),
        other => panic!("{name}: {other:?}"),
    };
    Login {
        endpoint: Endpoint::Unix {
            directory: one("PGHOST").into(),
            port: one("PGPORT").parse().expect("a port"),
        },
        database: one("PGDATABASE"),
        role: one("PGUSER"),
        password: Password::given(one("PGPASSWORD")),
    }
}

/// The address that `--url` prints, and nothing else.
fn url(world: &World) -> String {
    let output = psql(world, &["shop", "--url"]).output().expect("the binary was built");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    stdout(&output).trim_end().to_owned()
}

async fn by_url(world: &World) -> PgConnection {
    PgConnection::connect(&url(world)).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Exit code 2, and every part of what it says.
fn refuses(command: &mut Command, parts: &[&str]) {
    let output = command.output().expect("the binary was built");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty() && parts.iter().all(|part| said.contains(part)), "{said}");
}

/// Seen to fail with a password among the arguments, and with what leads libpq elsewhere left in the environment.
#[tokio::test]
async fn psql_is_the_owner_and_what_it_adds_is_served() {
    let mut world = World::shop().await;
    refuses(&mut psql(&world, &["shop"]), &["holds no standalone Rowgate", "--state"]);
    world.start().await;
    assert!(world.log().contains(" psql shop --state "), "the greeting tells it: {}", world.log());

    let bin = on_path(&world);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = psql(&world, &["shop", "--", "-c", "select 1"]);
    command.env("PATH", format!("{}:{path}", bin.display())).stdin(Stdio::piped());
    command.env("PGSERVICE", "nowhere").env("PGHOSTADDR", "203.0.113.1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built");
    let stdin = child.stdin.take().expect("it is piped");
    { stdin }.write_all(b"from standard input\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "as psql ends: {output:?}");
    assert!(text.ends_with("from standard input\n"), "{text}");
    let given = given(&text);
    assert_eq!(given["argument"], ["-c", "select 1"]);
    let names: Vec<&str> = given.keys().copied().filter(|name| name.starts_with("PG")).collect();
    let wanted = ["PGCONNECT_TIMEOUT", "PGDATABASE", "PGHOST", "PGPASSWORD", "PGPORT", "PGUSER"];
    assert_eq!(names, wanted, "nothing leads elsewhere, and a socket needs no TLS");
    let login = login(&given);
    let (folder, password) = (world.socket(), login.password.reveal());
    let folder = folder.display().to_string().replace('/', "%2F");
    let database = &login.database;
    assert_eq!(url(&world), format!("postgresql://{}:{password}@{folder}:5432/{database}", login.role));
    assert_eq!(format!("{database}_owner"), login.role.replacen('t', "t_", 1), "it says nothing of the shop");
    assert!(!world.log().contains(password), "it is told to who asks, and to no log");

    changed_as_the_readme_says(&world, &mut connect(&login).await.expect("the owner")).await;
    let mut owner = by_url(&world).await;
    let who = rows(&mut owner, "select current_user = session_user as same, current_user as who").await;
    assert_eq!(who, [json!({ "same": true, "who": login.role })]);
    assert!(attempt(&mut owner, "create role joe").await.is_err(), "the owner of tables, and no more");

    refuses(&mut psql(&world, &["shpo"]), &["no tenant \"shpo\"", "ready tenants: shop"]);
    refuses(psql(&world, &["shop"]).env("PATH", world.folder()), &["psql is not on the PATH", "--url"]);
    drop(owner);
    assert!(world.stop().await.success());
    refuses(&mut psql(&world, &["shop"]), &["is not running", "start standalone"]);
}

/// README.md, "Changing tables".
async fn changed_as_the_readme_says(world: &World, owner: &mut PgConnection) {
    execute(owner, "alter table shop.customers add column since integer").await;
    execute(owner, "create table shop.coupons (code text primary key, percent integer not null)").await;
    let admin = world.key("shop-admin");
    let served = async |path: &str| {
        let answer = world.get(&admin, path).await;
        (answer.status == 200).then(|| answer.body["value"][0].clone())
    };
    execute(owner, "update shop.customers set since = extract(year from signed_up_on)").await;
    let without = "select count(*) as n from shop.customers where since is null";
    assert_eq!(rows(owner, without).await, [json!({ "n": 0 })], "the owner sees and changes every row");

    let path = "/auth/shop/api/customers?$select=id,since&$filter=since%20gt%202000&$first=1";
    assert_eq!(served(path).await, None, "a column is closed until the manifest changes");
    let permissions = "    permissions:\n";
    let entry = "{entity: customers, actions: [read], fields: {include: [since]}}";
    world.edit("tenant.yaml", permissions, &format!("{permissions}      - {entry}\n"));
    let row = until("the column", async || served(path).await).await;
    assert!(row["since"].as_i64().is_some_and(|year| 2000 < year), "{row}");

    world.shop_entity("coupons");
    world.shop_permission("coupons");
    execute(owner, "insert into shop.coupons values ('WELCOME', 10)").await;
    let row = until("the table", async || served("/auth/shop/api/coupons").await).await;
    assert_eq!(row, json!({ "code": "WELCOME", "percent": 10 }));
    assert!(!world.log().contains("changed by hand"), "{}", world.log());
}

/// By TLS, with an authority of its own: where it is stands in the state folder, and no password does.
#[tokio::test]
async fn a_running_postgresql_is_opened_too() {
    let authority = Authority::new();
    let server = Server::with_tls(&[], &authority, &authority.issue("localhost", Validity::Now)).await;
    let (admin, Endpoint::Tcp { host, port, .. }) = (server.superuser("postgres"), server.way()) else {
        panic!("it has TLS")
    };
    let (role, password) = (&admin.role, admin.password.reveal());
    let given = format!(
        "postgres://{role}:{password}@{host}:{port}/postgres?sslrootcert={}",
        authority.file().display()
    );
    let mut world = World::shop_on(&server).over(&server, given);
    world.start().await;
    let address = url(&world);
    let (_, after) = address.split_once(&format!("@localhost:{port}/t_")).expect("where it is");
    assert!(after.contains("?sslmode=verify-full&sslrootcert="), "{after}");
    let mut owner = by_url(&world).await;
    let who = rows(&mut owner, "select current_user like 't%_owner' as is_owner").await;
    assert_eq!(who, [json!({ "is_owner": true })]);
    let note = fs::read_to_string(world.state().join("database.json")).expect("it is noted");
    assert!(!note.contains("password") && !note.contains("superuser"), "{note}");
    assert!(world.stop().await.success());
    // it runs on, and so does what opens it
    by_url(&world).await;
}
