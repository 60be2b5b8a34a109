//! What is read from a tenant's database is bounded before it is decoded, and never quoted: whatever its code puts there ends
//! in that tenant's status, and the memory of the processes stays as it was.

use std::time::Duration;

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_tests::asked::Asked;
use rowgate_tests::servers::postgres::{connect, execute};
use rowgate_tests::stage::{DONE, On, Stage, Wish};
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::status::ready;

use crate::reconcile::acme::{SPEC, key, one, tenant};
use crate::reconcile::scenarios::scenarios;

scenarios!(what_a_tenant_fills_or_replaces_ends_in_its_own_status);

/// By its bootstrap: a policy of 10 MB, of which no word may be told.
const FILLED: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: evil-bootstrap}
data:
  schema.sql: |
    create table public.t (word text);
    do $$ begin
        execute format('create policy long on public.t using (word <> %L)', repeat('hostile words ', 700000));
    end $$;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: evil}
spec: {database: {bootstrap: {configMapRef: {name: evil-bootstrap}}}}
";

/// Text that does it, text that undoes it, and what the Tenant is told.
struct Case {
    done: &'static str,
    undone: &'static str,
    told: &'static str,
}

const BUMP: &str = "update dl.state set generation = generation + 1";

/// The last as the tenant's owner may; the others by a superuser, as in a database that was restored or repaired by hand. `LOOKUPS` is the
/// login that reads catalogs, `RECORDS` that of schema `dl`.
const CASES: [Case; 4] = [
    Case {
        done: "alter table dl.entities rename to entities_;
            create view dl.entities as select name || '-' || i as name, definition
                from dl.entities_, generate_series(1, 20000) i;
            alter view dl.entities owner to RECORDS; grant select on dl.entities to LOOKUPS",
        undone: "drop view dl.entities; alter table dl.entities_ rename to entities",
        told: "dl.entities holds more than Rowgate reads: there are more than 10000 rows",
    },
    Case {
        done: "alter table dl.permission_sets rename to permission_sets_;
            create function app.shout() returns jsonb language plpgsql as $$
                begin
                    raise notice '%', repeat('hostile words ', 3000000);
                    raise exception '%', repeat('hostile words ', 3000000);
                end $$;
            create view dl.permission_sets as select role, hash, app.shout() as permissions from dl.permission_sets_;
            alter view dl.permission_sets owner to RECORDS; grant select on dl.permission_sets to LOOKUPS;
            grant execute on function app.shout() to LOOKUPS, RECORDS; grant usage on schema app to LOOKUPS, RECORDS",
        undone: "drop view dl.permission_sets; drop function app.shout();
            revoke usage on schema app from LOOKUPS, RECORDS; alter table dl.permission_sets_ rename to permission_sets",
        told: "PostgreSQL answered P0001: dl.permission_sets cannot be read",
    },
    Case {
        done: "do $$ begin
                execute format('create policy long on app.hidden using (word <> %L)', repeat('hostile words ', 700000));
            end $$",
        undone: "drop policy long on app.hidden",
        told: "pg_policy holds more than Rowgate reads: a row takes",
    },
    Case {
        done: "update dl.entities set definition = '{\"hostile words\": 1}'",
        undone: "truncate dl.entities",
        told: "dl.entities does not have the columns that this version of Rowgate expects",
    },
];

