//! When a key was last used: written down now and then, and never on a request's path. `scenarios/keys/last_used.rs` has the status.

use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::signal::Signal;
use rowgate_core::name::Ulid;
use rowgate_pg::control::last_used;
use rowgate_tests::servers::postgres::{Server, attempt, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, get};
use serde_json::Value;

use super::fixture::PATH;

/// The example shop, which writes uses down each second.
async fn shop() -> (Server, World) {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    let each_second = |command: &mut Command| {
        command.args(["--last-used-seconds", "1"]);
    };
    world.start_with(each_second).await;
    (server, world)
}

fn id(world: &World, name: &str) -> String {
    world.status("ApiKey", name)["apiKeyId"].as_str().expect("it has one").to_owned()
}

pub(crate) async fn written(server: &Server, key: &str) -> Option<Timestamp> {
    let query = format!("select used_at from control.key_uses where key = '{key}'");
    let rows = rows(&mut server.connect("rowgate").await, &query).await;
    Some(rows.first()?["used_at"].as_str()?.parse().expect("a time"))
}

/// Seen to fail with a use that is noted before the database has said that the key lives.
#[tokio::test]
async fn tokens_count_and_refused_keys_do_not() {
    let (server, world) = shop().await;
    let [north, south] = ["north", "south"].map(|name| world.key(name));
    let [north_id, south_id] = ["north", "south"].map(|name| id(&world, name));
    // south is revoked after its record was remembered: a request with it is no use
    assert_eq!(world.get(&south, PATH).await.status, 200);
    let used = until("south's use", async || written(&server, &south_id).await).await;
    execute(&mut server.connect("shop").await, &format!("select dl.revoke('{south_id}')")).await;
    assert_eq!(world.get(&south, PATH).await.status, 401);

    let exchange = format!("{}/api/auth/apikeys/exchange", world.url());
    let answer =
        reqwest::Client::new().post(exchange).header("x-api-key", &north).send().await.expect("an answer");
    let body: Value = answer.json().await.expect("JSON");
    let exchanged = until("the exchange as a use", async || written(&server, &north_id).await).await;
    let bearer = format!("Bearer {}", body["token"].as_str().expect("a token"));
    let url = format!("{}{PATH}", world.url());
    let answer =
        reqwest::Client::new().get(url).header("authorization", bearer).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    until("the token's use", async || (exchanged < written(&server, &north_id).await?).then_some(())).await;
    assert_eq!(written(&server, &south_id).await, Some(used));
}

/// What was used within the last minute is not lost with the process. Seen to fail with a data plane that just ends.
#[tokio::test]
async fn uses_are_written_down_at_the_end_of_a_data_plane() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let replica = world.replica().await;
    assert_eq!(get(&format!("{}{PATH}", replica.url()), &world.key("north")).await.status, 200);
    let key = id(&world, "north");
    assert_eq!(written(&server, &key).await, None, "a minute has not passed");
    assert!(replica.end(Signal::SIGTERM).await.success());
    assert!(written(&server, &key).await.is_some());
}

/// Seen to fail with the time of whoever writes last.
#[tokio::test]
async fn a_time_never_moves_backwards_whichever_replica_is_late() {
    let (server, world) = shop().await;
    let hex = std::fs::read_to_string(world.state().join("dataplane.root")).expect("it was made");
    let root = rowgate_core::derive::Root::from_hex(&hex).expect("a root");
    let (_, mut conn) = rowgate_pg::control::installation::open_existing(server.endpoint().clone(), &root)
        .await
        .expect("installed");
    let tenant: Ulid =
        world.status("Tenant", "shop")["tenantId"].as_str().expect("an id").parse().expect("a ULID");
    let key: Ulid = id(&world, "north").parse().expect("a ULID");
    let mut at = None;
    for (age, moves) in [(3600, true), (60, true), (3600, false), (61, false), (0, true), (86_400, false)] {
        let uses = vec![(tenant.clone(), key.clone(), Duration::from_secs(age))];
        last_used::note(&mut conn, uses).await.expect("it is the data plane's to write");
        let now = written(&server, key.as_str()).await;
        assert_eq!(at < now, moves, "{age} s ago: {at:?} {now:?}");
        assert!(at <= now);
        at = now;
    }
}

/// Nothing that runs in a tenant's database, as whichever of its roles, reaches these times.
#[tokio::test]
async fn neither_callers_nor_tenants_write_when_a_key_was_used() {
    let (server, world) = shop().await;
    let mut control = server.connect("rowgate").await;
    let can = "select r.rolname from pg_roles r where not r.rolsuper and r.rolname !~ '^(pg_|rowgate_)' and \
               (has_table_privilege(r.oid, 'control.key_uses', 'select, insert, update, delete, truncate') \
                or has_any_column_privilege(r.oid, 'control.key_uses', 'select, insert, update'))";
    assert_eq!(rows(&mut control, can).await, Vec::<Value>::new());
    let tenants = "select rolname from pg_roles where rolname ~ '^(t01|t.*_auth|t.*_lookups|key_|datalake_user)' and rolcanlogin \
                   and has_database_privilege(oid, 'rowgate', 'connect') and rolname !~ '_keys$'";
    assert_eq!(rows(&mut control, tenants).await, Vec::<Value>::new(), "they do not even connect");
    execute(&mut control, "set role rowgate_dataplane").await;
    let refused = attempt(&mut control, "delete from control.key_uses").await.expect_err("no right");
    assert!(refused.to_string().contains("permission denied"), "{refused}");
    drop(world);
}
