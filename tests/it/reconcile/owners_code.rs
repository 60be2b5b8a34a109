//! What the tenant's owner wrote, in the way of the passes: functions that policies call, and notices.

use rowgate_tests::servers::postgres::Server;
use rowgate_tests::world::World;

#[tokio::test]
async fn a_policy_may_call_a_function_of_the_owner_from_the_first_pass_on() {
    let mut world = World::shop().await;
    let near = "    create function shop.near(region text) returns boolean language plpgsql stable as \
                $$ begin raise notice 'told: %', region; return region = dl.claim('region'); end $$;\n    \
                do $$ begin raise warning 'a secret row'; end $$;\n";
    world.shop_script(near);
    world.edit(
        "tenant.yaml",
        "sees none by this one.\n          - name: own_region\n            column: region\n            equals:\n              claim: region\n",
        "sees none by this one.\n          - name: own_region\n            expression: shop.near(region)\n",
    );
    world.start().await;
    let answer = world.get(&world.key("north"), "/auth/shop/api/customers?$first=2").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["value"].as_array().map(Vec::len), Some(2), "{answer:?}");
    assert!(!world.log().contains("still differs"), "one pass is enough: {}", world.log());
    assert!(!world.log().contains("a secret row"), "what a tenant's code says is not ours to log");
    assert!(world.stop().await.success());
}

/// While the keys login worked in the tenant's database and asked `dl.fence` there, such a fence made a role of the
/// whole cluster.
#[tokio::test]
async fn code_of_the_owner_never_runs_as_the_role_that_creates_roles() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    let trap = "    create function shop.trap() returns trigger language plpgsql as $$ begin \
                if current_user like '%\\_keys' then execute 'create role pwned'; end if; return null; end $$;\n    \
                create or replace function dl.fence(wanted bigint) returns void language plpgsql as $$ begin \
                if current_user like '%\\_keys' then execute 'create role pwned'; end if; end $$;\n    \
                create trigger trap after insert or update on dl.keys execute function shop.trap();\n";
    world.shop_script(trap);
    world.start().await;
    let answer = world.get(&world.key("north"), "/auth/shop/api/customers?$first=2").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let tenant = world.status("Tenant", "shop");
    let id = tenant["tenantId"].as_str().expect("the tenant's id").to_owned();
    let mut control = server.connect("rowgate").await;
    let made = "select count(*) from pg_roles where rolname = 'pwned'";
    let n_made: i64 = sqlx::query_scalar(made).fetch_one(&mut control).await.expect("an answer");
    assert_eq!(n_made, 0, "the keys login ran what the owner wrote");
    let enters = "select has_database_privilege('t' || $1 || '_keys', 't_' || $1, 'connect')";
    let enters: bool = sqlx::query_scalar(enters).bind(id).fetch_one(&mut control).await.expect("an answer");
    assert!(!enters, "the keys login has no business in the tenant's database");
    assert!(world.stop().await.success());
}
