//! A flood of invented keys, and what it tells of who is a tenant.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::world::{GUEST, World};

/// More than may wait for a tenant's look-ups.
const FLOOD: usize = 1_100;
/// The number of those that are refused at once.
const BEYOND: usize = 100;

async fn ask(client: &Client, url: &str, key: &str, tenant: &str) -> Reply {
    let invented = format!("{tenant}:{}", key.split_once(':').expect("tenant and secret").1);
    let headers = [("X-API-Key", invented.as_str()), ("X-Request-Id", "same")];
    client.get(&format!("{url}/auth/{tenant}/api"), &headers).await.tellable()
}

/// While a flood fills the places of one tenant, its invented keys get 503; so do those of names that nobody has, some of
/// them, and others get 401: neither answer tells that there is a tenant. Seen to fail with one tenant that stands for
/// all such names, and with such names that no look-up is made for.
#[tokio::test]
async fn a_flood_of_one_tenant_does_not_tell_that_it_exists() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.write("guest.yaml", GUEST);
    world.start().await;
    let (client, url, guest) = (Client::new(), world.url(), world.key("guest-key"));
    let mut superuser = server.connect("shop").await;
    execute(&mut superuser, "begin; lock table dl.keys").await;
    let mut flood: FuturesUnordered<_> = (0..FLOOD).map(|_| ask(&client, &url, &guest, "shop")).collect();
    let mut refused = Vec::new();
    while refused.len() < BEYOND {
        refused.push(flood.next().await.expect("there are more"));
    }
    assert_eq!((refused[0].status.as_u16(), refused[0].header("retry-after")), (503, Some("1")));
    assert!(refused.iter().all(|reply| *reply == refused[0]), "{refused:?}");

    let names = (0..60).map(|n| format!("nobody-{n}"));
    let mut askers: FuturesUnordered<_> =
        names.map(|name| async { ask(&client, &url, &guest, &{ name }).await }).collect();
    let mut told: BTreeMap<u16, Vec<Reply>> = BTreeMap::new();
    // On a machine so slow that look-ups give up meanwhile, some find a place and wait.
    for _ in 0..50 {
        let reply = askers.next().await.expect("there are more");
        told.entry(reply.status.as_u16()).or_default().push(reply);
    }
    assert_eq!(told.keys().collect::<Vec<_>>(), [&401, &503]);
    assert!(told[&503].iter().all(|reply| *reply == refused[0]), "{refused:?} and {:?}", told[&503][0]);
    // Other tenants' strangers are served meanwhile, the living and the invented.
    assert_eq!(ask(&client, &url, &guest, "guest").await.status, 200);
    let wrong = world.key("shop-admin");
    assert!(told[&401].iter().all(|reply| reply.status == 401));
    assert_eq!(ask(&client, &url, &wrong, "guest").await, told[&401][0]);

    execute(&mut superuser, "rollback").await;
    while let Some(reply) = flood.next().await {
        assert!([401, 503].contains(&reply.status.as_u16()), "{reply:?}");
    }
    drop(askers);
    // It was the flood alone.
    assert_eq!(ask(&client, &url, &guest, "nobody-1").await, told[&401][0]);
}
