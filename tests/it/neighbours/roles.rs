//! A role that cannot be dropped for somebody else's sake is closed and counts as gone; whose database holds it is told, with
//! what mends it; and it is dropped when that is possible.

use rowgate_core::role::TenantLogin;
use rowgate_tests::asked::Asked;
use rowgate_tests::servers::postgres::{connect, execute};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::status::ready;
use sqlx::PgConnection;

use crate::reconcile::acme::{SPEC, key, reader, tenant};
use crate::reconcile::scenarios::scenarios;

scenarios!(a_right_in_one_tenants_database_holds_up_no_other_tenant);

const PATH: &str = "/auth/beta/api/notes?$first=1";

async fn count(conn: &mut PgConnection, query: &'static str, what: &str) -> i64 {
    sqlx::query_scalar(query).bind(what).fetch_one(conn).await.expect("the query is ours")
}

const THERE: &str = "select count(*) from pg_authid where rolname = $1";
/// It may log in, or it has a password, or it is in a role, or another role than the one that made it may become it.
const OPEN: &str =
    "select count(*) from pg_authid r where rolname = $1 and (rolcanlogin or rolpassword is not null
    or exists (select from pg_auth_members m where m.member = r.oid)
    or exists (select from pg_auth_members m where m.roleid = r.oid and not m.admin_option))";

/// Seen to fail with roles that are dropped whatever holds them, where a drop that is refused stops the pass.
async fn a_right_in_one_tenants_database_holds_up_no_other_tenant(on: On) {
    let acme = tenant("acme", SPEC);
    let scoped = |name: &str| key(name, "beta", &reader("north", "['*']"));
    let doomed = tenant("beta", SPEC).replace("database: {", "database: {deletionPolicy: Delete, ");
    let keys = [key("other", "beta", ""), scoped("one"), scoped("two"), scoped("three")].concat();
    let mut stage = Stage::open(on, &format!("{acme}---\n{doomed}{keys}")).await;
    stage.told("Tenant", "acme", 1, DONE).await;
    for name in ["other", "one", "two", "three"] {
        stage.told("ApiKey", name, 1, DONE).await;
    }
    let mut roles = Vec::new();
    for name in ["one", "two", "three"] {
        let status = stage.status("ApiKey", name).await;
        roles.push(status["role"].as_str().expect("it has a role").to_owned());
    }
    let [one, two, three] = &roles[..] else { unreachable!("three were pushed") };
    let asked = Asked::begin(format!("{}{PATH}", stage.url()), stage.key("other").await, &stage.pids());
    let mut owner = connect(&stage.login("acme", TenantLogin::Owner).await).await.expect("the owner");
    let mut holder = connect(&stage.login("acme", TenantLogin::Owner).await).await.expect("the owner");
    let mut superuser = stage.server.connect("postgres").await;
    let beta_owner = stage.login("beta", TenantLogin::Owner).await.role;
    execute(
        &mut owner,
        &format!(
            "select lo_create(4242), lo_create(4243), lo_create(4244), lo_create(4245);
             grant select on large object 4242 to {one}; grant select on large object 4244 to {three}, {beta_owner}"
        ),
    )
    .await;
    // a GRANT that nobody commits holds the role itself
    execute(&mut holder, &format!("begin; grant select on large object 4243 to {two}")).await;

    for name in ["one", "two"] {
        stage.remove("ApiKey", name).await;
    }
    for name in ["one", "two"] {
        stage.gone("ApiKey", name).await;
    }
    for role in [one, two] {
        until(&format!("{role} to be closed"), async || {
            (count(&mut superuser, OPEN, role).await == 0).then_some(())
        })
        .await;
        assert_eq!(count(&mut superuser, THERE, role).await, 1, "{role} is held");
    }
    stage.put(&scoped("new")).await;
    stage.told("ApiKey", "new", 1, DONE).await;
    assert!(stage.opens(&stage.key("new").await, PATH).await);
    assert_eq!(ready(&stage.status("Tenant", "beta").await).0, DONE);
    let remedy = format!("revoke all on large object 4242 from \"{one}\"");
    let warned = async |stage: &Stage| stage.status("Tenant", "acme").await["warnings"].to_string();
    until_ok("a warning for whose database it is", async || {
        let warnings = warned(&stage).await.replace("\\\"", "\"");
        if warnings.contains(&remedy) && warnings.contains("database acme") { Ok(()) } else { Err(warnings) }
    })
    .await;
    assert_eq!(ready(&stage.status("Tenant", "acme").await).0, DONE);
    assert!(
        stage.log().contains(&remedy.replace('"', "\\\"")) || stage.log().contains(&remedy),
        "{}",
        stage.log()
    );

    execute(&mut owner, &remedy).await;
    execute(&mut holder, "rollback").await;
    for role in [one, two] {
        until(&format!("the end of {role}"), async || {
            (count(&mut superuser, THERE, role).await == 0).then_some(())
        })
        .await;
    }
    asked.always_answered().await;
    if !stage.holds_deleted() {
        return;
    }

    // the whole tenant goes, and whoever holds its roles is gone before
    stage.remove("Tenant", "acme").await;
    stage.gone("Tenant", "acme").await;
    stage.remove("Tenant", "beta").await;
    for name in ["other", "three", "new"] {
        stage.remove("ApiKey", name).await;
        stage.gone("ApiKey", name).await;
    }
    stage.gone("Tenant", "beta").await;
    assert_eq!(count(&mut superuser, "select count(*) from pg_database where datname = $1", "beta").await, 0);
    for role in [three, &beta_owner] {
        assert_eq!(count(&mut superuser, OPEN, role).await, 0, "{role} is closed");
        assert_eq!(count(&mut superuser, THERE, role).await, 1, "{role} is held");
    }
    until_ok("a word on who holds them", async || {
        let log = stage.log();
        let is_told = log.contains("drop owned by") && log.contains("/acme");
        if is_told { Ok(()) } else { Err(log) }
    })
    .await;
    let mut acme = stage.server.connect("acme").await;
    execute(&mut acme, &format!("drop owned by {three}, {beta_owner}")).await;
    until("the end of all its roles", async || {
        let prefix = format!("{}%", beta_owner.trim_end_matches("owner"));
        let left =
            count(&mut superuser, "select count(*) from pg_roles where rolname like $1", &prefix).await;
        (left + count(&mut superuser, THERE, three).await == 0).then_some(())
    })
    .await;
}
