//! A tenant with rows of two regions, a table of many types, and things that its owner made which a query must not reach.
//! `plain` is unscoped; `north` and `south` read the rows of their region and not the column `hidden`.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::{SELDOM, World};
use serde_json::{Value, json};

const TENANT: &str = include_str!("tenant.yaml");

/// Made behind the back of the manifest, by a superuser: functions, operators, casts and types that would run as their owner.
const TRAPS: &str = include_str!("traps.sql");

/// Takes from PUBLIC what no policy filters, as the warnings of a Tenant ask; the traps that are left lead there.
const CONFINED: &str = "do $$ declare it regprocedure; begin
    for it in select oid from pg_proc where prosecdef and pronamespace in ('lab'::regnamespace, 'public'::regnamespace) loop
        execute format('revoke execute on routine %s from public', it);
    end loop; end $$; revoke select on lab.open from public";

pub(super) struct Lab {
    pub(super) world: World,
    pub(super) server: Server,
    client: Client,
}

impl Lab {
    pub(super) async fn open() -> Lab {
        Lab::with_timeout("60s").await
    }

    /// As [`Lab::open`], with this limit of time for a statement.
    pub(super) async fn with_timeout(limit: &str) -> Lab {
        Lab::of(&TENANT.replace("statementTimeout: 60s", &format!("statementTimeout: {limit}"))).await
    }

    /// As [`Lab::open`], with a view `shown` that `north` may read, of the table `marked`: of its three rows it hides the one with `hidden_three`,
    /// as `ranks` does, of which PostgreSQL knows the greatest value by an index.
    pub(super) async fn with_view() -> Lab {
        const SCRIPT: &str = "    create domain lab.document as json;
    create table lab.marked (id int primary key, word text not null, n int generated always as (id - 3) stored, docs lab.document[]);
    insert into lab.marked values (1, 'one'), (2, 'two'), (3, 'hidden_three');
    create table lab.allowed (id int primary key);
    insert into lab.allowed values (1), (2);
    create view lab.shown as select m.id, m.word, 100 / m.n as rate, coalesce(100 / m.n, 0) as share, m.docs from lab.marked m join lab.allowed a using (id);
    create view lab.above as select s.id, s.word, s.rate from lab.shown s;
    create view lab.flagged as select m.id, m.word, 1 / m.n < 0 as is_deleted from lab.marked m join lab.allowed a using (id) where a.id < 3;
    create table lab.bins (id int primary key, word text, is_deleted boolean not null default false, to_json int);
    insert into lab.bins (id, word, is_deleted) values (1, 'kept', false), (2, 'gone', true), (3, 'third', false);
    create table lab.ranked as select g as id, 'w' || g as word, g as k from generate_series(1, 20000) g;
    alter table lab.ranked add primary key (id);
    create index on lab.ranked (k);
    create index on lab.ranked ((100 / k));
    create function lab.shows(int) returns boolean language plpgsql stable cost 1000 as 'begin return $1 <> 3; end';
    create view lab.ranks as select id, word, k as rate, k as n from lab.ranked
        union all select m.id, m.word, 100 / m.n, m.n from lab.marked m where lab.shows(m.id);
    analyze lab.ranked;
---
";
        const ENTITIES: &str = "  entities:
    - {name: marked, source: {schema: lab, object: marked}, rowLevelSecurity: {none: true}}
    - {name: allowed, source: {schema: lab, object: allowed}, rowLevelSecurity: {none: true}}
    - {name: shown, kind: View, source: {schema: lab, object: shown}, keyFields: [id]}
    - {name: above, kind: View, source: {schema: lab, object: above}, keyFields: [id]}
    - {name: ranked, source: {schema: lab, object: ranked}, rowLevelSecurity: {none: true}}
    - {name: ranks, kind: View, source: {schema: lab, object: ranks}, keyFields: [id]}
    - {name: flagged, kind: View, source: {schema: lab, object: flagged}, keyFields: [id], hideSoftDeleted: true}
    - {name: bins, source: {schema: lab, object: bins}, hideSoftDeleted: true, rowLevelSecurity: {none: true}}
";
        const RELATIONSHIPS: &str = "---
apiVersion: rowgate.dev/v1alpha1
kind: Relationship
metadata: {name: rated}
spec: {tenantRef: {name: lab}, name: rated, from: {entity: bins, fields: [id]}, to: {entity: shown, fields: [rate]}, cardinality: Many}
---
apiVersion: rowgate.dev/v1alpha1
kind: Relationship
metadata: {name: one}
spec: {tenantRef: {name: lab}, name: one, from: {entity: bins, fields: [id]}, to: {entity: shown, fields: [id]}, cardinality: One, assumeUnique: true}
---
apiVersion: rowgate.dev/v1alpha1
kind: Relationship
metadata: {name: binned}
spec: {tenantRef: {name: lab}, name: binned, from: {entity: shown, fields: [rate]}, to: {entity: bins, fields: [id]}, cardinality: One}
";
        let of_north = "      - {entity: notes, actions: [read], fields: {include: [id, region, word]}}\n";
        let shown = ["shown", "above", "flagged", "bins", "ranks"]
            .map(|it| format!("      - {{entity: {it}, actions: [read], fields: {{include: ['*']}}}}\n"))
            .concat();
        let shown = format!("{of_north}{shown}");
        let tenant = TENANT
            .replacen("---\n", SCRIPT, 1)
            .replacen("  entities:\n", ENTITIES, 1)
            .replacen(of_north, &shown, 1);
        Lab::of(&format!("{tenant}{RELATIONSHIPS}")).await
    }

