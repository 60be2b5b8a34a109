//! `adopt`: what it writes of an application's database is served as it is, and shows no row before a person decides.

use std::fs;
use std::process::{Command, Output};

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use rowgate_tests::world::binary;
use rowgate_tests::world::status::holds;
use serde_json::{Value, json};

use super::fixture::{LINE, Store};

const PASSWORD: &str = "never-printed";
/// What stands beside the tables of the fixture, as the application's role makes it.
const MORE: &str = r#"
create table app.payments (id int primary key, order_id bigint not null references app.orders, amount int);
insert into app.payments select i, i, i from generate_series(1, 5) i;
alter table app.customers add column password_hash text default 'x', add column "apiToken" text;
create table app."no" (id int primary key, "on" text, "it's: {x}" text);
create table app."order-items" (id int primary key);
create table app.own (id int primary key);
insert into app.own values (1), (2);
alter table app.own enable row level security;
create policy first_row on app.own using (id = 1);
create table app.parted (id int primary key) partition by range (id);
create table app.part partition of app.parted for values from (1) to (9);
create table app.child () inherits (app.own);
create table app.log (line text);
create table app.open (id int primary key);
grant select on app.open to public;
create table app.ruled (id int primary key);
create rule none as on insert to app.ruled do instead nothing;
create materialized view app.sums as select region, count(*) as n from app.orders group by region;
create schema other;
create table other.orders (id int primary key);
create schema empty;
"#;
/// And as a superuser does.
const OF_OTHERS: &str =
    "create table app.theirs (id int primary key); alter table app.theirs owner to store_writer";

const LEFT_OUT: &[&str] = &[
    "app.child is a partition or inherits from another table, whose policies do not hold for it; expose the table above it",
    "app.log has no primary key; add one, or an entity for it whose keyFields name the columns that identify one row",
    "PUBLIC has SELECT on app.open, and so would every key, past its permissions; grant it to the roles that need it instead, then run: revoke all on app.open from public;",
    "app.part is a partition or inherits from another table, whose policies do not hold for it; expose the table above it",
    "app.ruled has a rule, which PostgreSQL runs with the rights of the table's owner, past every policy; replace the rule by a trigger",
    "app.sums is a materialized view, which row-level security cannot filter; expose the tables that it reads",
    "app.theirs belongs to store_writer, and the database to another role; alter table app.theirs owner to store",
    "app.totals is a view of the application, which PostgreSQL reads with its owner's rights, past every policy; expose the tables that it reads",
];

async fn application() -> Store {
    let store = Store::new(&[]).await;
    execute(&mut store.as_role("store").await, MORE).await;
    execute(&mut store.server.connect("store").await, OF_OTHERS).await;
    let auditor = format!("create role auditor login password '{PASSWORD}'");
    execute(&mut store.server.connect("postgres").await, &auditor).await;
    store
}

/// A login that may connect and no more.
fn url(store: &Store, database: &str) -> String {
    let (folder, port) = (store.server.socket(), store.server.port());
    format!("postgres://auditor:{PASSWORD}@/{database}?host={}&port={port}", folder.display())
}

fn ran(url: &str, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("adopt").args(["--database-url", url]).args(args);
    command.output().expect("the binary was built; `make test` builds it")
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    assert!(!text.contains(PASSWORD), "{text}");
    text
}

