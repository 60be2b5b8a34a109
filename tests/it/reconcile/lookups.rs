//! The login of look-ups of a tenant that an earlier version made: it comes by itself, and requests are answered before, meanwhile and after.

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, get};
use sqlx::PgConnection;

const READ: &str = "/auth/shop/api/customers?$first=2";

/// A data plane of version 0.2, which looks up as the login of requests.
const OLDER: &str = "insert into control.replicas (id, version, address, beat_at) \
                     values ('01m8b37yzwma0v8vqzaha5jxm2', '0.2.0', 'old', now() + interval '1 hour')";
const GONE: &str = "delete from control.replicas where version = '0.2.0'";

/// What this login may do, of what it might.
async fn rights(superuser: &mut PgConnection, login: &str) -> Vec<String> {
    let query = "select r.name from (values
            ('digests', has_column_privilege($1, 'dl.live', 'digest', 'select')),
            ('catalog', has_table_privilege($1, 'dl.entities', 'select')),
            ('revoke', has_function_privilege($1, 'dl.revoke(text)', 'execute')),
            ('backends', has_table_privilege($1, 'dl.backends', 'delete')),
            ('subscriptions', has_table_privilege($1, 'dl.subscriptions', 'update')),
            ('key', has_column_privilege($1, 'dl.live', 'secret', 'select') and has_column_privilege($1, 'dl.state', 'generation', 'select'))
        ) r (name, has) where r.has order by 1";
    sqlx::query_scalar(query).bind(login).fetch_all(superuser).await.expect("rights")
}

async fn is_there(superuser: &mut PgConnection, role: &str) -> bool {
    let query = sqlx::query_scalar("select exists (select from pg_roles where rolname = $1)");
    query.bind(role).fetch_one(superuser).await.expect("an answer")
}

const ALL: [&str; 6] = ["backends", "catalog", "digests", "key", "revoke", "subscriptions"];

/// The rights of before stay until the last data plane of before is gone: it could look nothing up without them.
#[tokio::test]
async fn a_tenant_of_an_earlier_version_gets_the_login_while_it_is_served() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server).compared_every(1);
    world.start().await;
    let status = world.status("Tenant", "shop");
    let id = status["tenantId"].as_str().expect("an id").to_owned();
    let (auth, lookups) = (format!("t{id}_auth"), format!("t{id}_lookups"));
    let mut superuser = server.connect(status["database"].as_str().expect("a name")).await;
    let mut control = server.connect("rowgate").await;
    assert_eq!(rights(&mut superuser, &auth).await, ["key"]);
    assert_eq!(rights(&mut superuser, &lookups).await, ALL);

    // a data plane that is rolled back has what it needs
    execute(&mut control, OLDER).await;
    until("the rights of version 0.2", async || (rights(&mut superuser, &auth).await == ALL).then_some(()))
        .await;
    assert!(world.stop().await.success());
    execute(&mut superuser, &format!("drop owned by {lookups}; drop role {lookups}")).await;

    // no operator of this version was here yet
    let (replica, key) = (world.replica().await, world.key("north"));
    let url = format!("{}{READ}", replica.url());
    let answers = async || {
        let answer = get(&url, &key).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    answers().await;
    assert!(!is_there(&mut superuser, &lookups).await);

    world.spawn(|_| ());
    until("the login of look-ups", async || {
        answers().await;
        let is_made = is_there(&mut superuser, &lookups).await;
        (is_made && rights(&mut superuser, &lookups).await == ALL).then_some(())
    })
    .await;
    assert_eq!(rights(&mut superuser, &auth).await, ALL, "the data plane of before goes on");
    execute(&mut control, GONE).await;
    until("the rights to go", async || {
        answers().await;
        (rights(&mut superuser, &auth).await == ["key"]).then_some(())
    })
    .await;
    for _ in 0..20 {
        answers().await;
    }
    assert!(!world.log().contains("changed by hand"), "{}", world.log());
    assert!(world.stop().await.success());
}