    /// As [`Lab::open`], with a table `many` of two million long rows, which a relationship leads from to `notes`.
    pub(super) async fn with_many() -> Lab {
        const ENTITY: &str = "  entities:
    - {name: many, source: {schema: lab, object: many}, keyFields: [id], rowLevelSecurity: {none: true}}
";
        const RELATIONSHIP: &str = "---
apiVersion: rowgate.dev/v1alpha1
kind: Relationship
metadata: {name: many-note}
spec: {tenantRef: {name: lab}, name: note, from: {entity: many, fields: [id]}, to: {entity: notes, fields: [id]}, cardinality: Many}
";
        let table = "    create table lab.many as select g::bigint as id from generate_series(1, 2000000) g; alter table lab.many add t text default repeat('x', 400);\n---\n";
        let of_plain = "      - {entity: kinds, actions: [read], fields: {include: ['*']}}\n---\n";
        let may = of_plain
            .replace("---\n", "      - {entity: many, actions: [read], fields: {include: ['*']}}\n---\n");
        let tenant = TENANT
            .replacen("---\n", table, 1)
            .replacen("  entities:\n", ENTITY, 1)
            .replacen(of_plain, &may, 1);
        Lab::of(&format!("{tenant}{RELATIONSHIP}")).await
    }

    async fn of(tenant: &str) -> Lab {
        Lab::compared_every(SELDOM, tenant).await
    }

    /// As [`Lab::open`]; what is done by hand is noticed within a second.
    pub(super) async fn looked_at() -> Lab {
        Lab::compared_every(1, TENANT).await
    }

    async fn compared_every(seconds: u32, tenant: &str) -> Lab {
        let (server, world) = World::founded_on_a_server(&[("lab.yaml", tenant)]).await;
        let mut world = world.compared_every(seconds);
        world
            .start_with(|command| {
                command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
            })
            .await;
        execute(&mut server.connect("lab").await, TRAPS).await;
        Lab { world, server, client: Client::new() }
    }

    /// The same in a database that was there before, with what PUBLIC has there: its owner is the role `lab`.
    pub(super) async fn adopted() -> Lab {
        let server = Server::own().await;
        let (script, manifests) = TENANT.split_once("---\n").expect("a script, and what follows");
        let script = script.split_once("schema.sql: |\n").expect("a script").1;
        let made = "database: {name: lab, bootstrap: {configMapRef: {name: lab-script}}}";
        assert!(manifests.contains(made));
        let tenant = manifests.replace(made, "database: {name: lab, create: false}");
        let mut postgres = server.connect("postgres").await;
        execute(&mut postgres, "create role lab login").await;
        execute(&mut postgres, "create database lab owner lab").await;
        let mut owner = server.connect("lab").await;
        execute(&mut owner, &format!("set session authorization lab; {script}")).await;
        let mut world = World::on(&server, &[("lab.yaml", &tenant)]);
        world.spawn(|command| {
            command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
        });
        server.lend("grant lab to rowgate_operator with admin true, inherit false, set false").await;
        until("a key", async || world.secret("south")).await;
        world.greets().await;
        let mut superuser = server.connect("lab").await;
        // in one transaction: SQL of callers is off while PUBLIC has more
        execute(&mut superuser, &format!("{TRAPS}; {CONFINED}")).await;
        Lab { world, server, client: Client::new() }
    }

    /// The answer to a body.
    pub(super) async fn send(&self, key: &str, body: &str) -> Reply {
        let url = format!("{}/api/ddl/sql", self.world.url());
        let key = self.world.key(key);
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        // a connection of its own: while the test reads an answer of 32 MiB the server may have closed one that waits
        Client::new().send("POST", &url, &headers, body).await
    }

    pub(super) async fn ask(&self, key: &str, query: &str, parameters: Value) -> Reply {
        self.send(key, &json!({"query": query, "parameters": parameters}).to_string()).await
    }

    /// The whole answer of a query that succeeds.
    pub(super) async fn told(&self, key: &str, query: &str, parameters: Value) -> Value {
        let reply = self.ask(key, query, parameters).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        reply.json()
    }

    /// Its rows.
    pub(super) async fn rows(&self, key: &str, query: &str) -> Value {
        self.told(key, query, json!({})).await["value"].clone()
    }

    /// Status and code of a query that is refused, and its message with all details.
    pub(super) async fn refused(&self, key: &str, query: &str, parameters: Value) -> (u16, String, String) {
        refusal(&self.ask(key, query, parameters).await)
    }

    pub(super) async fn get(&self, key: &str, path: &str) -> Reply {
        let key = self.world.key(key);
        self.client.get(&format!("{}{path}", self.world.url()), &[("X-API-Key", &key)]).await
    }

    /// As the superuser.
    pub(super) async fn sql(&self, script: &str) {
        execute(&mut self.server.connect("lab").await, script).await;
    }

    /// What the superuser sees.
    pub(super) async fn seen(&self, query: &str) -> Vec<Value> {
        rows(&mut self.server.connect("lab").await, query).await
    }
}

pub(super) fn refusal(reply: &Reply) -> (u16, String, String) {
    let error = &reply.json()["error"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let details = error["details"].as_array().into_iter().flatten().map(text);
    let told: Vec<String> = std::iter::once(text(&error["message"])).chain(details).collect();
    (reply.status.as_u16(), text(&error["code"]), told.join(" | "))
}
