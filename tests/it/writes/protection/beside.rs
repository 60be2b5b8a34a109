//! `writers: ApiOnly`: those beside the API write as they did before, and rows that they write have new versions.

use rowgate_core::role::TenantLogin;
use rowgate_tests::servers::postgres::connect;
use rowgate_tests::stage::DONE;
use serde_json::json;

use super::fixture::{Farm, code};

const STALE: &str = "DL409";
const LEFT_OUT: &str = "DL428";
const KEPT: &str = "DL405";

/// The version of a row of `f.logs`, in microseconds.
async fn version(farm: &Farm, id: i32) -> i64 {
    let text = "select (extract(epoch from dl_expected_ts) * 1000000)::int8 as v from f.logs where id = ";
    farm.rows(&format!("{text}{id}")).await[0]["v"].as_i64().expect("a number")
}

async fn clock(farm: &Farm) -> i64 {
    let rows = farm.rows("select (extract(epoch from clock_timestamp()) * 1000000)::int8 as v").await;
    rows[0]["v"].as_i64().expect("a number")
}

#[tokio::test]
async fn who_writes_beside_the_api_names_no_version_and_moves_it_forward() {
    let farm = Farm::open().await;
    for who in ["owner", "superuser", "replica"] {
        let mut conn = farm.connect(if who == "replica" { "superuser" } else { who }).await;
        if who == "replica" {
            assert_eq!(code(&mut conn, "set session_replication_role = replica").await, "");
        }
        for statement in [
            "update f.logs set n = n + 1 where id = 1",
            "update f.logs set n = n + 1, dl_expected_ts = dl_expected_ts where id = 1",
            // a version that is given is not looked at, and does not stand in the row
            "update f.logs set n = n + 1, dl_expected_ts = '2001-01-01' where id = 1",
            "update f.logs set n = n + 1, dl_expected_ts = 'infinity' where id = 1",
            "update f.logs set n = n + 1, dl_expected_ts = null where id = 1",
            "insert into f.logs (id) values (1) on conflict (id) do update set n = logs.n + 1",
            "merge into f.logs t using (values (1)) s (id) on s.id = t.id when matched then update set n = t.n + 1",
        ] {
            let before = version(&farm, 1).await;
            assert_eq!(code(&mut conn, statement).await, "", "{who}: {statement}");
            let (after, now) = (version(&farm, 1).await, clock(&farm).await);
            assert!(before < after && after <= now, "{who}: {statement}: {before} {after} {now}");
        }
    }
    // cascades and functions, too; rows go, and move to other partitions
    let mut owner = farm.connect("owner").await;
    for (statement, moves) in [
        ("update f.barns set kind = 'x' where id = 2", true),
        ("update f.barns set id = 20 where id = 2", true),
        ("delete from f.barns where id = 3", false),
        ("delete from f.logs where id = 4", false),
        ("update f.moves set region = 's' where id = 1", false),
        ("truncate f.moves_s", false),
    ] {
        let before = version(&farm, 2).await;
        assert_eq!(code(&mut owner, statement).await, "", "{statement}");
        assert_eq!(before < version(&farm, 2).await, moves, "{statement}");
    }
    let left = farm.rows("select id from f.logs order by id").await;
    assert_eq!(left, [json!({"id": 1}), json!({"id": 2})]);
    assert_eq!(code(&mut owner, "truncate f.logs").await, "");
}

/// By the login of the session, which nobody but a superuser changes.
#[tokio::test]
async fn what_the_api_begins_is_held_wherever_it_leads() {
    let farm = Farm::open().await;
    let mut logins = vec![farm.login("every").await];
    for login in [TenantLogin::Auth, TenantLogin::Sql] {
        logins.push(farm.stage.login("farm", login).await);
    }
    for login in &logins {
        let mut conn = connect(login).await.expect("a login");
        let is_key = login.role.starts_with("key_");
        let role = if is_key { "" } else { "set role datalake_user; " };
        for (statement, expected) in [
            ("update f.logs set n = 9 where id = 1", LEFT_OUT),
            ("update f.logs set n = 9, dl_expected_ts = null where id = 1", LEFT_OUT),
            ("update f.logs set n = 9, dl_expected_ts = '2001-01-01' where id = 1", STALE),
            ("update f.logs set n = n, dl_expected_ts = dl_expected_ts where id = 1", ""),
            ("delete from f.logs where id = 1", KEPT),
            ("update f.barns set id = 30 where id = 3", LEFT_OUT),
            ("update f.barns set kind = 'y' where id = 3", LEFT_OUT),
            ("delete from f.barns where id = 3", KEPT),
            ("update f.moves set region = 's', dl_expected_ts = dl_expected_ts where id = 1", KEPT),
            ("set session authorization datalake_user", "42501"),
        ] {
            let script = format!("{role}{statement}");
            assert_eq!(code(&mut conn, &script).await, expected, "{}: {statement}", login.role);
        }
    }
}

#[tokio::test]
async fn who_is_held_changes_with_the_manifest() {
    let mut farm = Farm::open().await;
    let mut owner = farm.connect("owner").await;
    let (only, all) =
        ("{softDeleteColumn: over, writers: ApiOnly}", "{softDeleteColumn: over, writers: All}");
    for (generation, from, to, expected) in [(2, only, all, LEFT_OUT), (3, all, only, "")] {
        farm.stage.edit("Tenant", "farm", from, to).await;
        farm.stage.told("Tenant", "farm", generation, DONE).await;
        assert_eq!(code(&mut owner, "update f.logs set n = 1 where id = 1").await, expected, "{to}");
    }
    assert_eq!(farm.stage.n_events("Tenant", "farm", "Drifted").await, 0);
}
