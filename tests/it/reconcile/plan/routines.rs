//! Which functions and procedures are accepted, what is said of the others, and what becomes of rights on one that is not
//! accepted any more.

use rowgate_core::role::TenantLogin;
use serde_json::{Value, json};

use super::golden::whole_shop;
use super::shop::Shop;
use super::{World, text};

/// What the owner makes, further fields of the entity `f` over `shop.f`, and what is said of it; empty: it is accepted.
const CASES: &[(&str, &str, &str)] = &[
    ("create function shop.f() returns int language sql return 1", "{}", ""),
    ("create function shop.f(a int, out b int, c int default 2) language sql return 1", "{}", ""),
    (
        "create function shop.f(a int[], b shop.orders, c shop.order_state) returns setof shop.orders language sql as 'select null::shop.orders'",
        "{}",
        "",
    ),
    (
        "create function shop.f() returns table (a int) language plpgsql as 'begin end'",
        "{\"mappings\": {\"a\": \"b\"}}",
        "",
    ),
    (
        "create procedure shop.f(inout a int, out b text) language plpgsql as 'begin end'",
        "{\"mappings\": {\"a\": \"x\", \"b\": \"y\"}}",
        "",
    ),
    (
        "create function shop.f() returns void language sql security definer set search_path = '' as ''",
        "{\"allowDefiner\": true}",
        "",
    ),
    (
        "create function shop.f() returns int language sql security definer return 1",
        "{\"allowDefiner\": true}",
        "",
    ),
    ("select 1", "{}", "function or procedure shop.f does not exist; create it"),
    (
        "create table shop.f (id int primary key)",
        "{}",
        "function or procedure shop.f does not exist; create it",
    ),
    (
        "create function shop.f() returns int language sql return 1; create procedure shop.f(a int) language sql as 'select 1'",
        "{}",
        "shop.f is overloaded (shop.f() and shop.f(integer)), so a call is ambiguous; rename or drop one",
    ),
    (
        "create function shop.f() returns int language sql security definer return 1",
        "{}",
        "shop.f() is SECURITY DEFINER, so it runs with the rights of its owner instead of its caller; alter routine shop.f() security invoker, or set allowDefiner: true",
    ),
    (
        "create procedure shop.f() language plpgsql security definer as 'begin end'",
        "{\"allowDefiner\": true}",
        "shop.f() is SECURITY DEFINER without its own search_path",
    ),
    (
        "create function shop.f(variadic a int[]) returns int language sql return 1",
        "{}",
        "shop.f(integer[]) is VARIADIC",
    ),
    (
        "create function shop.f(int, b int) returns int language sql return 1",
        "{}",
        "parameter 1 of shop.f(integer,integer) has no name",
    ),
    (
        "create function shop.f(a anyelement) returns int language sql as 'select 1'",
        "{}",
        "parameter a of shop.f(anyelement) is of type anyelement",
    ),
    (
        "create function shop.f(a record) returns int language plpgsql as 'begin return 1; end'",
        "{}",
        "parameter a of shop.f(record) is of type record",
    ),
    (
        "create function shop.f() returns trigger language plpgsql as 'begin end'",
        "{}",
        "shop.f() is a trigger function",
    ),
    (
        "create function shop.f() returns event_trigger language plpgsql as 'begin end'",
        "{}",
        "shop.f() is a trigger function",
    ),
    (
        "create function shop.f() returns record language sql as 'select 1, 2'",
        "{}",
        "shop.f() returns record without naming",
    ),
    ("create aggregate shop.f(int) (sfunc = int4pl, stype = int)", "{}", "shop.f(integer) is an aggregate"),
    (
        "reset role; create function shop.f(a int) returns int language internal as 'int4abs'; alter function shop.f(int) owner to {owner}",
        "{}",
        "shop.f(integer) is written in internal, which roles and policies do not confine",
    ),
    (
        "reset role; create function shop.f() returns bigint language internal window as 'window_row_number'; alter function shop.f() owner to {owner}",
        "{}",
        "shop.f() is a window function",
    ),
    (
        "reset role; create function shop.f() returns int language sql return 1; revoke all on function shop.f() from public",
        "{}",
        "shop.f() belongs to rowgate_superuser; alter routine shop.f() owner to {owner}",
    ),
    (
        "reset role; create extension pg_trgm schema shop",
        "{\"source\": {\"schema\": \"shop\", \"object\": \"similarity\"}}",
        "shop.similarity belongs to an extension",
    ),
    (
        "create function shop.similarity() returns int language sql return 1; reset role; create extension pg_trgm schema shop",
        "{\"source\": {\"schema\": \"shop\", \"object\": \"similarity\"}}",
        "shop.similarity() has the same name as a function of an extension, so a call of shop.similarity is ambiguous",
    ),
    (
        "create function shop.f(a int, b int) returns int language sql return 1",
        "{\"mappings\": {\"a\": \"b\"}}",
        "two parameters, or two columns of the result, of shop.f(integer,integer) are exposed under one name",
    ),
    (
        "create function shop.f(a int) returns int language sql return 1",
        "{\"mappings\": {\"z\": \"b\"}}",
        "mappings names z, which is neither a parameter of shop.f(integer)",
    ),
];

