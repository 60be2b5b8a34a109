//! Every code that a read can be refused with, through HTTP: the request, and the whole answer that it gets. The table
//! of answers is `refusals/table.snap`; `INSTA_UPDATE=always` writes it anew, to be read before it is committed.

mod requests;

use std::fmt::Write as _;

use rowgate_core::problem::Code;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::world::World;
use serde_json::json;

use crate::http::conventions::assert_shape;
use requests::{Key, Padding, REQUESTS, Request};

/// Three more tenants. `busy` lets a key ask once in a second; `slow` allows a statement 50 ms and has a view that takes
/// longer, and one that fails in a way that nobody foresaw; `gone` is the one whose database the test closes.
const MORE: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: slow-script}
data:
  schema.sql: |
    create schema s;
    create view s.sleeper as select 1 as id, pg_catalog.pg_sleep(600) is null as slept;
    create view s.broken as select 1 as id, pg_catalog.current_setting('no.such_setting') as setting;
    create view s.halves as select n as id, 1 / (n - 1) as half from pg_catalog.generate_series(1, 2) n;
    create view s.docs as select 1 as id, '{}'::json as doc, point '(1,2)' as place;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: slow}
spec:
  database: {bootstrap: {configMapRef: {name: slow-script}}}
  limits: {statementTimeout: 50ms}
  entities:
    - {name: sleeper, source: {schema: s, object: sleeper}, kind: View, keyFields: [id]}
    - {name: broken, source: {schema: s, object: broken}, kind: View, keyFields: [id]}
    - {name: docs, source: {schema: s, object: docs}, kind: View, keyFields: [id]}
    - {name: halves, source: {schema: s, object: halves}, kind: View, keyFields: [id]}
  shared:
    permissions:
      - {entity: sleeper, actions: [read]}
      - {entity: broken, actions: [read]}
      - {entity: docs, actions: [read]}
      - {entity: halves, actions: [read]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: slow-key}
spec: {tenantRef: {name: slow}}
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: gone}
spec: {database: {name: gone}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: gone-key}
spec: {tenantRef: {name: gone}}
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

/// Only a write is refused with them: `writes::refused` has a row for each, or `writes::protected`.
pub(crate) const OF_WRITES: [Code; 11] = [
    Code::Forbidden,
    Code::ReadOnlyColumn,
    Code::RowNotFound,
    Code::UniqueViolation,
    Code::ForeignKeyViolation,
    Code::SerializationFailure,
    Code::ConstraintViolation,
    Code::PreconditionFailed,
    Code::DirectDeleteBlocked,
    Code::StaleRow,
    Code::ExpectedTsRequired,
];

/// Only a request with a body is refused with them: see `neighbours::bodies`.
const OF_BODIES: [Code; 2] = [Code::BodyShareExceeded, Code::BodyBudgetExceeded];

/// Only a call is refused with it: see `calls::errors`.
const OF_CALLS: [Code; 1] = [Code::ProcedureError];

/// Only a SELECT that a caller wrote is refused with it: see `sql::refusals`.
const OF_SQL: [Code; 1] = [Code::InvalidSql];

/// Only subscriptions are refused with them: see `webhooks::api`.
const OF_WEBHOOKS: [Code; 3] =
    [Code::InvalidDestination, Code::InvalidPayloadQuery, Code::ManagedByKubernetes];

/// Seen to fail with a code without a row, and with a hint taken from all fields of the entity.
#[tokio::test]
async fn every_refusal_of_a_read_says_what_to_change() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.write("more.yaml", MORE);
    world.start().await;
    let mut superuser = server.connect("postgres").await;
    execute(&mut superuser, "alter database gone allow_connections false").await;
    execute(&mut superuser, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'gone'")
        .await;

    let (mut table, mut codes) = (String::new(), Vec::new());
    for request in REQUESTS {
        let mut reply = ask(&world, request).await;
        // Only a rate limit lets some pass first.
        for _ in 0..1_000 {
            if reply.status != 200 {
                break;
            }
            reply = ask(&world, request).await;
        }
        let error = reply.json()["error"].take();
        let code = Code::ALL.into_iter().find(|code| json!(code) == error["code"]);
        let code = code.unwrap_or_else(|| panic!("{}: {reply:?}", request.why));
        assert_shape(&reply, code, request.why);
        let path = if request.path.len() > 100 { &request.path[..100] } else { request.path };
        let headers: String =
            request.headers.iter().map(|(name, value)| format!(" {name}: {value}")).collect();
        writeln!(table, "# {}\n{} {path}{headers}", request.why, request.method).expect("a String takes it");
        writeln!(
            table,
            "{} {}: {}",
            code.status(),
            error["code"].as_str().expect("a text"),
            error["message"].as_str().expect("a text")
        )
        .expect("a String takes it");
        for detail in error["details"].as_array().expect("a list") {
            writeln!(table, "  {}", detail.as_str().expect("a text")).expect("a String takes it");
        }
        for name in ["allow", "retry-after", "www-authenticate"] {
            if let Some(value) = reply.header(name) {
                writeln!(table, "  {name}: {value}").expect("a String takes it");
            }
        }
        table.push('\n');
        codes.push(code);
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("refusals");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("table", table));
    for code in Code::ALL {
        let elsewhere = [&OF_WRITES[..], &OF_BODIES, &OF_CALLS, &OF_SQL, &OF_WEBHOOKS].concat();
        let has_row = codes.contains(&code) || elsewhere.contains(&code);
        assert!(has_row, "{code:?} needs a row");
    }
}

async fn ask(world: &World, request: &Request) -> Reply {
    let key = match request.key {
        Key::Of(name) => Some(world.key(name)),
        Key::None => None,
    };
    let key = key.as_deref().map(|key| ("X-API-Key", key));
    let mut headers: Vec<_> = key.into_iter().chain(request.headers.iter().copied()).collect();
    let (mut url, mut filler, mut body) =
        (format!("{}{}", world.url(), request.path), String::new(), String::new());
    match request.padding {
        Padding::None => {}
        Padding::Path(n) => url.push_str(&"x".repeat(n)),
        Padding::Header(n) => filler = "x".repeat(n),
        Padding::Body(n) => body = "x".repeat(n),
    }
    if !filler.is_empty() {
        headers.push(("X-Filler", &filler));
    }
    Client::new().send(request.method, &url, &headers, &body).await
}
