//! Sessions of two scoped keys and an unscoped one, over a tenant made by hand.

use std::sync::Arc;
use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_core::scram;
use rowgate_pg::connect::login::Login;
use rowgate_pg::tenant::keys::Found;
use rowgate_pg::tenant::lookups::LookUps;
use rowgate_pg::wire::{
    Ask, KeyLogins, KeySessions, Queries, Query, QueryFailure, QueryLimits, QueryOutcome, Share, Values,
};
use rowgate_sql::text::Bind;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::DEADLINE;
use serde_json::Value;

use crate::postgres::wire::fixture::{Tenant, id, password, secret};

/// What stands in rows of a key and must be seen by no other: `hidden_a`, `hidden_b`, `hidden_u`, and `hidden_none` in a table of which
/// nothing is granted.
pub(super) const HIDDEN: [&str; 4] = ["hidden_a", "hidden_b", "hidden_u", "hidden_none"];

/// `a` and `b` have roles of their own, `u` is `datalake_user`.
pub(super) struct Desk {
    pub(super) server: Server,
    pub(super) tenant: Tenant,
    pub(super) queries: Queries,
}

impl Desk {
    pub(super) async fn open() -> Desk {
        let server = Server::own().await;
        let mut tenant = Tenant::found(&server, "wq").await;
        let verifier = |role: &str| {
            let root = rowgate_core::derive::Root::new([5; 32]);
            scram::verifier(&root.password("it", role, 1), &root.salt("it", role, 1))
        };
        let script = format!(
            "create role datalake_user;
             create role wq_sql login noinherit password '{}';
             grant datalake_user to wq_sql with inherit false, set true;
             grant datalake_user to wq_auth with inherit false, set true;
             grant wq_sql to wq_auth with inherit false, set true;
             grant connect on database wq to wq_sql, wq_a, wq_b;
             alter role wq_a login password '{}';
             alter role wq_b login password '{}';
             revoke temporary on database wq from public;
             grant select, insert, delete on dl.backends to wq_auth;
             grant select on app.notes to datalake_user;
             insert into dl.keys (id, uid, namespace, name, role) values ('{}', 'u', 'it', 'u', 'datalake_user');
             {}
             update app.notes set note = 'hidden_' || right(owner, 1);
             insert into app.notes values (1000, 'datalake_user', 'hidden_u');
             create table app.secrets (word text);
             insert into app.secrets values ('hidden_none');
             create table app.odd (b boolean, n numeric, t text, j jsonb, at timestamptz);
             insert into app.odd values (true, 1.50, 'x\"y', '{{\"k\": [1]}}', '2024-01-31 10:00:00.5+00');
             grant select on app.odd to public;
             create sequence app.counter;
             grant all on app.counter to public;
             create table app.open (n integer);
             grant all on app.open to public;
             -- every statement that a function can run, its error trapped
             create function app.runs(how text) returns text language plpgsql as $$
             declare given text;
             begin
                 if how ~ '^select|returning' then execute how into given; else execute how; end if;
                 return coalesce(given, 'ran');
             exception when others then return sqlstate; end $$;
             -- neither a cancellation nor a timeout ends it
             create function app.stubborn() returns integer language plpgsql as $$
             begin loop
                 begin perform pg_catalog.pg_sleep(600); exception when query_canceled then null; end;
             end loop; end $$;",
            verifier("wq_sql"),
            verifier("wq_a"),
            verifier("wq_b"),
            id("u"),
            secret("u", "u"),
        );
        execute(&mut tenant.superuser, &script).await;
        let (_, queries) = Desk::replica(&server, &tenant);
        Desk { server, tenant, queries }
    }

    /// What a replica has: its sessions, and the queries in them.
    pub(super) fn replica(server: &Server, tenant: &Tenant) -> (KeySessions, Queries) {
        let login = |role: &str, server: &Login| Login {
            role: role.to_owned(),
            password: password(role),
            ..server.clone()
        };
        let base = server.superuser("wq");
        let (sql, auth) = (login("wq_sql", &base), login("wq_auth", &base));
        let logins = KeyLogins {
            key: Box::new(move |role| login(role, &base)),
            sql,
            auth: auth.clone(),
            verifier: Box::new(|_| "never set".to_owned()),
        };
        let share = Share::unbounded();
        let registry = LookUps::new(auth, 4, &share);
        let replica = Ulid::from_parts(1, [9; 10]);
        let sessions =
            KeySessions::new(logins, tenant.pool_as(tenant.login.clone(), 4), registry, replica, &share);
        let queries = Queries::new(sessions.clone(), QueryLimits::new(8, 64));
        (sessions, queries)
    }

    pub(super) fn role(&self, key: &str) -> String {
        if key == "u" { "datalake_user".to_owned() } else { self.tenant.role(key) }
    }

    /// Asks for the key alone.
    pub(super) fn check(&self, key: &str) -> Ask {
        let role = self.role(key);
        let found = Found { role: role.clone(), ..Found::clone(&self.tenant.ask(key, "select", &[]).key) };
        Ask { key: Arc::new(found), role, ..self.tenant.ask(key, "select", &[]) }
    }

    /// As the tests run it: 1,000 rows and a MiB at most, and more time than it takes.
    pub(super) fn query(&self, key: &str, text: &str) -> Query {
        Query {
            key: id(key),
            role: self.role(key),
            statement_timeout_ms: 30_000,
            limit: DEADLINE,
            text: text.into(),
            binds: Vec::new(),
            typing: None,
            values: Values::Rows { max: 1_000 },
            max_bytes: 1 << 20,
            chunks: None,
        }
    }

    pub(super) async fn ask(&self, key: &str, query: Query) -> Result<QueryOutcome, QueryFailure> {
        self.queries.run(self.check(key), query).await
    }

    pub(super) async fn run(&self, key: &str, text: &str) -> Result<QueryOutcome, QueryFailure> {
        self.ask(key, self.query(key, text)).await
    }

    /// The rows of a query that succeeds.
    pub(super) async fn rows(&self, key: &str, text: &str) -> Value {
        let outcome = self.run(key, text).await.unwrap_or_else(|error| panic!("{error:?}: {text}"));
        json(&outcome)
    }

    /// With values, and a time of its own.
    pub(super) async fn run_with(
        &self,
        key: &str,
        text: &str,
        binds: Vec<Bind>,
        limit: Duration,
    ) -> Result<QueryOutcome, QueryFailure> {
        self.ask(key, Query { binds, limit, ..self.query(key, text) }).await
    }

    /// What the superuser sees.
    pub(super) async fn seen(&self, text: &str) -> Vec<Value> {
        rows(&mut self.server.connect("wq").await, text).await
    }
}

pub(super) fn json(outcome: &QueryOutcome) -> Value {
    let text = std::str::from_utf8(&outcome.json).expect("JSON is UTF-8");
    serde_json::from_str(&format!("[{text}]")).expect("JSON objects")
}

/// What became of it, in a word.
pub(super) fn word(answer: &Result<QueryOutcome, QueryFailure>) -> String {
    match answer {
        Ok(_) => "Ran".to_owned(),
        Err(QueryFailure::Refused(refused)) => format!("{:?}", refused.why),
        Err(QueryFailure::NoLogin(_)) => "NoLogin".to_owned(),
        Err(QueryFailure::Declined(_)) => "Declined".to_owned(),
        Err(QueryFailure::Any(failure)) => {
            let text = format!("{failure:?}");
            text[..text.find(['(', ' ']).unwrap_or(text.len())].to_owned()
        }
    }
}
