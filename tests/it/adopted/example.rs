//! `examples/adopt`: a script makes the database of an application in the PostgreSQL of standalone, which serves it.

use std::fs;
use std::process::Output;

use rowgate_tests::servers::postgres::{attempt, execute, rows};
use rowgate_tests::world::{World, examples};
use serde_json::json;

/// The example's manifests. Its script is passed where it stands.
async fn example() -> World {
    let world = World::new(&[]).await;
    for file in ["tenant.yaml", "keys.yaml", "relationships.yaml"] {
        let text = fs::read_to_string(examples().join("adopt").join(file)).expect("the example is committed");
        world.write(file, &text);
    }
    world
}

/// Starts it, and tells whether the script ran.
async fn start(world: &mut World) -> bool {
    let script = examples().join("adopt/prepare.sql");
    let line = format!("running {}\n", script.display());
    world
        .start_with(|command| {
            command.arg("--prepare").arg(script);
        })
        .await;
    world.log().contains(&line)
}

#[tokio::test]
async fn the_example_is_served_and_its_application_goes_on() {
    let mut world = example().await;
    assert!(start(&mut world).await, "{}", world.log());
    let count = async |name: &str, entity: &str| {
        let path = format!("/auth/helpdesk/api/{entity}?$count=true&$first=1");
        let answer = world.get(&world.key(name), &path).await;
        answer.body["count"].as_i64().unwrap_or_else(|| panic!("{name}, {entity}: {answer:?}"))
    };
    // 200 messages of each team, 12 of which are notes among agents
    for (name, n_tickets, n_messages) in
        [("helpdesk-admin", 240, 564), ("billing", 80, 188), ("delivery", 80, 188)]
    {
        assert_eq!(count(name, "tickets").await, n_tickets, "{name}");
        assert_eq!(count(name, "messages").await, n_messages, "{name}");
        let line =
            format!("'X-API-Key: {}' '{}/auth/helpdesk/api/tickets?$first=3'", world.key(name), world.url());
        assert!(world.log().contains(&line), "{name}: {}", world.log());
    }
    let get = async |name: &str, path: &str| {
        world.get(&world.key(name), &format!("/auth/helpdesk/api/{path}")).await
    };
    assert_eq!(get("delivery", "agents").await.status, 404);
    let agents = get("helpdesk-admin", "agents?$first=1&$orderby=id").await;
    assert_eq!(agents.body["value"], json!([{"id": 1, "name": "Ada", "team": "billing"}]));
    let path = "tickets?$filter=id eq 3&$select=id,team&$expand=messages($select=id)";
    let ticket = get("billing", path).await;
    let messages = ticket.body["value"][0]["messages"].as_array();
    assert_eq!(messages.map(Vec::len), Some(4), "{ticket:?}");

    // what the application's roles see, and a write of its own
    let mut conn = world.superuser("helpdesk").await;
    for (role, table, n_rows) in [
        ("helpdesk", "app.tickets", 240),
        ("helpdesk", "app.messages", 600),
        ("helpdesk_reports", "app.tickets", 240),
        ("helpdesk_reports", "app.open_tickets", 3),
    ] {
        execute(&mut conn, &format!("set session authorization {role}")).await;
        let seen = rows(&mut conn, &format!("select count(*) as n from {table}")).await;
        assert_eq!(seen, [json!({"n": n_rows})], "{role} in {table}");
    }
    let denied = attempt(&mut conn, "select from app.messages").await;
    assert!(denied.is_err(), "reports read tickets only");
    let insert = "set session authorization helpdesk; \
                  insert into app.tickets (team, agent_id, subject) values ('delivery', 2, 'Parcel is lost')";
    execute(&mut conn, insert).await;
    assert_eq!((count("delivery", "tickets").await, count("billing", "tickets").await), (81, 80));
    drop(conn);
    assert!(world.stop().await.success());

    // the next start goes on with it, and runs the script no second time
    assert!(!start(&mut world).await, "{}", world.log());
    let answer = world.get(&world.key("delivery"), "/auth/helpdesk/api/tickets?$count=true&$first=1").await;
    assert_eq!(answer.body["count"], json!(81), "{answer:?}");
    assert!(world.stop().await.success());
}

/// Standalone with this script, which ends with an error.
fn refused(world: &World, script: &str) -> String {
    let path = world.folder().join("prepare.sql");
    fs::write(&path, script).expect("the folder is ours");
    let mut command = world.command();
    let Output { status, stderr, .. } =
        command.arg("--prepare").arg(path).output().expect("the binary was built; `make test` builds it");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(2), "{said}");
    said
}

#[tokio::test]
async fn an_error_of_a_script_is_reported_with_its_line_and_leaves_nothing() {
    let world = World::new(&[]).await;
    let said = refused(&world, "create role half login;\n\\copy half from 'half.csv'\n");
    let parts = ["prepare.sql:2: `\\copy half from 'half.csv'` is not understood", "`\\connect DATABASE`"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(!said.contains("stopping PostgreSQL"), "nothing was started: {said}");

    let script = "create role half login;\ncreate database half owner half;\n\\connect half\n\
                  create table a (id int);\n\ncreate table b (\n    id wrong\n);\n";
    let said = refused(&world, script);
    let parts = [
        "prepare.sql:7: PostgreSQL answered 42704: type \"wrong\" does not exist",
        "the databases and roles that the file had made were dropped: correct it and start again",
        "stopping PostgreSQL",
    ];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");

    // it runs from its beginning, which would fail if anything were left
    let corrected = script.replace("wrong", "int") + "\\connect postgres\nset role half;\nselect 1 / 0\n";
    let said = refused(&world, &corrected);
    assert!(said.contains("prepare.sql:11: PostgreSQL answered 22012: division by zero"), "{said}");
}
