//! `set-relationship`: what it writes is served, and it writes nothing that would not be.

use std::fs;
use std::process::{Command, Output};

use rowgate_tests::client::Client;
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary};
use serde_json::{Value, json};

const MANIFEST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: desk-script}
data:
  schema.sql: |
    create schema t;
    create table t.customers (id int primary key, name text);
    create table t.orders (id int primary key, customer int references t.customers, billed_to int references t.customers);
    create index on t.orders (customer);
    create index on t.orders (billed_to);
    insert into t.customers values (1, 'Ada'), (2, 'Bob');
    insert into t.orders values (1, 1, 2), (2, 2, null);
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: desk}
spec:
  database: {bootstrap: {configMapRef: {name: desk-script, key: schema.sql}}}
  entities:
    - {name: customers, source: {schema: t, object: customers}, rowLevelSecurity: {none: true}}
    - {name: orders, source: {schema: t, object: orders}, mappings: {customer: customer_id}, rowLevelSecurity: {none: true}}
  shared:
    permissions:
      - {entity: customers, actions: [read]}
      - {entity: orders, actions: [read]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: desk}
spec: {tenantRef: {name: desk}}
";

/// `args` are words with single spaces between them.
fn ran(world: &World, args: &str) -> Output {
    let mut command = Command::new(binary());
    command.arg("set-relationship").args(args.split(' ')).arg("--state").arg(world.state());
    command.output().expect("the binary was built; `make test` builds it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// It ends with 2, says each part and prints nothing.
fn refused(world: &World, args: &str, parts: &[&str]) {
    let output = ran(world, args);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{args}: {said}");
    for part in parts {
        assert!(said.contains(part), "{args}: {part:?} is missing in: {said}");
    }
}

/// The orders with this member, once it is served.
async fn expanded(client: &Client, world: &World, entity: &str, member: &str) -> Value {
    let key = world.key("desk");
    let path = format!("{}/auth/desk/api/{entity}?$select=id&$expand={member}($select=id)", world.url());
    until(&format!("the relationship {member}"), async || {
        let reply = client.get(&path, &[("X-API-Key", &key)]).await;
        (reply.status == 200).then(|| reply.json()["value"].clone())
    })
    .await
}

#[tokio::test]
async fn what_it_writes_is_served_and_what_would_not_be_is_refused() {
    let mut world = World::new(&[("desk.yaml", MANIFEST)]).await;
    let client = Client::new();

    // standard output, before anything runs
    let one = "--from orders.customer_id --to customers.id --inverse orders --tenant desk";
    let printed = ran(&world, one);
    assert!(printed.status.success(), "{printed:?}");
    world.write("made.yaml", &text(&printed.stdout));
    world.start().await;
    let customer = json!([{"id": 1, "customer": {"id": 1}}, {"id": 2, "customer": {"id": 2}}]);
    assert_eq!(expanded(&client, &world, "orders", "customer").await, customer);
    let orders = json!([{"id": 1, "orders": [{"id": 1}]}, {"id": 2, "orders": [{"id": 2}]}]);
    assert_eq!(expanded(&client, &world, "customers", "orders").await, orders);

    // the only Tenant of the state folder
    let named = ran(&world, "--from orders.id --to customers.id --name twin");
    assert!(named.status.success() && text(&named.stdout).contains("name: desk"), "{named:?}");

    let dir = world.manifests().display().to_string();
    fs::write(world.manifests().join("relationship-orders-mine.yaml"), "").expect("the folder is ours");
    for (args, parts) in [
        ("--from ordrs.customer_id --to customers.id", &["no entity ordrs", "did you mean orders?"][..]),
        ("--from orders.customer_id --to customers", &["give from.fields and to.fields both"]),
        ("--from orders.customer_id --to customers.id --name 1st", &["does not start with a digit"]),
        (
            "--from orders.customer_id --to customers.id",
            &["a relationship customer already", "choose another --name"],
        ),
        (
            "--from orders.customer_id --to customers.id --name mine",
            &["relationship-orders-mine.yaml exists", "not replaced"],
        ),
        ("--from orders. --to customers.id", &["\"orders.\" is not an entity with its fields"]),
        ("--from orders --to customers --through tags", &["give both as app.order_tags"]),
        ("--from orders.customer_id --to customers.id --tenant shop", &["there is no Tenant shop"]),
        ("--from-foreign-keys --tenant shop", &["there is no Tenant shop", "desk"]),
        ("--from orders", &["--to"]),
        ("--from-foreign-keys --name x", &["cannot be used with"]),
    ] {
        refused(&world, &format!("{args} --manifests {dir}"), parts);
    }
    assert_eq!(fs::read_dir(world.manifests()).expect("ours").count(), 3, "nothing was written");

    // of the two foreign keys one has its Relationship
    let keys = ran(&world, &format!("--from-foreign-keys --manifests {dir}"));
    let said = text(&keys.stderr);
    assert!(keys.status.success() && said.lines().count() == 1, "{said}");
    assert!(said.contains("relationship-orders-customers.yaml"), "{said}");
    let billed = json!([{"id": 1, "customers": {"id": 2}}, {"id": 2, "customers": null}]);
    assert_eq!(expanded(&client, &world, "orders", "customers").await, billed);
    let back = json!([{"id": 1, "orders_by_customers": []}, {"id": 2, "orders_by_customers": [{"id": 1}]}]);
    assert_eq!(expanded(&client, &world, "customers", "orders_by_customers").await, back);

    let again = ran(&world, &format!("--from-foreign-keys --manifests {dir}"));
    assert!(again.status.success() && text(&again.stderr).contains("nothing was written"), "{again:?}");
}
