//! The owner of the tables sees its rows, as everywhere in PostgreSQL, and what keys read through its views is filtered all the same.

use rowgate_tests::servers::postgres::{Server, attempt, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use rowgate_tests::world::status::holds;
use serde_json::{Value, json};
use sqlx::PgConnection;

const NESTED: &str = "create view shop.within as select id, region, year from shop.orders; \
                      create view shop.around as select id, region from shop.within where 2000 < year";
const AROUND: &str =
    "    - {name: around, kind: View, source: {schema: shop, object: around}, keyFields: [id]}\n";
const READ: &str = "/auth/shop/api/around?$first=500";

/// The shop, served, and a session as the owner of its tables.
async fn shop() -> (Server, World, PgConnection) {
    let server = Server::own().await;
    let mut world = World::shop_on(&server).compared_every(1);
    world.start().await;
    let id = world.status("Tenant", "shop")["tenantId"].as_str().expect("an id").to_owned();
    let database = world.status("Tenant", "shop")["database"].as_str().expect("a name").to_owned();
    let mut owner = server.connect(&database).await;
    execute(&mut owner, &format!("set session authorization t{id}_owner")).await;
    (server, world, owner)
}

/// Exposes the view over a view to keys that may read orders.
fn expose(world: &World) {
    world.edit("tenant.yaml", "  entities:\n", &format!("  entities:\n{AROUND}"));
    world.edit(
        "tenant.yaml",
        "      - entity: order_summary\n        actions: [read]\n",
        "      - entity: order_summary\n        actions: [read]\n      - entity: around\n        actions: [read]\n",
    );
    let scope = "      - entity: order_summary\n";
    world.edit(
        "keys.yaml",
        scope,
        &format!("      - {{entity: around, actions: [read], fields: {{include: ['*']}}}}\n{scope}"),
    );
}

/// The regions that a key reads; `None`: it is refused now.
async fn regions(world: &World, key: &str) -> Option<Vec<String>> {
    let answer = world.get(&world.key(key), READ).await;
    if answer.status != 200 {
        assert!([403, 404, 503].contains(&answer.status.as_u16()), "{answer:?}");
        return None;
    }
    let rows = answer.body["value"].as_array().cloned().expect("rows");
    let mut regions: Vec<String> =
        rows.iter().map(|row| row["region"].as_str().expect("a region").to_owned()).collect();
    regions.sort();
    regions.dedup();
    Some(regions)
}

async fn owner_of(conn: &mut PgConnection, view: &str) -> String {
    let query = format!(
        "select regexp_replace(relowner::regrole::text, '^.*_', '') as who from pg_class where oid = '{view}'::regclass"
    );
    rows(conn, &query).await[0]["who"].as_str().expect("a name").trim_end_matches('"').to_owned()
}

async fn says(world: &World, text: &str) {
    until(text, async || {
        let status = world.status("Tenant", "shop");
        status.to_string().contains(text).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_owner_sees_its_rows_and_keys_see_theirs_through_its_views() {
    let (_server, mut world, mut owner) = shop().await;
    // what a migration does: a backfill, a COPY, a foreign key that looks at every row
    execute(&mut owner, "alter table shop.orders add column year integer").await;
    execute(&mut owner, "update shop.orders set year = extract(year from placed_at)").await;
    let without = "select count(*) as n from shop.orders where year is null";
    assert_eq!(rows(&mut owner, without).await, [json!({"n": 0})]);
    let mut copy = owner
        .copy_in_raw("copy shop.orders (id, customer_id, region, state, placed_at, year) from stdin")
        .await
        .expect("COPY");
    copy.send(
        "900001\t1\tnorth\tnew\t2001-01-01\t2001\n900002\t1\tsouth\tnew\t2002-01-01\t2002\n".as_bytes(),
    )
    .await
    .expect("rows");
    assert_eq!(copy.finish().await.expect("the end of COPY"), 2);
    execute(&mut owner, "create table shop.years (year integer primary key)").await;
    let key = "alter table shop.orders add constraint of_year foreign key (year) references shop.years";
    assert!(attempt(&mut owner, key).await.is_err(), "rows that violate it are seen");
    execute(&mut owner, &format!("insert into shop.years select distinct year from shop.orders; {key}"))
        .await;

    execute(&mut owner, NESTED).await;
    expose(&world);
    let seen = until("the view", async || regions(&world, "north").await).await;
    assert_eq!(seen, ["north"], "a key sees its own rows through a view over a view");
    assert_eq!(owner_of(&mut owner, "shop.around").await, "views");
    assert_eq!(owner_of(&mut owner, "shop.within").await, "views");

    // the owner goes on replacing, dropping and making them; no row of another region is ever seen
    let again = [
        "create or replace view shop.around as select id, region from shop.within where id <> 1".to_owned(),
        format!("drop view shop.around; drop view shop.within; alter table shop.orders alter column year type bigint; {NESTED}"),
        "drop view shop.around; create view shop.around as select o.id, o.region from shop.orders o join shop.customers c on c.id = o.customer_id".to_owned(),
    ];
    for change in again {
        execute(&mut owner, &change).await;
        until(&change, async || {
            let seen = regions(&world, "north").await?;
            assert_eq!(seen, ["north"], "{change}");
            (owner_of(&mut owner, "shop.around").await == "views").then_some(())
        })
        .await;
    }
    assert_eq!(regions(&world, "north").await, Some(vec!["north".to_owned()]));

    // one that no key reaches is the owner's again
    assert_eq!(owner_of(&mut owner, "shop.within").await, "owner");
    assert!(world.stop().await.success());
}

/// Functions with the rights of their owner, and rules, read past policies.
#[tokio::test]
async fn what_reads_as_the_owner_is_refused_or_said() {
    let (_server, mut world, mut owner) = shop().await;
    execute(
        &mut owner,
        "create function shop.all_regions() returns text security definer set search_path = pg_catalog, pg_temp language sql \
         as 'select string_agg(distinct region, '','') from shop.orders'; \
         create view shop.around as select id, shop.all_regions() as region from shop.orders",
    )
    .await;
    expose(&world);
    says(&world, "it calls shop.all_regions(), which is SECURITY DEFINER and so reads past every policy")
        .await;
    assert_eq!(regions(&world, "north").await, None);
    world.edit(
        "tenant.yaml",
        "object: around}, keyFields: [id]}",
        "object: around}, keyFields: [id], allowDefiner: true}",
    );
    let seen = until("the view", async || regions(&world, "north").await).await;
    assert!(seen[0].contains("south"), "that is what it was allowed to do: {seen:?}");
    says(&world, "it runs shop.all_regions() with the rights of the owner of the tables").await;

    execute(&mut owner, "create rule also as on insert to shop.orders do also select * from shop.customers")
        .await;
    says(&world, "shop.orders has a rule, which PostgreSQL runs with the rights of the table's owner").await;
    execute(&mut owner, "drop rule also on shop.orders").await;
    until("the table", async || {
        (world.get(&world.key("north"), "/auth/shop/api/orders?$first=1").await.status == 200).then_some(())
    })
    .await;
    assert!(world.stop().await.success());
}

/// Data planes of version 0.2 close what is not forced: while one lives the database has the form that it knows, and no request fails on the way there
/// and back.
#[tokio::test]
async fn while_a_data_plane_of_the_version_before_lives_owners_stay_forced() {
    let (server, mut world, mut owner) = shop().await;
    let forced = "select count(*) filter (where relforcerowsecurity) as forced, \
                         count(*) filter (where relkind = 'v' and relowner::regrole::text like '%views%') as given \
                  from pg_class where relnamespace = 'shop'::regnamespace and (relrowsecurity or relkind = 'v')";
    assert_eq!(rows(&mut owner, forced).await, [json!({"forced": 0, "given": 1})]);
    let mut control = server.connect("rowgate").await;
    let old = "insert into control.replicas (id, version, address, beat_at) \
               values ('01m8b37yzwma0v8vqzaha5jxm2', '0.2.0', 'old', now() + interval '1 hour')";
    execute(&mut control, old).await;
    type Stands = fn(&Value) -> bool;
    let changes: [(&str, &str, Stands); 2] = [
        ("maxPageSize: 1000", "maxPageSize: 999", |it| it["forced"] != 0 && it["given"] == 0),
        ("maxPageSize: 999", "maxPageSize: 998", |it| it["forced"] == 0 && it["given"] == 1),
    ];
    for (i, (from, to, stands)) in changes.into_iter().enumerate() {
        world.edit("tenant.yaml", from, to);
        until("the form of the tables", async || {
            let answer = world.get(&world.key("north"), "/auth/shop/api/order_summary?$first=100").await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let regions =
                answer.body["value"].as_array().expect("rows").iter().map(|row| row["region"].clone());
            assert!(regions.into_iter().all(|region| region == "north"), "{answer:?}");
            stands(&rows(&mut owner, forced).await[0]).then_some(())
        })
        .await;
        if i == 0 {
            says(&world, "until no data plane of version 0.2 runs").await;
            execute(&mut control, "delete from control.replicas where version = '0.2.0'").await;
        }
    }
    until("the Tenant to be ready", async || holds(&world.status("Tenant", "shop"), "Ready").then_some(()))
        .await;
    assert!(!world.log().contains("changed by hand"), "{}", world.log());
    assert!(world.stop().await.success());
}
