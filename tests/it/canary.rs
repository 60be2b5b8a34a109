//! Canaries: after a tour of everything that the product does, no key, token, password or root stands anywhere but in
//! the files that are there for it.

mod secrets;

use std::fs;
use std::path::Path;
use std::process::Command;

use rowgate_core::derive::Root;
use rowgate_dataplane::http::routes;
use rowgate_tests::client::Client;
use rowgate_tests::data_plane::DataPlane;
use rowgate_tests::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary};
use secrets::Secrets;

use crate::hostile::{raw, table};

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
const PASSWORD: &str = "C4nary-password-of-nobody";
/// Well-formed, and of no tenant that there is.
const STRANGER: &str = "shop:dlk_1111111111111111111111111111111111111111111111111111112W8vvr";

struct Tour {
    secrets: Secrets,
    /// Places and what stands there.
    heard: Vec<(String, String)>,
}

impl Tour {
    fn hear(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.heard.push((place.into(), text.into()));
    }

    /// Runs the program to its end.
    fn run(&mut self, change: impl FnOnce(&mut Command)) {
        let mut command = Command::new(binary());
        command.env("ROWGATE_LOG", "trace");
        change(&mut command);
        let output = command.output().expect("the binary was built; `make test` builds it");
        let text = [output.stdout, output.stderr].concat();
        self.hear("what a command says", String::from_utf8_lossy(&text));
    }

    /// Every route with every kind of caller, and whatever else can be sent.
    async fn ask_everything(&mut self, url: &str, keys: &[String], tokens: &[String]) {
        let client = Client::new();
        let typo = keys[0][..keys[0].len() - 1].to_owned() + "_";
        let cut = tokens[0][..tokens[0].len() - 4].to_owned();
        let mut callers: Vec<Vec<(&str, String)>> = vec![vec![]];
        let keyed = keys.iter().map(String::as_str).chain([STRANGER, &typo]);
        callers.extend(keyed.map(|key| vec![("x-api-key", key.to_owned())]));
        let borne = tokens.iter().map(String::as_str).chain([&*cut, &keys[0], STRANGER]);
        callers.extend(borne.map(|token| vec![("authorization", format!("Bearer {token}"))]));
        callers
            .push(vec![("x-api-key", keys[0].clone()), ("authorization", format!("Bearer {}", tokens[0]))]);
        callers.push(vec![("x-api-key", keys[0].clone()), ("x-ms-api-role", keys[0].clone())]);
        callers.push(vec![("x-api-key", keys[0].clone()), ("x-request-id", "mine".to_owned())]);
        for route in routes() {
            let path = route
                .path
                .replace("{tenant}", "shop")
                .replace("{entity}", "orders")
                .replace("{*key}", "id/1");
            for caller in &callers {
                let headers: Vec<_> = caller.iter().map(|(name, value)| (*name, value.as_str())).collect();
                for method in [route.method, "HEAD", "OPTIONS", "PUT"] {
                    let mut reply = client.ask(method, &format!("{url}{path}"), &headers).await;
                    if reply.body.contains("\"expiresIn\"") {
                        reply.body.clear(); // The one answer that is a token.
                    }
                    self.hear(format!("the answer to {method} {path}"), format!("{reply:?}"));
                }
            }
        }
        // A key where it does not belong: in the path, in a filter, in a cursor.
        for path in [
            format!("/auth/{}/api", keys[0]),
            format!("/auth/shop/api/{}", tokens[0]),
            format!("/auth/shop/api/orders/id/{}", tokens[0]),
            format!("/auth/shop/api/orders?$after={}", tokens[0]),
            format!("/auth/shop/api/orders?key={}", keys[0]),
        ] {
            let reply = client.get(&format!("{url}{path}"), &[("x-api-key", &keys[0])]).await;
            self.hear("the answer to a key out of place", format!("{:?}", reply.headers));
        }
    }

    fn hear_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            // What is there to hold a secret, and PostgreSQL's own files.
            if name == "secrets" || name == "postgres" || name.ends_with(".root") {
                continue;
            }
            match path.is_dir() {
                true => self.hear_folder(&path),
                false => self.hear(
                    format!("the file {name}"),
                    String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()),
                ),
            }
        }
    }

    async fn hear_database(&mut self, server: &Server, database: &str) {
        let mut admin = server.connect(database).await;
        let tables = "select format('select * from %I.%I', schemaname, tablename) as q from pg_tables \
            where schemaname in ('control', 'dl')";
        for table in rows(&mut admin, tables).await {
            let found = rows(&mut admin, table["q"].as_str().expect("a text")).await;
            self.hear(format!("{} of {database}", table["q"]), format!("{found:?}"));
        }
    }
}

/// Seen to fail with a line at trace level that holds a request's headers, and with a `revoke` that repeats what it was
/// given instead of a key's id.
#[tokio::test]
async fn no_secret_stands_where_it_does_not_belong() {
    let server = Server::with(&LOUD).await;
    let mut admin = server.connect("postgres").await;
    execute(&mut admin, "create extension pg_stat_statements").await;
    let mut world = World::shop_on(&server).await;
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
        let url = format!("{}/api/auth/apikeys/exchange", plane.url());
        let reply = Client::new().ask("POST", &url, &[("x-api-key", key)]).await;
        let token = reply.json()["token"].as_str().expect("a text").to_owned();
        tour.secrets.add_key(name, key);
        tour.secrets.add_token(name, &token);
        tokens.push(token);
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

    // A key is revoked, another's Secret is made anew, and commands fail in all ways that have a secret at hand.
    let id = world.status("ApiKey", "south")["apiKeyId"].as_str().expect("it has one").to_owned();
    let other = world.folder().join("other.root");
    fs::write(&other, Root::new([9; 32]).reveal_hex()).expect("the folder is ours");
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
            command.arg(world.manifests()).arg("--state").arg(state).arg("--database-url").arg(url);
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
    let mut found: Vec<_> =
        tour.heard.iter().flat_map(|(place, text)| tour.secrets.found_in(place, text)).collect();
    found.truncate(20);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
