//! Typing errors in a folder's files.

use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use rowgate_tests::world::status::ready;

/// Seen to fail with a look that drops an object whose new version is refused.
#[tokio::test]
async fn a_typing_error_keeps_the_last_good_version_in_force_and_says_so() {
    let mut world = World::shop().await.compared_every(1);
    world.start().await;
    let (north, south) = (world.key("north"), world.key("south"));
    let customers = async |world: &World| world.get(&south, "/auth/shop/api/customers?$first=-1").await;
    let n_orders = async |world: &World| {
        let answer = world.get(&north, "/auth/shop/api/orders?$first=1").await;
        answer.body["value"].as_array().map(Vec::len)
    };
    let before = customers(&world).await;
    let last_good = std::fs::read_to_string(world.manifests().join("keys.yaml")).expect("it is there");

    // A field that does not exist: the key as it was accepted last. The other edit of the same file counts.
    world.write(
        "keys.yaml",
        &last_good.replace("exclude: [email]", "exclud: [email]").replace("region: north", "region: west"),
    );
    world.says("the last accepted version stays in force").await;
    until("the good half of the file", async || (n_orders(&world).await == Some(0)).then_some(())).await;
    assert_eq!(customers(&world).await, before);

    // No YAML at all: nothing of it counts.
    world.write("keys.yaml", &last_good.replace("kind: ApiKey", "kind: [ApiKey"));
    world.says("is not valid YAML").await;
    assert_eq!(customers(&world).await, before);
    assert_eq!(n_orders(&world).await, Some(0));

    world.write("keys.yaml", &last_good);
    until("the mended file", async || (n_orders(&world).await == Some(1)).then_some(())).await;
    // what is served is said a moment later
    until("the status", async || (ready(&world.status("ApiKey", "south")).0 == "Served").then_some(())).await;
    assert!(world.stop().await.success());
}
