//! What somebody changed by hand: the next plan repairs it to the letter, and the plan after is empty.

use rowgate_core::role::{DbRole, TenantLogin};
use rowgate_pg::actual::{Cluster, TenantDb};
use rowgate_tests::postgres::Server;

use super::shop::{self, Shop};
use super::{World, installation, text};

/// Run as a superuser; `{north}` and the like stand for role names.
const BY_HAND: &[&str] = &[
    // rights on tables, columns, sequences, schemas, routines, the database
    "grant select on shop.customers to {north}",
    "grant select, delete on shop.products to public",
    "grant all on shop.products to datalake_user with grant option",
    "grant select on shop.orders to {south} with grant option; set role {south}; grant select on shop.orders to public",
    "create role joe; grant select on shop.orders to joe with grant option; revoke all on shop.orders from {set_south}",
    "grant select (email) on shop.customers to {set_south}",
    "grant update (notes), references (id) on shop.customers to {north}",
    "grant select (email) on shop.customers to public",
    "grant select (id) on shop.customers to {set_south} with grant option",
    "grant update on sequence shop.orders_id_seq to public",
    "grant create on schema shop to {south}",
    "grant usage on schema public to public; grant create on schema public to {north}",
    "grant execute on function shop.secret() to public",
    "grant execute on function shop.best_sellers(integer) to public",
    "grant execute on procedure shop.place_order(bigint, jsonb) to {set_north}",
    "grant execute on function shop.best_sellers(integer) to datalake_user with grant option",
    "grant execute on function dl.fence(bigint), dl.revoke(text) to {north}",
    "grant select on dl.key_secrets to datalake_user",
    "grant connect, temporary on database shop to public",
    "grant create on database shop to {north}",
    // and rights that are missing
    "revoke select (id, region) on shop.orders from {set_south}",
    "revoke execute on function shop.best_sellers(integer) from {set_north}",
    "revoke execute on procedure shop.place_order(bigint, jsonb) from datalake_user",
    "revoke all on dl.backends from {auth}",
    "grant select on dl.backends to datalake_user",
    "revoke all on schema dl from {auth}, {keys}",
    "revoke connect on database shop from {auth}, {keys}, {set_north}",
    "revoke select on dl.own_claims from {set_north}; revoke execute on function dl.claim(text) from datalake_user",
    // rights on what will be made
    "alter default privileges for role {owner} grant select on tables to {north}",
    "alter default privileges for role {owner} grant execute on routines to public",
    "alter default privileges for role {owner} in schema shop grant select on tables to datalake_user",
    "alter default privileges for role {owner} in schema shop grant execute on routines to public",
    "alter default privileges for role {owner} grant usage on schemas to {south}",
    // policies and what switches them on
    "drop policy own_region on shop.orders",
    "alter policy own_region on shop.orders using (true)",
    "alter policy own_region on shop.orders with check (true)",
    "alter policy own_region on shop.orders to {north}",
    "alter policy own_region on shop.orders rename to mine",
    "create policy everything on shop.orders using (true)",
    "create policy everything on shop.order_lines as restrictive for select to {south} using (false)",
    "drop policy all_rows on shop.products; create policy all_rows on shop.products for select using (true)",
    "alter table shop.orders disable row level security",
    "alter table shop.orders no force row level security",
    // concurrency protection
    "drop trigger \"~dl_1_echo\" on shop.stock",
    "drop trigger \"~dl_4_keep_all\" on shop.stock",
    "alter table shop.stock disable trigger \"~dl_2_stamp\"",
    "alter table shop.stock enable trigger \"~dl_3_keep\"",
    "alter table shop.stock enable replica trigger \"~dl_1_echo\"",
    "alter function dl.protect_echo() security definer",
    "create or replace function dl.protect_stamp() returns trigger language plpgsql as 'begin return new; end'",
    "grant execute on function dl.protect_stamp() to public",
    "alter table shop.stock alter column dl_expected_ts drop default",
    "alter table shop.stock alter column dl_expected_ts drop not null",
    "revoke update (dl_expected_ts), select (dl_expected_ts) on shop.stock from datalake_user",
    // memberships that the operator's or the keys login can take back
    "grant {set_north} to {south} with inherit true granted by {keys}",
    "grant {north} to {south} with inherit false, set true granted by {keys}",
    "grant {north} to {auth} with inherit true granted by {keys}",
    "grant {set_north} to {north} with admin true, set true granted by {keys}",
    "revoke {north} from {auth} granted by {keys}",
    "revoke {set_north} from {north} granted by {keys}",
    "grant datalake_user to {north} granted by rowgate_operator",
    "create role jane; grant datalake_user to jane granted by rowgate_operator; grant {owner} to jane granted by rowgate_operator",
    "grant {owner} to {sql} granted by rowgate_operator",
    "revoke datalake_user from {sql} granted by rowgate_operator",
    "grant datalake_user to {auth} with inherit true granted by rowgate_operator",
    // attributes and settings of roles
    "alter role {north} nologin",
    "alter role {south} createrole inherit connection limit 3",
    "alter role {set_south} login inherit",
    "alter role {auth} createrole createdb inherit",
    "alter role datalake_user login createrole",
    "alter role {north} set search_path = shop; alter role {north} in database shop set work_mem = '1MB'",
    "alter role {owner} in database shop set row_security = off",
    "alter role datalake_user set statement_timeout = 1",
    // rows of dl
    "update dl.claims set value = 'south' where value = 'north'",
    "delete from dl.claims",
    "insert into dl.claims values ('datalake_user', 'region', 'north')",
    "update dl.keys set role = 'datalake_user' where name = 'north'",
    "update dl.keys set set_role = 'datalake_user' where name = 'north'",
    "update dl.keys set set_role = null",
    "update dl.keys set expires_at = now() + interval '1 year' where name = 'south'",
    "update dl.keys set resolved = '{}' where name = 'south'",
    "update dl.entities set definition = jsonb_set(definition, '{object}', '\"products\"') where name = 'orders'",
    "delete from dl.entities where name = 'orders'",
    "insert into dl.entities select 'more', definition from dl.entities where name = 'orders'",
    "update dl.permission_sets set permissions = '[]' where role = '{set_south}'",
    "delete from dl.permission_sets where role = 'datalake_user'",
    "insert into dl.permission_sets values ('joe', 'x', '[]')",
    "update dl.state set limits = '{}'",
    "delete from dl.applied where kind <> 'protection'",
    "delete from dl.key_secrets",
];

