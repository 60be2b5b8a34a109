//! Relationships come, follow the database, and go; a table that only links others is opened to those who read both ends.

use rowgate_tests::servers::postgres::{attempt, connect, execute, rows};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use sqlx::PgConnection;

use crate::reconcile::acme::{key, one};

scenarios!(a_relationship_follows_the_database_and_opens_what_links_its_ends);

const TENANT: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: market-script}
data:
  schema.sql: |
    create schema app;
    create table app.customers (id bigint primary key, name text not null);
    create table app.orders (id bigint primary key, customer_id bigint not null references app.customers, note text);
    create table app.tags (id bigint primary key, word text not null);
    create table app.order_tags (order_id bigint references app.orders, tag_id bigint references app.tags, secret text, primary key (order_id, tag_id));
    insert into app.customers values (1, 'Ada');
    insert into app.orders values (1, 1, 'first');
    insert into app.tags values (1, 'gift');
    insert into app.order_tags values (1, 1, 'not shown');
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: market}
spec:
  database: {name: market, bootstrap: {configMapRef: {name: market-script}}}
  entities:
    - {name: customers, source: {schema: app, object: customers}, rowLevelSecurity: {none: true}}
    - {name: orders, source: {schema: app, object: orders}, mappings: {customer_id: customerId}, rowLevelSecurity: {none: true}}
    - {name: tags, source: {schema: app, object: tags}, rowLevelSecurity: {none: true}}
";

fn relationship(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: rowgate.dev/v1alpha1\nkind: Relationship\nmetadata: {{name: {name}}}\n\
         spec: {{tenantRef: {{name: market}}, {spec}}}\n"
    )
}

fn reader(entities: &[&str]) -> String {
    let permission = |name: &&str| format!("{{entity: {name}, actions: [read], fields: {{include: ['*']}}}}");
    let permissions: Vec<String> = entities.iter().map(permission).collect();
    format!("scope: {{permissions: [{}]}}", permissions.join(", "))
}

/// What is served, as `entity.name -> to` and how many it leads to.
async fn served(conn: &mut PgConnection) -> Vec<String> {
    let text = "select entity || '.' || name || ' -> ' || (definition ->> 'to') \
                || case when (definition ->> 'toOne')::boolean then '' else 's' end as way \
                from dl.relationships order by 1";
    let all = rows(conn, text).await;
    all.iter().map(|row| row["way"].as_str().expect("a text").to_owned()).collect()
}

