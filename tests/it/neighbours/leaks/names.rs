//! What every SQL session of a tenant can read about all the others says nothing of them: names of databases, roles and sessions.

use rowgate_tests::asked::Asked;
use rowgate_tests::servers::postgres::{connect, execute, rows};
use rowgate_tests::stage::{DONE, On, Stage};

use crate::reconcile::acme::{SPEC, key, reader, tenant};
use crate::reconcile::scenarios::scenarios;

const NOTES: &str = "/auth/confidential-merger/api/notes?$first=1";

scenarios!(a_session_reads_no_name_of_another_tenant);

/// All that the catalogs of the whole server show of databases, roles and who is logged in.
const SHOWN: [&str; 5] = [
    "select datname::text as name, datacl::text as acl from pg_database",
    "select rolname::text as name from pg_roles",
    "select datname::text as name, usename::text as role, application_name as program, query from pg_stat_activity",
    "select datname::text as name from pg_stat_database",
    "select obj_description::text as said from (select shobj_description(oid, 'pg_database') as obj_description from pg_database) d",
];

/// Seen to fail with the slug as the default.
async fn a_session_reads_no_name_of_another_tenant(on: On) {
    let secret = tenant("confidential-merger", SPEC).replace("name: confidential_merger, ", "");
    let known = tenant("legacy", SPEC);
    let keys = key("quiet", "confidential-merger", &reader("north", "['*']"))
        + &key("caller", "legacy", &reader("north", "['*']"));
    let mut stage = Stage::open(on, &format!("{secret}---\n{known}{keys}")).await;
    for (kind, name) in [("Tenant", "confidential-merger"), ("ApiKey", "quiet"), ("ApiKey", "caller")] {
        stage.told(kind, name, 1, DONE).await;
    }
    let neighbour = Asked::begin(format!("{}{NOTES}", stage.url()), stage.key("quiet").await, &stage.pids());
    let status = stage.status("Tenant", "confidential-merger").await;
    let (id, database) = (&status["tenantId"], &status["database"]);
    assert_eq!(database.as_str(), id.as_str().map(|id| format!("t_{id}")).as_deref());

    let mut caller = connect(&stage.role("caller", "legacy").await).await.expect("the key's role");
    for sql in SHOWN {
        let shown = rows(&mut caller, sql).await;
        assert!(!shown.is_empty(), "{sql}");
        let shown = format!("{shown:?}");
        assert!(!["confidential", "merger"].iter().any(|part| shown.contains(part)), "{sql}: {shown}");
    }
    drop(caller);

    // an installation of before: the manifest names no database, and the one that is there has the slug's name
    let before = stage.status("Tenant", "legacy").await;
    stage.remove("Tenant", "legacy").await;
    stage.gone("Tenant", "legacy").await;
    stage.put(&known.replace("name: legacy, bootstrap", "bootstrap")).await;
    let after = stage.told("Tenant", "legacy", 1, DONE).await;
    assert_eq!((&after["tenantId"], &after["database"]), (&before["tenantId"], &before["database"]));
    assert_eq!(after["database"], "legacy", "it keeps its name");
    let mut superuser = stage.server.connect("postgres").await;
    let databases = "select count(*) as n from pg_database where datname ~ '^(t_|legacy$)'";
    assert_eq!(rows(&mut superuser, databases).await[0]["n"], 2, "and no other one was made");
    execute(&mut stage.server.connect("confidential-merger").await, "select from app.notes").await;
    neighbour.always_answered().await;
}