/// As [`BY_HAND`], but another permission set with equal rights takes the place of one that was spoilt.
const BY_HAND_NEW_SET: &[&str] = &[
    "update dl.permission_sets set hash = 'x' where role = '{set_south}'",
    "delete from dl.permission_sets where role = '{set_south}'",
];

/// What no login of ours can take back, and what status says about it.
const FOR_A_DBA: &[(&str, &str)] = &[
    ("grant {set_north} to {south}", "role {south} is a member of {set_north}, granted by"),
    ("grant {north} to {sql} with admin true", "role {sql} is a member of {north}, granted by"),
    ("create role jim; grant datalake_user to jim with admin true", "role jim is a member of datalake_user"),
    ("grant pg_read_all_data to {north}", "role {north} is a member of pg_read_all_data"),
    ("alter role {north} bypassrls", "role {north} has BYPASSRLS"),
    ("alter role {auth} superuser", "role {auth} has SUPERUSER"),
    ("alter role {south} createdb", "role {south} has CREATEDB"),
    (
        "create table shop.strange (n int); grant select on shop.strange to public",
        "table \"shop\".\"strange\" belongs to",
    ),
    (
        "create function shop.strange() returns int language sql as 'select 1'",
        "routine shop.strange() belongs to",
    ),
];

const SECRET: &str = "
    create function shop.secret() returns int language sql security definer as 'select 42';
    revoke execute on function shop.secret() from public;";

/// The shop as it should be, with a function that nobody may call.
async fn shop() -> (World, Shop) {
    let server = Server::own().await;
    let installation = installation(&server).await;
    let shop = Shop::new();
    let desired = shop.desired(&installation);
    let mut world = World::new(server, installation, &desired, &(shop::bootstrap() + SECRET)).await;
    world.settle(&desired).await;
    (world, shop)
}

