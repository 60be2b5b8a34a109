//! A trigger of the tenant's leaves the role of the key whose request it runs in, and is the login of requests then: it reaches nothing of
//! schema `dl` but what the key statement reads.

use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::world::World;
use serde_json::{Value, json};

use super::forbidden::NO_REQUEST;

const READ: &str = "/auth/shop/api/customers?$first=2";
const WRITE: &str = "/auth/shop/api/customers";

/// Runs each statement of a new row's `notes` as whoever the session is without the role, and puts into `notes` who that was and what became
/// of each.
const TRAP: &str = "
    create function shop.leave() returns trigger language plpgsql as $$
    declare
        present text := pg_catalog.current_setting('role');
        came jsonb;
        one text;
    begin
        perform pg_catalog.set_config('role', 'none', true);
        came := pg_catalog.jsonb_build_object('who', current_user);
        foreach one in array array(select pg_catalog.jsonb_array_elements_text(new.notes::jsonb)) loop
            begin
                execute one;
                came := came || pg_catalog.jsonb_build_object(one, 'done');
            exception when others then
                came := came || pg_catalog.jsonb_build_object(one, sqlstate);
            end;
        end loop;
        perform pg_catalog.set_config('role', present, true);
        new.notes := came;
        return new;
    end $$;
    create trigger leave before insert on shop.customers for each row execute function shop.leave();";

/// A new customer whose trigger runs these, and what became of each.
async fn tried(world: &World, key: &str, email: &str, statements: &[&str]) -> Value {
    let body = json!({
        "name": "x", "email": email, "region": "north", "signedUpOn": "2024-02-29", "notes": json!(statements).to_string(),
    });
    let headers = [("X-API-Key", key), ("Content-Type", "application/json")];
    let url = format!("{}{WRITE}", world.url());
    let reply = Client::new().send("POST", &url, &headers, &body.to_string()).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let answer: Value = serde_json::from_str(&reply.body).expect("JSON");
    let notes = answer["notes"].as_str().or(answer["value"][0]["notes"].as_str()).expect("what was tried");
    serde_json::from_str(notes).expect("JSON of the trigger")
}

/// With the rights that this login had in version 0.2 it read digests, revoked keys and changed subscriptions.
#[tokio::test]
async fn a_trigger_that_leaves_the_role_of_the_key_reaches_no_record() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let status = world.status("Tenant", "shop");
    let (id, database) =
        (status["tenantId"].as_str().expect("an id"), status["database"].as_str().expect("a name"));
    let mut superuser = server.connect(database).await;
    execute(&mut superuser, &format!("set role t{id}_owner; {TRAP}; reset role")).await;
    let key = world.key("shop-admin");

    let tried_all = tried(&world, &key, "a@example.com", NO_REQUEST).await;
    assert_eq!(tried_all["who"], format!("t{id}_auth"), "the role of the key was left");
    let refused = |statement: &&&str| tried_all[**statement] != "42501";
    let done: Vec<_> = NO_REQUEST.iter().filter(refused).map(|it| (it, &tried_all[*it])).collect();
    assert!(done.is_empty(), "{done:?}");
    let read =
        "select l.id, l.secret, l.role, l.set_role, s.generation from dl.state s left join dl.live l on true";
    assert_eq!(tried(&world, &key, "b@example.com", &[read]).await[read], "done", "the key statement's own");

    for name in ["shop-admin", "north"] {
        assert_eq!(world.get(&world.key(name), READ).await.status, 200, "{name} lives");
    }
    let revoked = "select name from dl.keys where revoked_at is not null";
    assert_eq!(rows(&mut superuser, revoked).await, Vec::<Value>::new());
    assert!(world.stop().await.success());
}
