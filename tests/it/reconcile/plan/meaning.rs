//! What a permission comes to when tables, names and other entities change around it.

use std::collections::BTreeSet;

use rowgate_sql::catalog::Action;
use rowgate_tests::servers::postgres::Server;
use serde_json::json;

use super::shop::{self, Shop};
use super::{World, installation, text};

async fn shop(shop: &Shop) -> World {
    let server = Server::own().await;
    let installation = installation(&server).await;
    let desired = shop.desired(&installation);
    let mut world = World::new(server, installation, &desired, &shop::bootstrap()).await;
    world.settle(&desired).await;
    world
}

/// The columns of `entity` that the key may read.
async fn readable(world: &mut World, key: &str, entity: &str) -> BTreeSet<String> {
    let (_, db) = world.look().await;
    let set = db.keys[&shop::key_id(key)].set_role.clone().expect("the key has its rights");
    let permissions = &db.permission_sets[&set].permissions;
    let read = permissions.iter().find(|it| it.entity.as_str() == entity && it.action == Action::Read);
    read.map(|it| it.columns.iter().cloned().collect()).unwrap_or_default()
}

fn columns(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_column_added_later_is_invisible_until_the_resource_changes() {
    let mut manifests = Shop::new();
    let mut world = shop(&manifests).await;
    world.by_hand("alter table shop.products add column cost numeric").await;
    let outcome = world.plan(&manifests.desired(&world.installation)).await;
    assert_eq!(text(&outcome.ops), "", "a new column gives nobody anything");
    manifests.key("north")["metadata"]["generation"] = json!(2);
    world.settle(&manifests.desired(&world.installation)).await;
    assert!(readable(&mut world, "north", "products").await.contains("cost"));
}

#[tokio::test]
async fn two_keys_that_say_the_same_hold_the_columns_of_the_day_on_which_each_said_it() {
    let mut manifests = Shop::new();
    let scope =
        json!({"permissions": [{"entity": "products", "actions": ["read"], "fields": {"include": ["*"]}}]});
    manifests.key("north")["spec"]["scope"] = scope.clone();
    let later = manifests.keys.iter().position(|key| key["metadata"]["name"] == "south").expect("a key");
    let mut later = manifests.keys.remove(later);
    let mut world = shop(&manifests).await;
    world.by_hand("alter table shop.products add column cost numeric").await;
    later["spec"]["scope"] = scope;
    manifests.keys.push(later);
    let desired = manifests.desired(&world.installation);
    world.settle(&desired).await;
    assert!(!readable(&mut world, "north", "products").await.contains("cost"));
    assert!(readable(&mut world, "south", "products").await.contains("cost"));
    assert_eq!(text(&world.plan(&desired).await.ops), "", "and so it stays");
}

#[tokio::test]
async fn a_named_field_is_followed_when_the_tenant_renames() {
    let mut manifests = Shop::new();
    manifests.key("south")["spec"]["scope"]["permissions"] =
        json!([{"entity": "customers", "actions": ["read"], "fields": {"include": ["notes"]}}]);
    let mut world = shop(&manifests).await;
    assert_eq!(readable(&mut world, "south", "customers").await, columns(&["id", "notes"]));
    manifests.tenant["metadata"]["generation"] = json!(2);
    let customers = manifests.entity("customers");
    customers["mappings"] = json!({"notes": "remarks", "name": "notes"});
    customers["keyFields"] = json!(["email"]);
    let outcome = world.settle(&manifests.desired(&world.installation)).await;
    assert_eq!(outcome.problems, []);
    assert_eq!(readable(&mut world, "south", "customers").await, columns(&["email", "name"]));
}

#[tokio::test]
async fn policies_outlive_a_mistake_in_the_entity_that_declares_them() {
    let mut manifests = Shop::new();
    let mut world = shop(&manifests).await;
    let (_, before) = world.look().await;
    manifests.tenant["metadata"]["generation"] = json!(2);
    manifests.entity("orders")["mappings"] = json!({"no_such_column": "x"});
    let twin = json!({"name": "twin", "source": {"schema": "shop", "object": "orders"}});
    manifests.tenant["spec"]["entities"].as_array_mut().expect("a list").push(twin);
    let outcome = world.settle(&manifests.desired(&world.installation)).await;
    let (_, after) = world.look().await;
    let orders = ("shop".to_owned(), "orders".to_owned());
    assert_eq!(after.relations[&orders].policies, before.relations[&orders].policies);
    let stand = ["best_sellers", "customers", "order_lines", "place_order", "products", "stock"];
    assert_eq!(after.entities.keys().collect::<Vec<_>>(), stand);
    let about =
        |name: &str| outcome.problems.iter().any(|it| it.message.starts_with(&format!("entities[{name}]: ")));
    assert!(["orders", "twin", "order_summary"].into_iter().all(about), "{:?}", outcome.problems);
}

#[tokio::test]
async fn a_database_is_closed_before_its_bootstrap_script_runs() {
    let manifests = Shop::new();
    let server = Server::own().await;
    let installation = installation(&server).await;
    let script =
        "create schema app; create function app.f() returns int language sql security definer as 'select 1'";
    let desired = manifests.desired(&installation);
    let mut world = World::new(server, installation, &desired, script).await;
    let (cluster, db) = world.look().await;
    let acl = cluster.database.expect("it was made").acl;
    assert!(acl.keys().all(|role| role.ends_with("_dl")), "{acl:?}");
    assert!(db.routines["app.f()"].acl.is_empty());
}
