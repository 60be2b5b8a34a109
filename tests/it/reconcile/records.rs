//! Schema `dl` of a database that an earlier version, or a restored dump, left the owner of the tables: it becomes that of its own login while
//! requests go on, or says what is in the way.

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use rowgate_tests::world::status::condition;
use serde_json::Value;

const READ: &str = "/auth/shop/api/customers?$first=2";

/// What the version before left, but for the texts of functions: one owner, and no trace of the other login.
fn as_before(id: &str) -> String {
    format!(
        "drop function dl.publish; drop table dl.staged; delete from dl.migrations where 13 < number; \
         reassign owned by t{id}_dl to t{id}_owner; drop owned by t{id}_dl; drop role t{id}_dl; \
         alter function dl.undecidable() security definer"
    )
}

async fn owners(world: &World, server: &Server) -> Vec<String> {
    let query =
        "select distinct relowner::regrole::text from pg_class where relnamespace = 'dl'::regnamespace
                 union select nspowner::regrole::text from pg_namespace where nspname = 'dl'";
    let database = world.status("Tenant", "shop")["database"].as_str().expect("a name").to_owned();
    sqlx::query_scalar(query).fetch_all(&mut server.connect(&database).await).await.expect("an answer")
}

fn ready(world: &World) -> Value {
    condition(&world.status("Tenant", "shop"), "Ready").clone()
}

/// Seen to fail with tables that pass one by one: requests were refused in between.
#[tokio::test]
async fn a_database_of_an_earlier_version_is_taken_over_while_it_is_served() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let id = world.status("Tenant", "shop")["tenantId"].as_str().expect("an id").to_owned();
    let database = world.status("Tenant", "shop")["database"].as_str().expect("a name").to_owned();
    assert_eq!(owners(&world, &server).await, [format!("t{id}_dl")]);
    let (replica, key) = (world.replica().await, world.key("north"));
    assert!(world.stop().await.success());
    let mut superuser = server.connect(&database).await;
    execute(&mut superuser, &as_before(&id)).await;
    assert_eq!(owners(&world, &server).await, [format!("t{id}_owner")]);

    // what runs code of the tenant's is named, and nothing is taken over
    let trap = "create function shop.trap() returns trigger language plpgsql as 'begin return new; end'; \
                create trigger trap before update on dl.keys for each row execute function shop.trap()";
    execute(&mut superuser, trap).await;
    world.spawn(|_| ());
    until("the trigger to be named", async || {
        let ready = ready(&world);
        let named = ready["message"].as_str().is_some_and(|it| it.contains("trigger trap on keys"));
        (ready["reason"] == "StatementRefused" && named).then_some(())
    })
    .await;
    assert_eq!(owners(&world, &server).await, [format!("t{id}_owner")]);
    // and a data plane of the version before would close views
    let mut control = server.connect("rowgate").await;
    let old = "insert into control.replicas (id, version, address, beat_at) \
               values ('01m8b37yzwma0v8vqzaha5jxm2', '0.1.0', 'old', now() + interval '1 hour')";
    execute(&mut control, old).await;
    execute(&mut superuser, "drop function shop.trap() cascade").await;
    until("the old data plane to be waited for", async || {
        let says = ready(&world);
        says["message"].as_str().is_some_and(|it| it.contains("version 0.1")).then_some(())
    })
    .await;
    assert_eq!(owners(&world, &server).await, [format!("t{id}_owner")]);
    execute(&mut control, "delete from control.replicas where version = '0.1.0'").await;

    let mut n_answers = 0;
    let url = format!("{}{READ}", replica.url());
    until("the end of the migration", async || {
        let answer = rowgate_tests::world::get(&url, &key).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        n_answers += 1;
        (owners(&world, &server).await == [format!("t{id}_dl")]).then_some(())
    })
    .await;
    until("the Tenant to be ready", async || (ready(&world)["status"] == "True").then_some(())).await;
    for _ in 0..20 {
        assert_eq!(rowgate_tests::world::get(&url, &key).await.status, 200);
    }
    let member = "select pg_has_role('t' || $1 || '_dl', 't' || $1 || '_owner', 'member')";
    let is_member: bool =
        sqlx::query_scalar(member).bind(&id).fetch_one(&mut superuser).await.expect("an answer");
    assert!(!is_member, "the rights of the owner were lent for one transaction");

    // and it can be changed, as before
    world.edit("tenant.yaml", "maxPageSize: 1000", "maxPageSize: 999");
    let limits = "select limits from dl.state";
    until("the limit", async || {
        let limits: Value = sqlx::query_scalar(limits).fetch_one(&mut superuser).await.expect("an answer");
        limits.to_string().contains("999").then_some(())
    })
    .await;
    assert!(0 < n_answers);
    assert!(world.stop().await.success());
}