#[tokio::test]
async fn a_first_manifest_is_served_as_it_is_and_shows_no_row_before_somebody_decides() {
    let mut store = application().await;
    let before = store.dump();
    let output = ran(&url(&store, "store"), &["--schema", "app", "--schema", "other", "--schema", "app"]);
    let (manifest, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "{said}");
    assert_eq!(store.dump(), before);

    assert!(manifest.contains(&format!("#   {LINE}\n")), "{manifest}");
    for sentence in LEFT_OUT {
        assert!(manifest.contains(&format!("# - {sentence}\n")), "{sentence}\n{manifest}");
    }
    assert_eq!(manifest.matches("\n# - ").count(), LEFT_OUT.len(), "{manifest}");
    // store_dumps has BYPASSRLS, store_late no right, and the owner is held by no policy
    let lines: Vec<&str> = manifest.lines().filter(|line| line.ends_with("bypassrls;")).collect();
    assert_eq!(
        lines,
        ["#   alter role \"store_reader\" bypassrls;", "#   alter role \"store_writer\" bypassrls;"]
    );

    store.world.write("store.yaml", &manifest);
    store.world.spawn(|_| ());
    let message = store.says("RightsMissing").await;
    assert!(message.ends_with(LINE), "{message}");
    store.lend().await;
    let world = &store.world;
    let get = async |path: &str| {
        until(path, async || {
            let key = world.secret("store-reader")?;
            let answer = world.get(&key, &format!("/auth/store/api/{path}")).await;
            (answer.status == 200).then(|| answer.body["value"].clone())
        })
        .await
    };
    for entity in ["customers", "orders", "payments", "no", "order_items", "parted", "other_orders"] {
        assert_eq!(get(entity).await, json!([]), "{entity}");
    }
    // the application's own policy holds
    assert_eq!(get("own").await, json!([{"id": 1}]));

    let decided =
        manifest.replace("    # rowLevelSecurity: {none: true}\n", "    rowLevelSecurity: {none: true}\n");
    world.write("store.yaml", &decided);
    let seen = async |path: &str, expected: Value| {
        until(&format!("{path}: {expected}"), async || (get(path).await == expected).then_some(())).await;
    };
    // no column that may hold a secret
    seen("customers?$filter=id eq 1", json!([{"id": 1, "name": "customer 1"}])).await;
    let path = "payments?$select=id&$filter=id eq 1&$expand=order($select=id;$expand=customers($select=id))";
    seen(path, json!([{"id": 1, "order": {"id": 1, "customers": {"id": 2}}}])).await;
    let path = "orders?$select=id&$filter=id eq 1&$expand=payments($select=amount)";
    seen(path, json!([{"id": 1, "payments": [{"amount": 1}]}])).await;
    for name in ["orders-customers", "payments-order"] {
        until(name, async || holds(&world.status("Relationship", name), "Ready").then_some(())).await;
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_adopted_is_refused_with_what_to_change() {
    let store = application().await;
    let mut postgres = store.server.connect("postgres").await;
    execute(&mut postgres, "create database theirs").await;
    execute(&mut postgres, "create database \"My-Store\" owner store").await;
    let folder = store.world.folder();
    let (file, taken) = (folder.join("first.yaml"), folder.join("taken.yaml"));
    fs::write(&taken, "mine").expect("the folder is ours");
    let (here, taken) = (url(&store, "store"), taken.display().to_string());
    let wrong = here.replace(PASSWORD, "something-else");
    let (theirs, absent, upper) = (url(&store, "theirs"), url(&store, "absent"), url(&store, "My-Store"));
    for (url, args, parts) in [
        (
            &here,
            &["--schema", "ap"][..],
            &["there is no schema ap in database store", "did you mean app?"][..],
        ),
        (
            &here,
            &["--schema", "pg_catalog"],
            &["there is no schema pg_catalog", "it has app, empty, other, public"],
        ),
        (&here, &["--schema", "empty"], &["no table is in schema empty of database store", "--schema"]),
        (&here, &["--schema", "app", "--name", "Store"], &["--name", "'S'"]),
        (&here, &["--schema", "app", "--namespace", "My"], &["--namespace: \"My\" holds"]),
        (&here, &["--schema", "app", "--operator", "store"], &["belongs to store, which is Rowgate's"]),
        (&here, &["--schema", "app", "--output", &taken], &["taken.yaml exists and was not replaced"]),
        (&here, &[], &["--schema"]),
        (
            &theirs,
            &["--schema", "public"],
            &["a superuser, as whom Rowgate runs no statement", "alter database \"theirs\" owner to"],
        ),
        (
            &upper,
            &["--schema", "public"],
            &["database My-Store cannot be adopted", "lower-case letters", "--database-url"],
        ),
        (
            &absent,
            &["--schema", "app"],
            &["cannot connect to database absent as auditor", "correct --database-url"],
        ),
        (
            &wrong,
            &["--schema", "app"],
            &["cannot connect to database store as auditor", "correct --database-url"],
        ),
        (
            &"mysql://auditor:never@x/y".to_owned(),
            &["--schema", "app"],
            &["--database-url: does not start with postgres://"],
        ),
    ] {
        let output = ran(url, args);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{args:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: {part:?} is missing in: {said}");
        }
        assert!(!said.contains("something-else") && !said.contains("never"), "{said}");
    }
    assert_eq!(fs::read_to_string(&taken).expect("it is there"), "mine");

    let path = file.display().to_string();
    let output = ran(&here, &["--schema", "app", "--name", "north", "--output", &path]);
    let said = text(&output.stderr);
    assert!(output.status.success() && output.stdout.is_empty(), "{said}");
    assert_eq!(said, format!("wrote {path}\n"));
    let written = fs::read_to_string(&file).expect("it was written");
    assert!(written.contains("  name: north-reader\n"), "{written}");
}
