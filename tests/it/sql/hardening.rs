//! What PUBLIC may do in PostgreSQL that nothing needs, and what a Tenant says about it.

use std::fs;

use rowgate_tests::servers::postgres::{Server, attempt, execute, major};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use rowgate_tests::world::status::condition;

const CALLS: [&str; 3] = [
    "select query_to_xml('select 1', true, true, '')",
    "select ts_rewrite('a'::tsquery, 'select ''a''::tsquery, ''b''::tsquery')",
    "update pg_settings set setting = 'a' where name = 'application_name'",
];
/// As the owner of the database from now on.
const OWNER: &str = "select set_config('role', datdba::regrole::text, false) from pg_database where datname = current_database()";

/// PUBLIC keeps it on 16, whose rights on it cannot be restored into a newer version.
const EMIT: &str = "select pg_logical_emit_message(false, 'a', 'b')";

/// What the condition of the Tenant says: its status, reason and message.
fn hardened(world: &World) -> Option<[String; 3]> {
    let status = world.status("Tenant", "shop");
    let found = condition(&status, "CatalogHardened").as_object()?;
    Some(["status", "reason", "message"].map(|name| found[name].as_str().unwrap_or_default().to_owned()))
}

/// After the program was started again.
async fn again(world: &mut World) -> [String; 3] {
    assert!(world.stop().await.success(), "{}", world.log());
    fs::remove_dir_all(world.state().join("status")).expect("statuses are there");
    world.start().await;
    until("the condition", async || hardened(world)).await
}

/// The superuser's block in the page for users.
fn block() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sql.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let block = page.split("```sql\n").find(|block| block.starts_with("do $$")).expect("a block");
    block.split("```").next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn public_lacks_what_runs_a_text_as_sql_in_every_database_of_a_tenant() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let says = until("the condition", async || hardened(&world)).await;
    assert_eq!(says[..2], ["True", "RightsRevoked"], "{says:?}");
    let database = world.status("Tenant", "shop")["database"].as_str().expect("a name").to_owned();
    let mut superuser = server.connect(&database).await;
    execute(&mut superuser, OWNER).await;
    for call in CALLS {
        let refusal = attempt(&mut superuser, call).await.expect_err(call).to_string();
        assert!(refusal.contains("permission denied"), "{call}: {refusal}");
    }

    assert_eq!(attempt(&mut superuser, EMIT).await.is_ok(), major() == 16);

    // by hand, and found by the next look
    let give = "reset role; grant execute on all functions in schema pg_catalog to public; grant update on pg_settings to public";
    execute(&mut superuser, give).await;
    let says = again(&mut world).await;
    assert_eq!(says[..2], ["False", "SuperuserNeeded"], "{says:?}");
    assert!(says[2].contains(&database) && says[2].contains("docs/sql.md"), "{says:?}");
    execute(&mut superuser, &block()).await;
    assert_eq!(again(&mut world).await[0], "True");

    // as versions before left it
    execute(&mut superuser, give).await;
    if major() == 16 {
        let take = "revoke execute on function pg_logical_emit_message(boolean, text, bytea) from public";
        execute(&mut superuser, take).await;
    }
    execute(&mut superuser, "alter database rowgate_template is_template false").await;
    execute(&mut superuser, "drop database rowgate_template").await;
    let says = again(&mut world).await;
    assert_eq!(says[..2], ["True", "RightsRevoked"], "{says:?}");
    let mut superuser = server.connect(&database).await;
    execute(&mut superuser, OWNER).await;
    assert_eq!(attempt(&mut superuser, EMIT).await.is_ok(), major() == 16);
}
