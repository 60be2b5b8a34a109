//! The statements that a reader should read: snapshots of whole plans, each run on PostgreSQL and planned again.

use rowgate_reconcile::plan::Outcome;
use rowgate_tests::servers::postgres::Server;
use serde_json::json;

use super::shop::{self, Shop};
use super::{World, installation, text};

/// The shop with nothing inside yet.
pub(super) async fn empty_shop() -> (World, Shop) {
    let server = Server::own().await;
    let installation = installation(&server).await;
    let shop = Shop::new();
    let desired = shop.desired(&installation);
    (World::new(server, installation, &desired, &shop::bootstrap()).await, shop)
}

/// The shop as `examples/shop` asks for it.
pub(super) async fn whole_shop() -> (World, Shop) {
    let (mut world, shop) = empty_shop().await;
    let desired = shop.desired(&world.installation);
    world.settle(&desired).await;
    (world, shop)
}

/// A plan as it is kept: verifiers depend on the cluster, so they are left out.
fn snapshot(name: &str, outcome: &Outcome) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut text = text(&outcome.ops);
    while let Some(start) = text.find("E'SCRAM-SHA-256$") {
        let end = start + 2 + text[start + 2..].find('\'').expect("a literal ends");
        text.replace_range(start..=end, "<verifier>");
    }
    // oids and versions depend on the cluster
    for name in ["\"oid\":", "\"rule\":"] {
        let mut from = 0;
        while let Some(at) = text[from..].find(name) {
            let start = from + at + name.len();
            let end = start + text[start..].find([',', '}']).expect("an object ends");
            if text[start..end] != *"null" {
                text.replace_range(start..end, "<version>");
            }
            from = start;
        }
    }
    for sentence in outcome.problems.iter().chain(outcome.key_problems.values().flatten()) {
        text += &format!("problem: {sentence}\n");
    }
    for note in &outcome.notes {
        text += &format!("note: {note}\n");
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[tokio::test]
async fn the_shop_from_nothing() {
    let (mut world, shop) = empty_shop().await;
    let desired = shop.desired(&world.installation);
    let first = Outcome { ops: world.roles_and_database.clone(), ..Outcome::default() };
    snapshot("shop_roles_and_database", &first);
    snapshot("shop_contents", &world.settle(&desired).await);
}

#[tokio::test]
async fn an_unchanged_folder_asks_for_nothing() {
    let (mut world, shop) = whole_shop().await;
    let outcome = world.plan(&shop.desired(&world.installation)).await;
    assert_eq!((text(&outcome.ops), outcome.problems, outcome.notes), (String::new(), vec![], vec![]));
    assert!(outcome.key_problems.is_empty());
}

#[tokio::test]
async fn a_narrowed_key() {
    let (mut world, mut shop) = whole_shop().await;
    let north = shop.key("north");
    north["metadata"]["generation"] = json!(2);
    north["spec"]["scope"]["permissions"] =
        json!([{"entity": "customers", "actions": ["read"], "fields": {"include": ["name"]}}]);
    let desired = shop.desired(&world.installation);
    snapshot("narrowed_key", &world.settle(&desired).await);
}

#[tokio::test]
async fn a_narrowed_key_that_also_changes_its_claim() {
    let (mut world, mut shop) = whole_shop().await;
    let north = shop.key("north");
    north["metadata"]["generation"] = json!(2);
    north["spec"]["claims"]["region"] = json!("south");
    north["spec"]["scope"]["permissions"] =
        json!([{"entity": "customers", "actions": ["read"], "fields": {"include": ["name"]}}]);
    let desired = shop.desired(&world.installation);
    snapshot("narrowed_key_new_claim", &world.settle(&desired).await);
}

#[tokio::test]
async fn a_policy_dropped_by_hand() {
    let (mut world, shop) = whole_shop().await;
    world.by_hand("drop policy own_region on shop.orders").await;
    let desired = shop.desired(&world.installation);
    snapshot("dropped_policy", &world.settle(&desired).await);
}

#[tokio::test]
async fn a_policy_taken_out_of_the_manifest() {
    let (mut world, mut shop) = whole_shop().await;
    shop.tenant["metadata"]["generation"] = json!(2);
    shop.entity("orders")["rowLevelSecurity"]["policies"].as_array_mut().expect("a list").remove(1);
    let desired = shop.desired(&world.installation);
    snapshot("removed_policy", &world.settle(&desired).await);
}

#[tokio::test]
async fn a_revoked_key() {
    let (mut world, mut shop) = whole_shop().await;
    shop.key("south")["spec"]["revoked"] = json!(true);
    let desired = shop.desired(&world.installation);
    snapshot("revoked_key", &world.settle(&desired).await);
}

#[tokio::test]
async fn a_deleted_key() {
    let (mut world, mut shop) = whole_shop().await;
    shop.keys.retain(|key| key["metadata"]["name"] != "south");
    let desired = shop.desired(&world.installation);
    snapshot("deleted_key", &world.settle(&desired).await);
}

#[tokio::test]
async fn a_removed_entity() {
    let (mut world, mut shop) = whole_shop().await;
    shop.tenant["metadata"]["generation"] = json!(2);
    let entities = shop.tenant["spec"]["entities"].as_array_mut().expect("a list");
    entities.retain(|entity| entity["name"] != "products");
    let desired = shop.desired(&world.installation);
    snapshot("removed_entity", &world.settle(&desired).await);
}

#[tokio::test]
async fn a_table_that_comes_under_protection_and_out_of_it() {
    let (mut world, mut shop) = whole_shop().await;
    shop.tenant["metadata"]["generation"] = json!(2);
    shop.entity("products")["concurrencyProtection"] = json!({"softDeleteColumn": "gone"});
    let desired = shop.desired(&world.installation);
    snapshot("protected_table", &world.settle(&desired).await);
    world.by_hand("alter table shop.products disable trigger \"~dl_3_keep\"").await;
    snapshot("disabled_trigger", &world.settle(&desired).await);
    shop.tenant["metadata"]["generation"] = json!(3);
    shop.entity("products").as_object_mut().expect("an object").remove("concurrencyProtection");
    let desired = shop.desired(&world.installation);
    let outcome = world.settle(&desired).await;
    snapshot("unprotected_table", &outcome);
    assert_eq!(outcome.events.len(), 1, "{:?}", outcome.events);
}

/// Partitions have triggers of their own, and one that is detached keeps them.
#[tokio::test]
async fn nothing_of_a_protection_is_left() {
    let (mut world, mut shop) = whole_shop().await;
    world
        .by_hand(
            "set role none; create table shop.parts (id int primary key) partition by range (id);
             create table shop.part_a partition of shop.parts for values from (0) to (9);
             create table shop.part_b partition of shop.parts for values from (9) to (99)",
        )
        .await;
    let owner = rowgate_core::role::TenantLogin::Owner.role(&world.tenant);
    for table in ["parts", "part_a", "part_b"] {
        world.by_hand(&format!("alter table shop.{table} owner to {owner}")).await;
    }
    let part = json!({"name": "parts", "source": {"schema": "shop", "object": "parts"}, "concurrencyProtection": {}});
    shop.tenant["spec"]["entities"].as_array_mut().expect("a list").push(part);
    let triggers = async |world: &mut World| {
        let (_, db) = world.look().await;
        let triggers = db.relations.values().flat_map(|relation| relation.triggers.values());
        triggers.filter(|trigger| trigger.function.starts_with("dl.protect")).count()
    };
    for (script, generation, wanted) in [
        ("select", 2, 4 + 4 + 4 + 4),
        ("alter table shop.parts detach partition shop.part_b", 2, 4 + 4 + 4),
        ("delete from dl.applied where name = 'shop.parts'", 2, 4 + 4 + 4),
        ("select", 3, 0),
    ] {
        world.by_hand(script).await;
        shop.tenant["metadata"]["generation"] = json!(generation);
        if generation == 3 {
            let entities = shop.tenant["spec"]["entities"].as_array_mut().expect("a list");
            entities.retain(|entity| entity["name"] != "parts" && entity["name"] != "stock");
            let permissions = shop.tenant["spec"]["shared"]["permissions"].as_array_mut().expect("a list");
            permissions.retain(|permission| permission["entity"] != "stock");
        }
        let desired = shop.desired(&world.installation);
        world.settle(&desired).await;
        assert_eq!(triggers(&mut world).await, wanted, "{script}");
    }
    let (_, db) = world.look().await;
    assert!(!db.routines.keys().any(|signature| signature.starts_with("dl.protect")), "no function is left");
}
