//! Writes that the database does not do in time, or not at all, or that a key sends too fast.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;

/// `slow` allows a statement 300 ms, `busy` a key one request in a second.
const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: slow-script}
data:
  schema.sql: |
    create schema s;
    create table s.things (id integer primary key, note text not null);
    create function s.act() returns trigger language plpgsql as
        'begin
             if new.note = ''slow'' then perform pg_sleep(600); end if;
             if new.note = ''broken'' then raise exception using errcode = ''XX000'', message = ''secret words''; end if;
             return new;
         end';
    create trigger act before insert or update on s.things for each row execute function s.act();
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: slow}
spec:
  database: {name: slow, bootstrap: {configMapRef: {name: slow-script}}}
  limits: {statementTimeout: 300ms}
  entities:
    - {name: things, source: {schema: s, object: things}, concurrencyProtection: {}, rowLevelSecurity: {none: true}}
  shared: {permissions: [{entity: things, actions: [read, create, update]}]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: slow-key}
spec: {tenantRef: {name: slow}}
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: busy}
spec: {database: {}, limits: {requestsPerSecond: 1}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: busy-key}
spec: {tenantRef: {name: busy}}
";

const WRITES: [(&str, &str, &str); 3] = [
    ("POST", "/things", "\"id\": 1, "),
    ("PATCH", "/things/id/1", ""),
    ("PUT", "/things/id/1", "\"is_deleted\": false, "),
];

#[tokio::test]
async fn a_write_that_is_not_done_says_why_and_stores_nothing() {
    let server = Server::own().await;
    let mut world = World::on(&server, &[("slow.yaml", MANIFEST)]);
    world.start().await;
    let client = Client::new();
    let send = async |tenant: &str, method: &str, path: &str, body: &str| {
        let key = world.key(&format!("{tenant}-key"));
        let url = format!("{}/auth/{tenant}/api{path}", world.url());
        crate::writes::send(&client, &key, (method, &url), &[], body).await
    };
    let check = |reply: &Reply, status: u16, code: &str| {
        let told = reply.json()["error"].clone();
        assert_eq!((reply.status.as_u16(), told["code"].as_str()), (status, Some(code)), "{reply:?}");
        assert!(!reply.body.contains("secret"), "{reply:?}");
        assert_eq!(reply.header("retry-after").is_some(), matches!(status, 429 | 503), "{reply:?}");
    };
    for (method, path, field) in WRITES {
        for (note, status, code) in [("slow", 504, "StatementTimeout"), ("broken", 500, "Internal")] {
            let reply = send("slow", method, path, &format!(r#"{{{field}"note": "{note}"}}"#)).await;
            check(&reply, status, code);
        }
    }
    assert!(rows(&mut server.connect("slow").await, "select 1 from s.things").await.is_empty());
    // the session is as good as before
    assert_eq!(send("slow", "POST", "/things", r#"{"id": 1, "note": "x"}"#).await.status, 201);

    for (method, path, _) in [WRITES[0], WRITES[1], WRITES[2], ("DELETE", "/things/id/1", "")] {
        until("a key that asked too fast", async || {
            let reply = send("busy", method, path, "{}").await;
            if reply.status == 429 {
                check(&reply, 429, "RateLimited");
            }
            (reply.status == 429).then_some(())
        })
        .await;
    }
    let mut superuser = server.connect("postgres").await;
    execute(&mut superuser, "alter database slow allow_connections false").await;
    execute(&mut superuser, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'slow'")
        .await;
    for (method, path, field) in WRITES {
        let reply = send("slow", method, path, &format!(r#"{{{field}"note": "late"}}"#)).await;
        check(&reply, 503, "Unavailable");
    }
}
