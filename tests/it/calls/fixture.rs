//! A tenant whose routines are called, by keys with different rights. `plain` and `other` are unscoped, `clerk` and `poor` have
//! roles of their own.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::world::World;
use serde_json::{Value, json};

/// The bootstrap script stands in `script.sql`, and every routine in it is an entity of its own name.
const SCRIPT: &str = include_str!("script.sql");

/// Routines that everybody may call, but for `poor`, who may call `scalar` alone.
const ROUTINES: &[&str] = &[
    "scalar", "pairs", "listed", "split", "both", "defaults", "whole", "one_of", "nothing", "strict",
    "kinds", "transfer", "halves", "counted", "who", "raises", "breaks", "sleeps", "stubborn", "leave",
    "found", "grown", "escape", "peek", "gate", "big", "deferred", "looks",
];

fn manifest() -> String {
    let script: String = SCRIPT.lines().map(|line| format!("    {line}\n")).collect();
    let entities: String = ROUTINES
        .iter()
        .map(|name| {
            format!("    - {{name: {name}, kind: Procedure, source: {{schema: c, object: {name}}}}}\n")
        })
        .collect();
    let tables: String = ["accounts", "notes", "owed"]
        .iter()
        .map(|name| {
            format!(
                "    - {{name: {name}, source: {{schema: c, object: {name}}}, rowLevelSecurity: {{none: true}}}}\n"
            )
        })
        .collect();
    let may: String =
        ROUTINES.iter().map(|name| format!("      - {{entity: {name}, actions: [execute]}}\n")).collect();
    let key = |name: &str, scope: &str| {
        format!(
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {name}}}\nspec:\n  \
             tenantRef: {{name: desk}}\n{scope}"
        )
    };
    let scoped = |rights: &str| format!("  claims: {{region: north}}\n  scope:\n    permissions:\n{rights}");
    let rows: String = ["accounts", "notes", "owed"]
        .iter()
        .map(|name| {
            format!(
                "      - {{entity: {name}, actions: [read, create, update], fields: {{include: ['*']}}}}\n"
            )
        })
        .collect();
    [
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: desk-script}}\ndata:\n  schema.sql: |\n{script}"),
        format!(
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: desk}}\nspec:\n  database: \
             {{name: desk, bootstrap: {{configMapRef: {{name: desk-script}}}}}}\n  limits: {{statementTimeout: 10m}}\n  entities:\n\
             {tables}{entities}  shared:\n    permissions:\n{rows}{may}"
        ),
        key("plain", ""),
        key("other", ""),
        key("clerk", &scoped(&format!("{rows}{may}"))),
        key("second", &scoped(&format!("{rows}{may}"))),
        key("poor", &scoped("      - {entity: scalar, actions: [execute]}\n")),
    ]
    .concat()
}

pub(super) struct Desk {
    pub(super) world: World,
    pub(super) server: Server,
    pub(super) client: Client,
}

impl Desk {
    /// Reconciling looks at nothing by itself, so that it is a data plane that ends calls.
    pub(super) async fn open() -> Desk {
        Desk::compared_every(3_600).await
    }

    /// Everything is compared after so many seconds although nothing changed.
    pub(super) async fn compared_every(seconds: u32) -> Desk {
        let (server, mut world) = World::founded_on_a_server(&[("desk.yaml", &manifest())]).await;
        world.resync_seconds = seconds;
        world.start().await;
        Desk { world, server, client: Client::new() }
    }

    /// A call by the ApiKey with this name.
    pub(super) async fn call(&self, key: &str, name: &str, body: Value) -> Reply {
        self.ask(key, "POST", &format!("/{name}"), &body.to_string()).await
    }

    /// A request of the ApiKey with this name. `path` begins behind the tenant's address.
    pub(super) async fn ask(&self, key: &str, method: &str, path: &str, body: &str) -> Reply {
        self.ask_at(&self.world.url(), &self.world.key(key), method, path, body).await
    }

    /// As [`Desk::ask`], with a key string, at any data plane.
    pub(super) async fn ask_at(&self, url: &str, key: &str, method: &str, path: &str, body: &str) -> Reply {
        let url = format!("{url}/auth/desk/api{path}");
        let headers = [("X-API-Key", key), ("Content-Type", "application/json")];
        self.client.send(method, &url, &headers, body).await
    }

    /// Begins a call that goes on in a task.
    pub(super) fn begin(
        &self,
        url: &str,
        key: &str,
        name: &str,
        body: &Value,
    ) -> tokio::task::JoinHandle<Reply> {
        let url = format!("{url}/auth/desk/api/{name}");
        let (client, key, body) = (self.client.clone(), self.world.key(key), body.to_string());
        tokio::spawn(async move {
            let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
            client.send("POST", &url, &headers, &body).await
        })
    }

    /// What the superuser sees.
    pub(super) async fn rows(&self, query: &str) -> Vec<Value> {
        rows(&mut self.server.connect("desk").await, query).await
    }

    /// One number that the superuser sees.
    pub(super) async fn number(&self, query: &str) -> i64 {
        let query = format!("select ({query})::bigint as n");
        self.rows(&query).await[0]["n"].as_i64().expect("a number")
    }

    /// How many calls of the routine with this name run at this moment.
    pub(super) async fn running(&self, name: &str) -> i64 {
        let query = format!(
            "select count(*) from pg_stat_activity where state = 'active' and query like '%\"{name}\"(%' and pid <> pg_backend_pid()"
        );
        self.number(&query).await
    }

    pub(super) async fn replica(&self) -> DataPlane {
        self.world.replica().await
    }
}

/// The rows of a 201.
pub(super) fn given(reply: &Reply) -> Value {
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()["value"].clone()
}

/// The code of a refusal, its status and its message.
pub(super) fn refusal(reply: &Reply) -> (String, u16, String) {
    let error = reply.json()["error"].clone();
    assert_eq!(error["status"], json!(reply.status.as_u16()), "{reply:?}");
    let text = |field: &str| error[field].as_str().unwrap_or_else(|| panic!("{reply:?}")).to_owned();
    (text("code"), reply.status.as_u16(), text("message"))
}