/// `text` with role names in place.
async fn named(world: &mut World, text: &str) -> String {
    let (_, db) = world.look().await;
    let mut text = text.to_owned();
    for login in ["owner", "keys", "auth", "sql"].iter().zip(TenantLogin::ALL) {
        text = text.replace(&format!("{{{}}}", login.0), &login.1.role(&world.tenant));
    }
    for key in ["north", "south"] {
        let id = shop::key_id(key);
        text = text.replace(&format!("{{{key}}}"), DbRole::for_key(&id).as_str());
        let set = db.keys[&id].set_role.clone().expect("the key has its rights");
        text = text.replace(&format!("{{set_{key}}}"), &set);
    }
    text
}

/// Everything but the counter that says something changed.
async fn looked(world: &mut World) -> (Cluster, TenantDb) {
    let (cluster, mut db) = world.look().await;
    db.state.as_mut().expect("dl is there").generation = 0;
    // a function that was made again is another one
    db.routines.values_mut().for_each(|routine| routine.declared.oid = 0);
    let secrets = db.keys.values_mut().flat_map(|key| &mut key.secrets);
    // one that was deleted by hand comes back younger
    secrets.for_each(|secret| secret.created_at = jiff::Timestamp::UNIX_EPOCH);
    (cluster, db)
}

#[tokio::test]
async fn what_was_changed_by_hand_is_repaired_to_the_letter() {
    let (mut world, shop) = shop().await;
    let desired = shop.desired(&world.installation);
    let before = looked(&mut world).await;
    for script in BY_HAND {
        let script = named(&mut world, script).await;
        world.by_hand(&script).await;
        assert_ne!(looked(&mut world).await, before, "nothing was changed by: {script}");
        let outcome = world.settle(&desired).await;
        assert!(!outcome.ops.is_empty(), "not seen: {script}");
        assert_eq!(outcome.problems, [], "{script}");
        let after = looked(&mut world).await;
        assert_eq!(after.0, before.0, "after {script}\n{}", text(&outcome.ops));
        assert_eq!(after.1, before.1, "after {script}\n{}", text(&outcome.ops));
    }
}

#[tokio::test]
async fn a_spoilt_permission_set_is_replaced() {
    let (mut world, shop) = shop().await;
    let desired = shop.desired(&world.installation);
    for script in BY_HAND_NEW_SET {
        let (script, set) = (named(&mut world, script).await, named(&mut world, "{set_south}").await);
        let (_, before) = world.look().await;
        world.by_hand(&script).await;
        world.settle(&desired).await;
        let (cluster, after) = world.look().await;
        assert!(!cluster.roles.contains_key(&set) && !after.permission_sets.contains_key(&set), "{script}");
        let rights = |db: &TenantDb| {
            let mut sets: Vec<_> =
                db.permission_sets.values().map(|set| (set.hash.clone(), set.permissions.clone())).collect();
            sets.sort();
            sets
        };
        assert_eq!(rights(&after), rights(&before), "{script}");
    }
}

#[tokio::test]
async fn what_only_a_dba_can_take_back_is_named_with_the_line_to_run() {
    let (mut world, shop) = shop().await;
    let desired = shop.desired(&world.installation);
    for (script, sentence) in FOR_A_DBA {
        let (script, sentence) = (named(&mut world, script).await, named(&mut world, sentence).await);
        world.by_hand(&script).await;
        let outcome = world.plan(&desired).await;
        assert_eq!(text(&outcome.ops), "", "{script}");
        let [problem] = &outcome.problems[..] else { panic!("{script}: {:?}", outcome.problems) };
        assert!(problem.message.starts_with(&sentence), "{problem}");
        let (_, line) = problem.message.split_once("a DBA can run: ").expect("a line to run");
        world.by_hand(line).await;
        let outcome = world.plan(&desired).await;
        assert_eq!((text(&outcome.ops), outcome.problems), (String::new(), vec![]), "after {line}");
    }
}

#[tokio::test]
async fn a_key_that_was_given_rights_by_hand_can_be_deleted() {
    let (mut world, mut shop) = shop().await;
    let script = named(&mut world, "grant select on shop.customers to {south}").await;
    world.by_hand(&script).await;
    shop.keys.retain(|key| key["metadata"]["name"] != "south");
    let desired = shop.desired(&world.installation);
    world.settle(&desired).await;
    let (cluster, _) = world.look().await;
    assert!(!cluster.roles.contains_key(DbRole::for_key(&shop::key_id("south")).as_str()));
}