/// The shop with one more entity of this name, over the object of this name, which every unscoped key may call.
fn with(shop: &mut Shop, name: &str, fields: &str) {
    let mut entity = json!({"name": name, "kind": "Procedure", "source": {"schema": "shop", "object": name}});
    let fields: Value = serde_json::from_str(fields).expect("JSON");
    let fields = fields.as_object().expect("an object").clone();
    entity.as_object_mut().expect("an object").extend(fields);
    shop.tenant["metadata"]["generation"] = json!(2);
    shop.tenant["spec"]["entities"].as_array_mut().expect("a list").push(entity);
    let permission = json!({"entity": name, "actions": ["execute"]});
    shop.tenant["spec"]["shared"]["permissions"].as_array_mut().expect("a list").push(permission);
}

async fn as_owner(world: &mut World, script: &str) -> String {
    let owner = TenantLogin::Owner.role(&world.tenant);
    let script = script.replace("{owner}", &owner);
    world.by_hand(&format!("set role {owner}; {script}")).await;
    owner
}

/// All in one shop, each under a name of its own; an extension goes into a shop of its own.
#[tokio::test]
async fn what_no_request_can_call_is_refused_with_what_to_do() {
    let (alone, together): (Vec<_>, Vec<_>) =
        CASES.iter().partition(|(script, ..)| script.contains("extension"));
    let mut wrong = told(&together).await;
    for case in alone {
        wrong.extend(told(&[case]).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The cases of which something else is said, or whose rights are not as they should be.
async fn told(cases: &[&(&str, &str, &str)]) -> Vec<String> {
    let (mut world, mut shop) = whole_shop().await;
    let named: Vec<_> = (1..).map(|number| format!("f_{number:02}")).zip(cases).collect();
    let mut owner = String::new();
    for (name, (script, fields, _)) in &named {
        owner = as_owner(&mut world, &script.replace("shop.f", &format!("shop.{name}"))).await;
        with(&mut shop, name, fields);
    }
    let desired = shop.desired(&world.installation);
    let outcome = world.settle(&desired).await;
    let problems: Vec<String> = outcome.problems.iter().map(ToString::to_string).collect();
    let (_, db) = world.look().await;
    let mut wrong = Vec::new();
    for (name, (script, _, message)) in &named {
        let of_it: Vec<_> = problems.iter().filter(|problem| problem.contains(name)).collect();
        let message = message.replace("{owner}", &owner).replace("shop.f", &format!("shop.{name}"));
        let told = match message.is_empty() {
            true => of_it.is_empty(),
            false => of_it.iter().any(|problem| problem.starts_with(&format!("entities[{name}]: {message}"))),
        };
        let is_open = db.routines.values().any(|it| {
            it.declared.schema == "shop"
                && [name, "similarity"].contains(&it.declared.name.as_str())
                && !it.acl.is_empty()
        });
        if !told || is_open != message.is_empty() {
            wrong.push(format!("{script}: {of_it:?}, granted: {is_open}"));
        }
    }
    wrong
}

/// What makes an exposed function one that is not, by hand; all rights on it go.
const SPOILT: &[&str] = &[
    "alter function shop.best_sellers(integer) security definer",
    "create or replace function shop.best_sellers(top integer default 5) returns table (product_id bigint, title text, sold bigint) language sql security definer as 'select 1::bigint, ''x'', 1::bigint'",
    "create function shop.best_sellers() returns int language sql return 1",
    "create procedure shop.best_sellers(a int, b int) language sql as 'select 1'",
];

#[tokio::test]
async fn rights_go_when_a_routine_becomes_another() {
    for script in SPOILT {
        let (mut world, shop) = whole_shop().await;
        as_owner(&mut world, script).await;
        let outcome = world.settle(&shop.desired(&world.installation)).await;
        assert!(
            outcome.problems.iter().any(|it| it.message.starts_with("entities[best_sellers]: ")),
            "{script}"
        );
        assert!(
            text(&outcome.ops).contains("revoke EXECUTE on routine shop.best_sellers(integer)"),
            "{script}"
        );
        let (_, db) = world.look().await;
        assert!(!db.entities.contains_key("best_sellers"), "{script}");
        let acls: Vec<_> = db
            .routines
            .iter()
            .filter(|(name, _)| name.starts_with("shop.best_sellers"))
            .flat_map(|(_, routine)| &routine.acl)
            .collect();
        assert!(acls.is_empty(), "{script}: {acls:?}");
    }
}

/// What one says of the other kind.
#[tokio::test]
async fn a_routine_takes_execute_and_nothing_else_does() {
    for (entity, action, told) in [
        ("orders", "execute", "permissions on orders name execute, which only a Procedure supports"),
        ("place_order", "read", "permissions on place_order name read, but it is a Procedure; use execute"),
        (
            "place_order",
            "delete",
            "permissions on place_order name delete, but it is a Procedure; use execute",
        ),
    ] {
        let (mut world, mut shop) = whole_shop().await;
        shop.tenant["metadata"]["generation"] = json!(2);
        let permission = json!({"entity": entity, "actions": [action]});
        shop.tenant["spec"]["shared"]["permissions"].as_array_mut().expect("a list").push(permission);
        let outcome = world.plan(&shop.desired(&world.installation)).await;
        assert!(outcome.problems.iter().any(|it| it.message.contains(told)), "{:?}", outcome.problems);
        assert!(!text(&outcome.ops).contains("grant "), "{}", text(&outcome.ops));
    }
}

/// Between the plan and its grants somebody makes the function SECURITY DEFINER: the transaction fails. Seen to fail with
/// `dl.stand_routines` left out.
#[tokio::test]
async fn what_was_swapped_under_a_plan_gets_no_grant() {
    for script in [
        "alter function shop.best_sellers(integer) security definer",
        "create function shop.best_sellers() returns int language sql return 1",
        "drop function shop.best_sellers(integer); create function shop.best_sellers(top integer) returns int language sql return 1",
    ] {
        let (mut world, mut shop) = whole_shop().await;
        shop.tenant["metadata"]["generation"] = json!(2);
        let permissions = shop.tenant["spec"]["shared"]["permissions"].as_array_mut().expect("a list");
        permissions.retain(|permission| permission["entity"] != "place_order");
        let outcome = world.plan(&shop.desired(&world.installation)).await;
        as_owner(&mut world, script).await;
        let ops = outcome.ops.iter().find(|op| op.about.starts_with("grants, policies")).expect("it revokes");
        let statements = world.staged(ops).await;
        let refused =
            rowgate_pg::connect::session::transaction(&mut world.owner, &statements).await.expect_err(script);
        assert!(
            refused.error.to_string().contains("was changed while rights"),
            "{script}: {}",
            refused.error
        );
    }
}
