//! A Tenant on another server is served as every other, and nothing of it is on the server of the control database.

use std::process::Command;

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::wait::until;
use rowgate_tests::world::{binary, get};
use serde_json::{Value, json};

use super::fixture::Servers;

#[tokio::test]
async fn a_tenant_on_another_server_is_served_as_every_other() {
    let mut servers = Servers::plain().await;
    let id = servers.world.status("Tenant", "there")["tenantId"].as_str().expect("it has one").to_owned();
    let client = reqwest::Client::new();
    let replica = servers.world.serve().await;
    for name in ["here", "there"] {
        let key = servers.key(name);
        let send = async |method: &str, path: &str, body: Value| {
            let url = format!("{}/auth/{name}/api/{path}", servers.world.url());
            let method = method.parse().expect("a method");
            let sent = client.request(method, url).header("X-API-Key", &key).json(&body).send().await;
            let answer = sent.expect("it answers");
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
        };
        let (status, made) = send("POST", "notes", json!({"region": "north", "body": "made"})).await;
        assert_eq!(status, 201, "{made}");
        // a call has a session that is logged in as the key's own role
        let (status, said) = send("POST", "shout", json!({"word": "hear"})).await;
        assert!(matches!(status, 200 | 201) && said.to_string().contains("HEAR"), "{status} {said}");
        // the other region is never seen, by any replica
        let seen = until("every row of the region", async || {
            let answer = get(&format!("{replica}/auth/{name}/api/notes"), &key).await;
            let seen = answer.body["value"].as_array()?.clone();
            (seen.len() == 2).then_some(seen)
        })
        .await;
        assert!(seen.iter().all(|row| row["region"] == "north"), "{seen:?}");
        until("an event", async || {
            let page = servers.world.get(&key, "/api/ddl/events?after=start&limit=100").await.body;
            let events = page["events"].as_array()?;
            events.iter().any(|event| event.to_string().contains("made")).then_some(())
        })
        .await;
    }

    let count = format!(
        "select (select count(*) from pg_database where datname = 't_{id}') as databases, \
                         (select count(*) from pg_roles where rolname ~ '^t{id}_') as roles"
    );
    let at = async |server: &rowgate_tests::servers::postgres::Server| {
        rows(&mut server.connect("postgres").await, &count).await
    };
    assert_eq!(at(&servers.home).await, [json!({"databases": 0, "roles": 0})]);
    let there = at(&servers.other).await;
    assert!(there[0]["databases"] == 1 && there[0]["roles"].as_i64() > Some(5), "{there:?}");

    // with nothing but the databases, a key is revoked wherever it is
    let revoked =
        servers.world.status("ApiKey", "there-key")["apiKeyId"].as_str().expect("it has one").to_owned();
    let mut command = Command::new(binary());
    command.args(["revoke", &revoked, "--control"]).arg(servers.home.control());
    command.arg("--root-file").arg(servers.world.state().join("dataplane.root"));
    let output = command.output().expect("the binary was built; `make test` builds it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer = servers.world.get(&servers.key("there"), "/auth/there/api/notes").await;
    assert_eq!(answer.status, 401);

    // its roles outlive neither it nor a sweep of the other server
    std::fs::remove_file(servers.world.manifests().join("there.yaml")).expect("it is there");
    until("a retained database", async || {
        let mut conn = servers.home.connect("rowgate").await;
        let phase = rows(&mut conn, &format!("select phase from control.tenants where id = '{id}'")).await;
        (phase == [json!({"phase": "retained"})]).then_some(())
    })
    .await;
    servers.is_served("here").await;
    let mut command = Command::new(binary());
    let root = |name: &str| servers.world.state().join(format!("{name}.root"));
    command.args(["retained", "--root-file"]).arg(root("dataplane"));
    command.arg("--operator-root-file").arg(root("operator")).env_remove("ROWGATE_STATE");
    command.env("ROWGATE_DATABASE_URL", servers.home.url());
    let listed = command.output().expect("the binary was built");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains(&id) && (listed.contains(" kB") || listed.contains(" MB")), "{listed}");
}
