//! A tenant in a running process of its own, whose tables are all served to one key.

use std::fmt::Write as _;

use rowgate_tests::servers::postgres::major;
use rowgate_tests::world::World;

/// Whether the PostgreSQL of this run has such a value: 16 has no infinite intervals.
pub(super) fn exists(declared: &str, value: &str) -> bool {
    17 <= major() || declared != "interval" || !value.contains("infinity")
}

pub(super) struct Fixture {
    pub(super) world: World,
    client: reqwest::Client,
    key: String,
}

impl Fixture {
    /// A tenant `values` that `script` sets up, with the tables `entities` in schema `v`, keyed by `id`.
    pub(super) async fn new(script: &str, entities: &[&str]) -> Fixture {
        let script = script.replace('\n', "\n    ");
        let mut text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: script}}\ndata:\n  schema.sql: |\n    {script}\n\
             ---\napiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: values}}\nspec:\n  \
             database: {{bootstrap: {{configMapRef: {{name: script, key: schema.sql}}}}}}\n  entities:\n"
        );
        let mut permissions = String::new();
        for entity in entities {
            let source = format!("source: {{schema: v, object: {entity}}}, keyFields: [id]");
            let policy = "rowLevelSecurity: {none: true}";
            writeln!(text, "    - {{name: {entity}, {source}, {policy}}}").expect("writing to a string");
            writeln!(
                permissions,
                "      - {{entity: {entity}, actions: [read, create, update], fields: {{include: ['*']}}}}"
            )
            .expect("writing to a string");
        }
        write!(
            text,
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: reader}}\nspec:\n  \
             tenantRef: {{name: values}}\n  scope:\n    permissions:\n{permissions}"
        )
        .expect("writing to a string");
        let mut world = World::new(&[("values.yaml", &text)]).await;
        world.start().await;
        let key = world.key("reader");
        Fixture { world, client: reqwest::Client::new(), key }
    }

    /// Status and body of a request with a body of JSON.
    pub(super) async fn send(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let url = format!("{}/auth/values/api/{path}", self.world.url());
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let request = self.client.request(method, &url).header("X-API-Key", &self.key);
        let request = request.header("Content-Type", "application/json").body(body.to_owned());
        let response = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
        let status = response.status().as_u16();
        (status, response.text().await.unwrap_or_else(|error| panic!("{url}: {error}")))
    }

    /// Status and body of a request for aggregates.
    pub(super) async fn aggregate(&self, entity: &str, body: &str) -> (u16, String) {
        let url = format!("{}/api/ddl/aggregates/{entity}", self.world.url());
        let request = self.client.post(&url).header("X-API-Key", &self.key);
        let request = request.header("Content-Type", "application/json").body(body.to_owned());
        let response = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
        let status = response.status().as_u16();
        (status, response.text().await.unwrap_or_else(|error| panic!("{url}: {error}")))
    }

    /// Status and body of `GET /auth/values/api/<path>`.
    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let url = match path.strip_prefix("http") {
            Some(_) => path.to_owned(),
            None => format!("{}/auth/values/api/{path}", self.world.url()),
        };
        let sent = self.client.get(&url).header("X-API-Key", &self.key).send().await;
        let response = sent.unwrap_or_else(|error| panic!("GET {url}: {error}"));
        let status = response.status().as_u16();
        (status, response.text().await.unwrap_or_else(|error| panic!("GET {url}: {error}")))
    }

    /// The rows as they were written, joined by commas, and where the next page is.
    pub(super) async fn page(&self, path: &str) -> (String, Option<String>) {
        let (status, text) = self.get(path).await;
        let rows = text.strip_prefix("{\"value\":[").filter(|_| status == 200);
        let rows = rows.unwrap_or_else(|| panic!("{path}: {status} {text}"));
        match rows.rsplit_once("],\"nextLink\":\"") {
            Some((rows, link)) => {
                let link = link.strip_suffix("\"}").expect("the link comes last");
                (rows.to_owned(), Some(link.to_owned()))
            }
            None => (rows.strip_suffix("]}").expect("the rows come last").to_owned(), None),
        }
    }
}
