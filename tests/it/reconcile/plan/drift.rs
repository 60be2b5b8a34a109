//! What somebody changed by hand: the next plan repairs it to the letter, and the plan after is empty.

mod by_hand;

use rowgate_core::role::{DbRole, TenantLogin};
use rowgate_pg::introspect::actual::{Cluster, TenantDb};
use rowgate_reconcile::desired::Desired;
use rowgate_reconcile::plan::{self, Outcome};
use rowgate_tests::servers::postgres::Server;

use super::shop::{self, Shop};
use super::{World, installation, text};
use by_hand::BY_HAND;

/// As [`BY_HAND`], but another permission set with equal rights takes the place of one that was spoilt.
const BY_HAND_NEW_SET: &[(&str, &str)] = &[
    (
        "update dl.permission_sets set hash = 'x' where role = '{set_south}'",
        "the row of {set_south} in dl.permission_sets was changed",
    ),
    (
        "delete from dl.permission_sets where role = '{set_south}'",
        "the row of {set_south} in dl.permission_sets is missing",
    ),
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
    for login in ["owner", "keys", "auth", "sql", "dl", "lookups", "views"].iter().zip(TenantLogin::ALL) {
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
    let mut wrong = Vec::new();
    for (script, differences) in BY_HAND {
        let wanted = named(&mut world, differences).await;
        let script = named(&mut world, script).await;
        world.by_hand(&script).await;
        let drifted = looked(&mut world).await;
        assert_ne!(drifted, before, "nothing was changed by: {script}");
        let outcome = world.settle(&desired).await;
        let told = told(&outcome, &desired, &drifted.1);
        // which privileges there are depends on PostgreSQL's version
        let is_told = match wanted.strip_suffix("...") {
            Some(start) => told.starts_with(start),
            None => told == wanted,
        };
        if !is_told {
            wrong.push(format!("{script}\n  {told}\n  and not\n  {wanted}"));
        }
        assert!(!outcome.ops.is_empty(), "not seen: {script}");
        assert_eq!(outcome.problems, [], "{script}");
        let after = looked(&mut world).await;
        assert_eq!(after.0, before.0, "after {script}\n{}", text(&outcome.ops));
        assert_eq!(after.1, before.1, "after {script}\n{}", text(&outcome.ops));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is said of a plan that repairs, without what each role stands for.
fn told(outcome: &Outcome, desired: &Desired, db: &TenantDb) -> String {
    let told = plan::drift(&outcome.ops, desired, db).unwrap_or_default();
    ["ApiKey north", "ApiKey south", "the rights of ApiKey north", "the rights of ApiKey south"]
        .iter()
        .fold(told, |told, known| told.replace(&format!(" ({known})"), ""))
}

#[tokio::test]
async fn a_spoilt_permission_set_is_replaced() {
    let (mut world, shop) = shop().await;
    let desired = shop.desired(&world.installation);
    for (script, differs) in BY_HAND_NEW_SET {
        let differs = named(&mut world, differs).await;
        let (script, set) = (named(&mut world, script).await, named(&mut world, "{set_south}").await);
        let (_, before) = world.look().await;
        world.by_hand(&script).await;
        let (_, drifted) = world.look().await;
        let outcome = world.settle(&desired).await;
        assert_eq!(told(&outcome, &desired, &drifted), differs);
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
