//! Names that a schema cannot have: the Tenant's status names what is left out, and nothing else is.

use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Value, json};

const MANIFEST: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: names-script}
data:
  schema.sql: |
    create schema n;
    create table n.orders (id int primary key, "in stock" bool, "2nd" text, plain text);
    create table n.more (id int primary key);
    create table n.int (id int primary key);
    create table n.rest (id int primary key, "no name" text);
    insert into n.orders values (1, true, 'b', 'p');
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: names}
spec:
  database: {bootstrap: {configMapRef: {name: names-script}}}
  entities:
    - {name: orders, source: {schema: n, object: orders}, rowLevelSecurity: {none: true}}
    - {name: zmore, source: {schema: n, object: more}, graphql: {singular: Orders}, rowLevelSecurity: {none: true}}
    - {name: int, source: {schema: n, object: int}, rowLevelSecurity: {none: true}}
    - {name: rest, source: {schema: n, object: rest}, graphql: {enabled: false}, rowLevelSecurity: {none: true}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec:
  tenantRef: {name: names}
  scope:
    permissions:
      - {entity: orders, actions: [read], fields: {include: ['*']}}
      - {entity: zmore, actions: [read], fields: {include: ['*']}}
      - {entity: int, actions: [read], fields: {include: ['*']}}
      - {entity: rest, actions: [read], fields: {include: ['*']}}
"#;

async fn schema(world: &World, client: &Client) -> Value {
    let key = world.key("all");
    let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
    let body = json!({"query": "{ __schema { queryType { fields { name } } } __type(name: \"Orders\") { fields { name } } }"});
    let url = format!("{}/auth/names/graphql", world.url());
    let reply = client.send("POST", &url, &headers, &body.to_string()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["data"].clone()
}

fn names(list: &Value) -> Vec<&str> {
    list["fields"].as_array().expect("fields").iter().filter_map(|field| field["name"].as_str()).collect()
}

#[tokio::test]
async fn what_a_schema_leaves_out_is_warned_of_until_it_has_a_name() {
    let server = Server::own().await;
    let mut world = World::on(&server, &[("names.yaml", MANIFEST)]);
    world.start().await;
    let client = Client::new();
    let found = schema(&world, &client).await;
    assert_eq!(names(&found["__schema"]["queryType"]), ["orders", "orders_by_pk"]);
    assert_eq!(names(&found["__type"]), ["id", "plain"]);
    let status = world.status("Tenant", "names");
    assert_eq!(
        status["warnings"],
        json!([
            "entities[int]: GraphQL leaves it out, because its type Int or a name that is made of it has another meaning there; \
             set graphql.singular and graphql.plural",
            "entities[orders]: GraphQL leaves out the fields \"in stock\", \"2nd\", whose names it cannot spell; give them other \
             names in mappings",
            "entities[zmore]: GraphQL leaves it out, because its type Orders or a name that is made of it has another meaning there; \
             set graphql.singular and graphql.plural",
        ])
    );

    world.edit("names.yaml", "graphql: {singular: Orders}", "graphql: {singular: Extra}");
    world.edit("names.yaml", "name: int, ", "name: int, graphql: {singular: Number}, ");
    world.edit(
        "names.yaml",
        "source: {schema: n, object: orders}, ",
        "source: {schema: n, object: orders}, mappings: {in stock: in_stock, 2nd: second}, ",
    );
    until("a status without warnings", async || {
        world.status("Tenant", "names")["warnings"].is_null().then_some(())
    })
    .await;
    until("all of them in the schema", async || {
        let found = schema(&world, &client).await;
        let all = ["int", "Number_by_pk", "orders", "orders_by_pk", "zmore", "Extra_by_pk"];
        (names(&found["__schema"]["queryType"]) == all
            && names(&found["__type"]) == ["id", "in_stock", "second", "plain"])
        .then_some(())
    })
    .await;
}