/// Seen to fail with a link that is open to whoever reads one end, with rows of relationships that stay when the object
/// goes, and with a foreign key that is looked up once.
async fn a_relationship_follows_the_database_and_opens_what_links_its_ends(on: On) {
    let manifests = [
        TENANT.to_owned(),
        key("both", "market", &reader(&["orders", "tags", "customers"])),
        key("half", "market", &reader(&["orders"])),
        relationship(
            "order-customer",
            "name: customer, inverse: orders, from: {entity: orders}, to: {entity: customers}, cardinality: One",
        ),
        relationship(
            "order-tags",
            "name: tags, inverse: orders, from: {entity: orders}, to: {entity: tags}, through: {schema: app, object: order_tags}, cardinality: Many",
        ),
    ];
    let mut stage = Stage::open(on, &manifests.concat()).await;
    let customer = stage.told("Relationship", "order-customer", 1, DONE).await;
    assert_eq!(customer["joins"], "orders.customerId = customers.id");
    let warning = customer["warnings"][0].as_str().expect("a warning").to_owned();
    assert!(warning.ends_with("create index on app.orders (customer_id)"), "{warning}");
    let tags = stage.told("Relationship", "order-tags", 1, DONE).await;
    assert_eq!(tags["joins"], "orders.id = order_tags.order_id and order_tags.tag_id = tags.id");
    let mut superuser = stage.server.connect("market").await;
    let all = [
        "customers.orders -> orderss",
        "orders.customer -> customers",
        "orders.tags -> tagss",
        "tags.orders -> orderss",
    ];
    assert_eq!(served(&mut superuser).await, all);

    // who reads both ends reads what links them, and nothing else of it; under row-level security, as everywhere
    stage.told("ApiKey", "both", 1, DONE).await;
    stage.told("ApiKey", "half", 1, DONE).await;
    let links = "select order_id, tag_id from app.order_tags";
    let mut both = connect(&stage.role("both", "market").await).await.expect("the key's role");
    assert_eq!(rows(&mut both, links).await.len(), 1);
    assert!(
        attempt(&mut both, "select secret from app.order_tags").await.is_err(),
        "a column that links nothing"
    );
    let mut half = connect(&stage.role("half", "market").await).await.expect("the key's role");
    assert!(attempt(&mut half, links).await.is_err(), "it cannot read tags");
    let enabled = "select relrowsecurity and not relforcerowsecurity from pg_class where oid = 'app.order_tags'::regclass";
    assert!(one::<bool>(&mut superuser, enabled).await);
    let status = stage.status("Tenant", "market").await;
    assert_eq!(status["entities"], 3, "what only links is not served: {status}");

    // the warning names what ends it
    execute(&mut superuser, "create index on app.orders (customer_id)").await;
    until("the end of the warning", async || {
        stage.status("Relationship", "order-customer").await["warnings"].is_null().then_some(())
    })
    .await;
    execute(&mut superuser, "alter table app.orders drop constraint orders_customer_id_fkey").await;
    stage.told("Relationship", "order-customer", 1, "ForeignKeyNotFound").await;
    until("the end of its ways", async || {
        (served(&mut superuser).await == ["orders.tags -> tagss", "tags.orders -> orderss"]).then_some(())
    })
    .await;
    assert_eq!(rows(&mut both, links).await.len(), 1, "the other one goes on");
    execute(&mut superuser, "alter table app.order_tags rename to kept").await;
    stage.told("Relationship", "order-tags", 1, "SourceNotFound").await;
    until("the end of the other's ways", async || served(&mut superuser).await.is_empty().then_some(()))
        .await;
    stage.told("Tenant", "market", 1, DONE).await;
    stage.told("ApiKey", "both", 1, DONE).await;
    execute(&mut superuser, "alter table app.kept rename to order_tags").await;
    stage.told("Relationship", "order-tags", 1, DONE).await;
    let generation = "select generation from dl.state";
    let before: i64 = one(&mut superuser, generation).await;
    let named = "from: {entity: orders, fields: [customerId]}, to: {entity: customers, fields: [id]}";
    stage
        .edit("Relationship", "order-customer", "from: {entity: orders}, to: {entity: customers}", named)
        .await;
    stage.told("Relationship", "order-customer", 2, DONE).await;

    assert!(before < one::<i64>(&mut superuser, generation).await, "replicas load the change");
    let lookups = "select has_table_privilege(rolname, 'dl.relationships', 'select') from pg_roles where rolname ~ '^t.*_lookups$'";
    assert!(one::<bool>(&mut superuser, lookups).await, "the data plane reads it");

    // what is changed by hand is repaired
    execute(&mut superuser, "delete from dl.relationships where name = 'customer'").await;
    execute(&mut superuser, "grant select on app.order_tags to public").await;
    until("both to be repaired", async || {
        let public = "select exists (select from pg_class c, aclexplode(c.relacl) a where c.oid = 'app.order_tags'::regclass and a.grantee = 0)";
        let is_open = one::<bool>(&mut superuser, public).await;
        (!is_open && served(&mut superuser).await == all).then_some(())
    })
    .await;

    // as the version before left it
    stage.stop().await;
    execute(&mut superuser, "drop table dl.relationships").await;
    let events = "drop function dl.capture(), dl.permitted, dl.retire, dl.key_of, dl.events, dl.tick, dl.has_news, dl.history,
            dl.generation_of, dl.holds, dl.capture_row(), dl.leaf, dl.log_size,
            dl.last_tick_of, dl.keep, dl.undecidable, dl.pending, dl.changed;
        drop table dl.outbox, dl.ticks, dl.event_log, dl.generations; drop sequence dl.outbox_seq;
        drop table dl.subscription_secrets, dl.dead_letters, dl.deliveries, dl.backlog, dl.subscriptions, dl.delivery, dl.audit";
    execute(&mut superuser, events).await;
    execute(&mut superuser, "delete from dl.migrations where number >= 9").await;
    stage.start().await;
    until("the upgrade", async || {
        let made = one::<bool>(&mut superuser, "select to_regclass('dl.relationships') is not null").await;
        (made && served(&mut superuser).await == all).then_some(())
    })
    .await;
    assert!(one::<bool>(&mut superuser, lookups).await);

    stage.remove("Relationship", "order-tags").await;
    stage.gone("Relationship", "order-tags").await;
    until("the link to be closed", async || attempt(&mut both, links).await.is_err().then_some(())).await;
    until("its ways to be gone", async || {
        let left = ["customers.orders -> orderss", "orders.customer -> customers"];
        (served(&mut superuser).await == left).then_some(())
    })
    .await;
}
