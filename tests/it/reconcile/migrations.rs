//! The login of migration tools: what it may do, what it may not, and how it ends.

use std::path::PathBuf;

use rowgate_tests::servers::postgres::{Server, attempt, execute, rows};
use rowgate_tests::sweep;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

const FIELD: &str = "    migrations: {secretName: shop-migrations}\n";

fn secret(world: &World) -> PathBuf {
    world.state().join("secrets/default/shop-migrations.yaml")
}

/// The entry of the Secret; `None`: there is no Secret.
fn entry(world: &World, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(secret(world)).ok()?;
    let secret: Value = serde_yaml::from_str(&text).expect("YAML");
    let value = secret["stringData"][name].as_str()?.to_owned();
    if name == "password" {
        sweep::remember(&value);
    }
    Some(value)
}

async fn migrator(world: &World) -> PgConnection {
    let url = until("the Secret", async || entry(world, "url")).await;
    assert!(entry(world, "password").is_some_and(|password| url.contains(&password)));
    until("the login", async || PgConnection::connect(&url).await.ok()).await
}

async fn shop() -> (Server, World) {
    let server = Server::own().await;
    let mut world = World::shop_on(&server).compared_every(1);
    world.edit("tenant.yaml", "  database:\n", &format!("  database:\n{FIELD}"));
    world.start().await;
    (server, world)
}

/// What must not get through, as that login and as the owner, which its sessions begin as.
const REFUSED: &[&str] = &[
    "select * from dl.keys",
    "select * from dl.key_secrets",
    "select * from dl.live",
    "insert into dl.entities select * from dl.entities",
    "update dl.state set epoch = 0",
    "delete from dl.claims",
    "truncate dl.outbox",
    "create table dl.mine (i int)",
    "create or replace function dl.fence(wanted bigint) returns void language sql as 'select'",
    "drop schema dl cascade",
    "alter schema dl rename to ld",
    "alter table dl.keys owner to current_user",
    "select dl.publish('\\x00')",
    "select dl.revoke('x')",
    "create role joe",
    "create role joe login superuser",
    "alter role \"{owner}\" superuser",
    "alter role \"{owner}\" createrole",
    "alter role \"{auth}\" password 'x'",
    "alter role \"{dl}\" password 'x'",
    "alter role rowgate_operator password 'x'",
    "grant \"{owner}\" to datalake_user",
    "grant \"{dl}\" to \"{owner}\"",
    "grant datalake_user to \"{owner}\"",
    "grant pg_read_all_data to \"{owner}\"",
    "set role \"{dl}\"",
    "set role \"{auth}\"",
    "set role rowgate_operator",
    "set session authorization \"{dl}\"",
    "create database mine",
    "drop database rowgate",
    "alter system set fsync = off",
    "alter table shop.orders owner to datalake_user",
    "copy shop.orders to program 'cat'",
    "copy shop.orders from '/etc/passwd'",
    "create extension plpython3u",
    "create event trigger e on ddl_command_end execute function shop.place_order()",
    "select pg_read_file('postgresql.conf')",
    "create subscription s connection 'dbname=x' publication p",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'rowgate_operator'",
];

/// What it gets through and the next look undoes, and how that is known.
const REPAIRED: &[(&str, &str)] = &[
    (
        "drop policy own_region on shop.orders",
        "select exists (select from pg_policies where policyname = 'own_region' and tablename = 'orders') as is",
    ),
    (
        "create policy everything on shop.orders using (true)",
        "select not exists (select from pg_policies where policyname = 'everything') as is",
    ),
    (
        "grant select on shop.products to public",
        "select not has_table_privilege('rowgate_dataplane', 'shop.products', 'select') as is",
    ),
    (
        "grant update on shop.products to datalake_user with grant option",
        "select not has_table_privilege('datalake_user', 'shop.products', 'update with grant option') as is",
    ),
    (
        "alter table shop.orders disable row level security",
        "select relrowsecurity as is from pg_class where oid = 'shop.orders'::regclass",
    ),
];

