//! What a routine may do with its session reaches nothing that its key may not have.

use serde_json::json;

use super::fixture::{Desk, given};

#[tokio::test]
async fn no_statement_of_a_routine_leaves_the_role_of_its_key_or_reads_what_is_ours() {
    let desk = Desk::open().await;
    let tenant = desk.world.status("Tenant", "desk")["tenantId"].as_str().expect("an id").to_owned();
    let role = |key: &str| desk.world.status("ApiKey", key)["role"].as_str().expect("a role").to_owned();
    let mut attacks: Vec<String> = [
        "reset role",
        "set role none",
        "set local role none",
        "set session authorization default",
        "reset session authorization",
        "reset all",
        "set role postgres",
        "set role rowgate_superuser",
        "set role rowgate_operator",
        "set role rowgate_dataplane",
        "set role datalake_user",
        "set row_security = off",
        "set session_replication_role = replica",
        "select pg_catalog.set_config('role', 'none', false)",
        "select pg_catalog.set_config('role', 'none', true)",
        "select pg_catalog.set_config('session_authorization', 'default', false)",
        "grant select on c.secrets to public",
        "alter table c.secrets disable row level security",
        "create function c.mine() returns void language sql as ''",
        "create role mine",
        "create temporary table secrets (word text)",
        "insert into dl.backends values (1, now(), 'x', 'x', 'x')",
        "delete from dl.backends",
        "update dl.keys set revoked_at = null",
        "select dl.revoke('x')",
        "select dl.fence(1)",
        "copy c.secrets to stdout",
        "copy c.secrets to program 'true'",
        "select pg_catalog.pg_read_file('PG_VERSION')",
        "load '$libdir/plugins/x'",
    ]
    .map(str::to_owned)
    .into();
    for login in ["owner", "auth", "keys", "sql"] {
        attacks.push(format!("set role t{tenant}_{login}"));
        attacks.push(format!("set session authorization t{tenant}_{login}"));
        attacks.push(format!("select pg_catalog.set_config('role', 't{tenant}_{login}', false)"));
    }
    for key in ["second", "poor"] {
        attacks.push(format!("set role {}", role(key)));
    }
    for key in ["plain", "clerk"] {
        for attack in &attacks {
            let rows = given(&desk.call(key, "escape", json!({"how": attack})).await);
            for row in rows.as_array().expect("a list") {
                let me = row["me"].as_str().expect("a role");
                // What holds no table at all is what is left of an unscoped key.
                let may_be = [role(key), if key == "plain" { format!("t{tenant}_sql") } else { role(key) }];
                assert!(may_be.iter().any(|it| it == me), "{key}, {attack}: {rows}");
            }
            let outcome = rows[1]["outcome"].as_str().expect("a text");
            assert!(["42501", "42P01"].contains(&outcome), "{key}, {attack}: {rows}");
            let after = given(&desk.call(key, "who", json!({})).await);
            assert_eq!(after[0]["me"], role(key), "{key} after {attack}");
        }
        for table in [
            "keys",
            "key_secrets",
            "live",
            "claims",
            "entities",
            "permission_sets",
            "state",
            "backends",
            "applied",
        ] {
            let query = format!("select count(*) from dl.{table}");
            let told = given(&desk.call(key, "peek", json!({"query": query})).await);
            assert_eq!(told, json!([{"peek": "42501"}]), "{key} {table}");
        }
        // Values are values.
        let whole = "x'); drop table c.notes; --";
        let told = given(&desk.call(key, "split", json!({"whole": whole})).await);
        assert_eq!(told, json!([{"head": "x", "tail": &whole[1..]}]));
    }
    // Behind the role of an unscoped key stands a login that may read nothing.
    let told = given(&desk.call("plain", "escape", json!({"how": "set role none"})).await);
    assert_eq!((&told[0]["me"], &told[0]["outcome"]), (&json!(format!("t{tenant}_sql")), &json!("done")));
    assert_eq!(desk.number("select count(*) from dl.keys where revoked_at is not null").await, 0);
    assert_eq!(desk.number("select count(*) from c.secrets").await, 1);
}
