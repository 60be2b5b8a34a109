//! When an entity or the whole Tenant goes.

use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::GUEST;
use serde_json::json;

use super::fixture::{Store, TENANT};

const SECURED: &str = "select relname::text as name from pg_class where relrowsecurity order by 1";

#[tokio::test]
async fn a_database_is_given_back_as_it_was_found() {
    let mut store = Store::new(&[("guest.yaml", GUEST)]).await;
    let before = store.dump();
    store.world.write("store.yaml", TENANT);
    store.world.spawn(|_| ());
    store.lend().await;
    store.is_served().await;
    let mut application = store.as_role("store").await;
    let secured = rows(&mut application, SECURED).await;
    assert_eq!(secured, [json!({"name": "customers"}), json!({"name": "orders"})]);

    // one entity goes, and its table is free
    let customers = "    - name: customers\n      source: {schema: app, object: customers}\n      rowLevelSecurity: {none: true}\n";
    store.world.edit("store.yaml", customers, "");
    store.world.edit("store.yaml", "      - {entity: customers, actions: [read]}\n", "");
    until("one table is free", async || {
        (rows(&mut application, SECURED).await == [json!({"name": "orders"})]).then_some(())
    })
    .await;

    let id = store.world.status("Tenant", "store")["tenantId"].as_str().expect("an id").to_owned();
    let logins = format!("t{id}_");
    assert_eq!(store.made(&logins).await.len(), 7);
    // a table that was renamed is found again
    execute(&mut application, "alter table app.orders rename to old_orders").await;
    std::fs::remove_file(store.world.manifests().join("store.yaml")).expect("the manifest");
    until("every table is free", async || rows(&mut application, SECURED).await.is_empty().then_some(()))
        .await;
    until("no role is left", async || store.made(&logins).await.is_empty().then_some(())).await;
    execute(&mut application, "alter table app.old_orders rename to orders").await;
    assert_eq!(store.dump(), before);

    // and it can be adopted again
    store.world.write("store.yaml", TENANT);
    store.is_served().await;
    let answer = store.world.get(&store.key("north"), "/auth/store/api/orders?$count=true").await;
    assert_eq!(answer.body["count"], json!(40));

    // a table that a migration makes once more has its policies, and they are recorded
    let again = "begin; drop table app.orders cascade;
        create table app.orders (id bigint primary key, customer bigint, region text not null, draft boolean not null default false, note text);
        insert into app.orders values (1, 1, 'north', false, 'new'); commit";
    execute(&mut application, again).await;
    let policies = "select name from dl.applied where name like 'app.orders.%' and kind = 'policy'";
    let mut superuser = store.server.connect("store").await;
    until("the table that was made once more", async || {
        let answer = store.world.get(&store.key("north"), "/auth/store/api/orders?$count=true").await;
        (answer.body["count"] == json!(1) && rows(&mut superuser, policies).await.len() == 4).then_some(())
    })
    .await;

    // of a table that the application drops nothing stays recorded
    execute(&mut application, "drop table app.orders cascade").await;
    until("no record of the table", async || {
        let recorded =
            "select name from dl.applied where name like 'app.orders%' and kind in ('adopted', 'policy')";
        rows(&mut superuser, recorded).await.is_empty().then_some(())
    })
    .await;
}