#[tokio::test]
async fn a_migration_tool_does_what_the_owner_may_and_nothing_else() {
    let (_server, mut world) = shop().await;
    let mut tool = migrator(&world).await;
    let id = world.status("Tenant", "shop")["tenantId"].as_str().expect("an id").to_owned();
    let who = "select current_user = 't' || $$ID$$ || '_owner' as owns, session_user = 't' || $$ID$$ || '_mig' as tool".replace("ID", &id);
    assert_eq!(rows(&mut tool, &who).await, [json!({"owns": true, "tool": true})]);
    for name in ["host", "port", "database", "user"] {
        assert!(entry(&world, name).is_some(), "{name}");
    }
    // made, filled and served
    execute(&mut tool, "create table shop.coupons (code text primary key, percent integer)").await;
    let mut copy = tool.copy_in_raw("copy shop.coupons from stdin").await.expect("COPY");
    copy.send("WELCOME\t10\n".as_bytes()).await.expect("a row");
    copy.finish().await.expect("the end of COPY");
    execute(&mut tool, "update shop.orders set comment = 'moved' where id <= 10").await;
    world.shop_entity("coupons");
    world.shop_permission("coupons");
    let answer = until("the table", async || {
        let answer = world.get(&world.key("shop-admin"), "/auth/shop/api/coupons").await;
        (answer.status == 200).then_some(answer)
    })
    .await;
    assert_eq!(answer.body["value"], json!([{"code": "WELCOME", "percent": 10}]));

    for statement in REFUSED {
        let mut spelt = (*statement).to_owned();
        for kind in ["owner", "auth", "dl"] {
            spelt = spelt.replace(&format!("{{{kind}}}"), &format!("t{id}_{kind}"));
        }
        for begin in ["", "set role none; "] {
            execute(&mut tool, "begin").await;
            assert!(attempt(&mut tool, &format!("{begin}{spelt}")).await.is_err(), "{begin}{spelt}");
            execute(&mut tool, "rollback").await;
        }
    }
    for database in ["rowgate", "postgres"] {
        let url = entry(&world, "url").expect("a Secret");
        let (url, rest) = url.rsplit_once('/').expect("a database");
        let options = rest.split_once('?').map(|(_, options)| format!("?{options}")).unwrap_or_default();
        assert!(PgConnection::connect(&format!("{url}/{database}{options}")).await.is_err(), "{database}");
    }
    for (statement, heals) in REPAIRED {
        execute(&mut tool, statement).await;
        until(statement, async || (rows(&mut tool, heals).await == [json!({"is": true})]).then_some(()))
            .await;
    }
    assert!(!world.log().contains(&entry(&world, "password").expect("a Secret")), "no log tells it");
    assert!(world.stop().await.success());
}

#[tokio::test]
async fn it_is_rotated_and_closed() {
    let (_server, mut world) = shop().await;
    let mut tool = migrator(&world).await;
    let first = entry(&world, "url").expect("a Secret");

    // the role changes its own password: the next look at everything gives it the one of the Secret
    std::fs::remove_file(secret(&world)).expect("a Secret");
    until("the Secret again", async || entry(&world, "url").filter(|url| *url == first)).await;

    world.edit("tenant.yaml", "  name: shop\n", "  name: shop\n  annotations: {rowgate.dev/rotate: one}\n");
    let second = until("another password", async || entry(&world, "url").filter(|url| *url != first)).await;
    assert!(PgConnection::connect(&first).await.is_err(), "the password before");
    PgConnection::connect(&second).await.expect("the new one");
    assert_eq!(world.status("Tenant", "shop")["migrationsSecret"], "shop-migrations");

    world.edit(
        "tenant.yaml",
        "secretName: shop-migrations}",
        "secretName: shop-migrations, expiresAt: '2020-01-01T00:00:00Z'}",
    );
    until("the end of it", async || entry(&world, "url").is_none().then_some(())).await;
    assert!(PgConnection::connect(&second).await.is_err(), "an expired login");
    until("the end of its sessions", async || attempt(&mut tool, "select 1").await.is_err().then_some(()))
        .await;

    // the next edit cuts a pass off that is writing the Secret
    world.edit("tenant.yaml", ", expiresAt: '2020-01-01T00:00:00Z'", "");
    let mut tool = migrator(&world).await;
    execute(&mut tool, "select 1 from shop.orders").await;
    world.edit("tenant.yaml", FIELD, "");
    until("the end of its sessions", async || attempt(&mut tool, "select 1").await.is_err().then_some(()))
        .await;
    assert!(PgConnection::connect(&second).await.is_err(), "a login that is closed");
    until("no Secret", async || entry(&world, "url").is_none().then_some(())).await;
    assert!(world.stop().await.success());
}