/// Seen to fail without the gate before sqlx.
async fn what_a_tenant_fills_or_replaces_ends_in_its_own_status(on: On) {
    let acme = format!("{}{}", tenant("acme", SPEC), key("web", "acme", ""));
    let beta = format!("---\n{}{}", tenant("beta", SPEC), key("other", "beta", ""));
    // the server's own log would take what is raised each time, indented
    let wish = Wish { postgres: &["log_min_messages=fatal"], ..Wish::default() };
    let mut stage = Stage::with(on, wish, &format!("{acme}{beta}")).await;
    for (kind, name) in [("Tenant", "acme"), ("Tenant", "beta"), ("ApiKey", "web"), ("ApiKey", "other")] {
        stage.told(kind, name, 1, DONE).await;
    }
    let [web, other] = [stage.key("web").await, stage.key("other").await];
    let path = |slug: &str| format!("/auth/{slug}/api/notes?$first=1");
    let lookups = stage.login("acme", TenantLogin::Lookups).await.role;
    let records = stage.login("acme", TenantLogin::Records).await.role;
    let spelt = |text: &str| text.replace("LOOKUPS", &lookups).replace("RECORDS", &records);
    let mut superuser = stage.server.connect("acme").await;
    for _ in 0..3 {
        assert!(stage.opens(&web, &path("acme")).await && stage.opens(&other, &path("beta")).await);
        execute(&mut superuser, BUMP).await;
    }
    let asked = Asked::begin(format!("{}{}", stage.url(), path("beta")), other.clone(), &stage.pids());

    stage.put(FILLED).await;
    told(&stage, "evil", "pg_policy holds more than Rowgate reads: a row takes").await;
    for case in &CASES {
        execute(&mut superuser, &format!("{}; {BUMP}", spelt(case.done))).await;
        told(&stage, "acme", case.told).await;
        for _ in 0..4 {
            let answer = stage.get(&web, &path("acme")).await;
            assert!([200, 503].contains(&answer.status.as_u16()), "{answer:?}");
            assert!(!answer.body.to_string().contains("hostile"), "{answer:?}");
        }
        execute(&mut superuser, &format!("{}; {BUMP}", spelt(case.undone))).await;
        stage.told("Tenant", "acme", 1, DONE).await;
        until("the tenant to be served again", async || {
            (stage.get(&web, &path("acme")).await.status == 200).then_some(())
        })
        .await;
    }
    asked.always_answered().await;
    assert!(!stage.logs().contains("hostile words"), "{}", stage.logs());

    stage.stop().await;
    stage.start().await;
    until("what serves to be ready", async || stage.is_ready().await.then_some(())).await;
    for name in ["acme", "beta"] {
        stage.told("Tenant", name, 1, DONE).await;
    }
    assert!(stage.opens(&other, &path("beta")).await);
    assert_eq!(ready(&stage.status("Tenant", "evil").await).0, "TooLarge");
}

/// Waits until the Tenant is told it, in words that quote nothing, and is not Ready.
async fn told(stage: &Stage, tenant: &str, what: &str) {
    until_ok(&format!("{what} for {tenant}"), async || {
        let status = stage.status("Tenant", tenant).await;
        assert!(!status.to_string().contains("hostile"), "{status}");
        if ready(&status).1.contains(what) { Ok(()) } else { Err(format!("{:?}", ready(&status))) }
    })
    .await;
}

/// Whoever waits gives up, as every look does after a while; a function that traps its cancellation does not go on.
///
/// Seen to fail without the end of the session: one for each try stayed.
#[tokio::test]
async fn what_nobody_waits_for_ends_though_it_traps_that() {
    let stage = Stage::open(On::Folder, &tenant("acme", SPEC)).await;
    stage.told("Tenant", "acme", 1, DONE).await;
    let login = stage.login("acme", TenantLogin::Owner).await;
    let trap = "create function app.trap() returns bigint language plpgsql as $$
        begin
            loop
                begin
                    perform pg_sleep(1000);
                exception when query_canceled then null;
                end;
            end loop;
        end $$";
    execute(&mut connect(&login).await.expect("the owner"), trap).await;
    let trapped =
        "select count(*) from pg_stat_activity where query like '%app.trap()%' and pid <> pg_backend_pid()";
    let mut superuser = stage.server.connect("acme").await;
    for _ in 0..3 {
        let mut conn = session::connect(&login).await.expect("the owner");
        let waits = sqlx::query_scalar::<_, i64>("select app.trap()").fetch_one(&mut conn);
        assert!(tokio::time::timeout(Duration::from_millis(100), waits).await.is_err());
    }
    until("the end of all of them", async || (one::<i64>(&mut superuser, trapped).await == 0).then_some(()))
        .await;
}
