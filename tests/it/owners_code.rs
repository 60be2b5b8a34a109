//! What the tenant's owner wrote, in the way of the passes: functions that policies call, and notices.

use rowgate_tests::world::World;

#[tokio::test]
async fn a_policy_may_call_a_function_of_the_owner_from_the_first_pass_on() {
    let mut world = World::shop().await;
    let near = "    create schema shop;\n    \
                create function shop.near(region text) returns boolean language plpgsql stable as \
                $$ begin raise notice 'told: %', region; return region = dl.claim('region'); end $$;\n    \
                do $$ begin raise warning 'a secret row'; end $$;\n";
    world.edit("bootstrap.yaml", "    create schema shop;\n", near);
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
