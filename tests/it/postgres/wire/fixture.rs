//! A tenant's database with two keys, made by hand: the wire is tested before anything is reconciled.

use std::fmt::Debug;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::derive::{Password, Root};
use rowgate_core::name::Ulid;
use rowgate_core::scram::verifier;
use rowgate_core::secret::KeyDigest;
use rowgate_pg::connect::login::Login;
use rowgate_pg::tenant::keys::Found;
use rowgate_pg::wire::{Ask, Limits, ReadPage, RequestPool, Sessions};
use rowgate_sql::shape::{Column, Encoding, Shape};
use rowgate_sql::text::Sql;
use rowgate_tests::servers::postgres::{OVER, Server, execute};
use rowgate_tests::wait::DEADLINE;
use sqlx::postgres::PgConnection;

/// A database called `name`, with the login `<name>_auth` and the keys `<name>_a` and `<name>_b`.
pub(crate) struct Tenant {
    pub(crate) name: &'static str,
    pub(crate) login: Login,
    pub(crate) sessions: Sessions,
    /// The superuser in the tenant's database.
    pub(crate) superuser: PgConnection,
}

impl Tenant {
    pub(crate) async fn found(server: &Server, name: &'static str) -> Tenant {
        let mut superuser = server.database(name).await;
        rowgate_pg::control::migrate::tenant(&mut superuser).await.expect("a fresh database");
        let auth = format!("{name}_auth");
        let root = Root::new([5; 32]);
        let verifier = verifier(&root.password("it", &auth, 1), &root.salt("it", &auth, 1));
        let mut script = format!(
            "create role {auth} login noinherit password '{verifier}';
             grant connect on database {name} to {auth};
             -- as if nothing had been closed: what a dead key must not run is there to be run
             alter default privileges grant execute on routines to public;
             grant usage on schema dl to {auth};
             grant select (id, secret, role, set_role) on dl.live to {auth};
             grant select (generation) on dl.state to {auth};
             update dl.state set generation = 7;
             create schema app;
             create table app.notes (id int primary key, owner name not null, note text);
             alter table app.notes enable row level security, force row level security;
             create policy own on app.notes using (owner = current_user);
             grant usage on schema app to public;"
        );
        for (at, key) in ["a", "b"].into_iter().enumerate() {
            let role = format!("{name}_{key}");
            let id = id(key);
            script.push_str(&format!(
                "create role {role};
                 grant {role} to {auth} with inherit false, set true;
                 grant select on app.notes to {role};
                 insert into app.notes select {at} + 2 * i, '{role}', 'note ' || i from generate_series(1, 50) i;
                 insert into dl.keys (id, uid, namespace, name, role) values ('{id}', '{key}', 'it', '{key}', '{role}');"
            ));
            script.push_str(&secret(key, key));
        }
        execute(&mut superuser, &script).await;
        let password = password(&auth);
        let login = Login { endpoint: server.way(), role: auth, password, ..server.superuser(name) };
        Tenant { name, login, superuser, sessions: server.sessions() }
    }

    /// A pool of one connection, so that what one exchange leaves behind meets the next.
    pub(crate) fn pool(&self) -> RequestPool {
        self.pool_as(self.login.clone(), 1)
    }

    pub(crate) fn pool_as(&self, login: Login, size: usize) -> RequestPool {
        RequestPool::with_limits(login, Limits { sessions: self.sessions, ..Limits::new(size, 256) })
    }

    pub(crate) fn hasty_pool(&self, limit: Duration) -> RequestPool {
        let sessions = self.sessions;
        let limits = Limits { wait: limit, connect: DEADLINE, grace: limit, sessions, ..Limits::new(1, 256) };
        RequestPool::with_limits(self.login.clone(), limits)
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.sessions == Sessions::Pooled
    }

    pub(crate) fn role(&self, key: &str) -> String {
        format!("{}_{key}", self.name)
    }

    /// The key's question, with every column labelled by its number.
    pub(crate) fn ask(&self, key: &str, text: &str, columns: &[Encoding]) -> Ask {
        let mut sql = Sql::new();
        sql.lit(text.to_owned().leak());
        let label = |i: usize| Some(format!("\"{i}\":").into_boxed_str());
        let column =
            |(i, encoding): (usize, &Encoding)| Column { label: label(i), encoding: encoding.clone() };
        let shape = Shape {
            columns: columns.iter().enumerate().map(column).collect(),
            position: vec![],
            count: None,
        };
        Ask {
            nested: None,
            key: Arc::new(Found {
                id: id(key),
                role: self.role(key),
                set_role: None,
                secret: id(key),
                seconds_left: 1_000,
                generation: 7,
            }),
            by_any_secret: false,
            role: self.role(key),
            statement_timeout_ms: 30_000,
            sql,
            shape: Arc::new(shape),
            watched: None,
        }
    }

    /// The one text that `text` gives as key `key`.
    pub(crate) async fn text(&self, pool: &RequestPool, key: &str, text: &str) -> String {
        let page = pool.read(self.ask(key, text, &[Encoding::Quoted]), usize::MAX).await.expect("an answer");
        let json = utf8(&page);
        json.strip_prefix("{\"0\":\"").and_then(|rest| rest.strip_suffix("\"}")).expect("one text").to_owned()
    }
}

/// Starts this test program again: the tests of the wire, another way to the server, without those of the ways themselves
/// and those in `not`. What it runs is counted, so that a filter that finds nothing is no success.
pub(crate) fn pass_over(way: &str, not: &[&str]) {
    let program = std::env::current_exe().expect("a running test has a path");
    let mut command = Command::new(program);
    command.arg("wire::").env(OVER, way);
    for test in ["connections::tls::", "connections::pooler::", "queries::"].iter().chain(not) {
        command.args(["--skip", test]);
    }
    let output = command.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let n_passed =
        told.rsplit_once(" passed;").and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok());
    assert!(25 <= n_passed.unwrap_or(0), "{told}");
}

pub(crate) fn password(role: &str) -> Password {
    Root::new([5; 32]).password("it", role, 1)
}

/// The statement that gives `key` the secret `text`.
pub(crate) fn secret(key: &str, text: &str) -> String {
    let digest: String = digest(text).0.iter().map(|byte| format!("{byte:02x}")).collect();
    let (id, key) = (id(text), id(key));
    format!(
        "insert into dl.key_secrets (id, key_id, finder, digest) \
         values ('{id}', '{key}', 'finder', '\\x{digest}');"
    )
}

pub(crate) fn id(text: &str) -> Ulid {
    Ulid::from_parts(1, digest(text).0[..10].try_into().expect("10 of 32"))
}

fn digest(text: &str) -> KeyDigest {
    KeyDigest(Root::new([6; 32]).pepper().digest(text.as_bytes()))
}

/// The same by the secret `text` of `key`.
pub(crate) fn by(ask: &Ask, key: &str, text: &str) -> Ask {
    let found = Found { id: id(key), secret: id(text), ..Found::clone(&ask.key) };
    Ask { key: Arc::new(found), ..ask.clone() }
}

pub(crate) fn utf8(page: &ReadPage) -> &str {
    str::from_utf8(&page.json).expect("JSON is UTF-8")
}

/// The variant's name alone, or "Page".
pub(crate) fn name<T, F: Debug>(answer: &Result<T, F>) -> String {
    let Err(failure) = answer else { return "Page".to_owned() };
    let text = format!("{failure:?}");
    let text = text.strip_prefix("Any(").unwrap_or(&text);
    text[..text.find(['(', ')', ' ']).unwrap_or(text.len())].to_owned()
}
