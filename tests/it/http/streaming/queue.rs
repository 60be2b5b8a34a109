//! More requests than connections.

use rowgate_core::problem::Code;
use rowgate_tests::client::Client;
use serde_json::json;
use tokio::task::JoinSet;

use super::fixture::{Fixture, big, ids};

/// Seen to fail with a queue that takes everybody.
#[tokio::test]
async fn beyond_the_queue_requests_are_refused_at_once_and_other_tenants_are_served() {
    let mut fixture =
        Fixture::new("10m", &["--connections-per-tenant", "1", "--queue-per-tenant", "2"]).await;
    // Both keys are known from here on.
    let calm = [("X-API-Key", &*fixture.world.key("calm-key"))];
    let calm_url = format!("{}/auth/calm/api/numbers?$first=2", fixture.world.url());
    assert_eq!(ids(&fixture.client.get(&calm_url, &calm).await), [1, 2]);
    assert_eq!(ids(&fixture.get("/numbers?$first=2").await), [1, 2]);

    let lock = fixture.lock().await;
    let url = format!("{}{}", fixture.world.url(), big("/numbers?$first=2"));
    let mut asking = JoinSet::new();
    let key = fixture.key.clone();
    let ask = |asking: &mut JoinSet<_>| {
        let (url, key) = (url.clone(), key.clone());
        asking.spawn(async move { Client::new().get(&url, &[("X-API-Key", &key)]).await });
    };
    ask(&mut asking);
    fixture.runs("numbers").await;
    for _ in 0..10 {
        ask(&mut asking);
    }
    for _ in 0..8 {
        let refused = asking.join_next().await.expect("eleven").expect("no panic");
        assert_eq!(refused.json()["error"]["code"], json!(Code::Unavailable), "{refused:?}");
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    assert_eq!(ids(&fixture.client.get(&calm_url, &calm).await), [1, 2]);
    // Who waits gets the connection: the first request and the two of the queue.
    drop(lock);
    while let Some(answered) = asking.join_next().await {
        assert_eq!(ids(&answered.expect("no panic")), [1, 2]);
    }
}
