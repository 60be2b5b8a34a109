//! What a read costs PostgreSQL: a recorder between the two counts writes and messages.

use std::time::Instant;

use rowgate_tests::client::Client;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::recorder::{Recorder, Said, Side};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;

/// One GET of a row by its key, and what was said for it in the session of requests.
async fn asked(plane: &DataPlane, recorder: &Recorder, client: &Client, key: &str) -> (Vec<Said>, Vec<Said>) {
    let _before = recorder.take();
    let url = format!("{}/auth/shop/api/customers/id/1", plane.url());
    let reply = client.get(&url, &[("X-API-Key", key)]).await;
    assert_eq!(reply.rows().len(), 1, "{reply:?}");
    // Only the hot path asks PostgreSQL to look whether we are there; the rest is looking things up.
    let ours = |said: &Said| said.startup.contains("client_connection_check_interval");
    recorder.take().into_iter().filter(ours).partition(|said| said.by == Side::Client)
}

/// Key and row, Bind and Execute each, and a Sync: one write, and one ReadyForQuery. One request in a second has the
/// fingerprint between the two.
/// Seen to fail with a statement that is parsed each time, and with a second Sync (no request is ever warm then).
#[tokio::test]
async fn a_warm_read_is_one_write_and_one_answer() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let recorder = Recorder::before(&world.socket());
    let root = world.state().join("dataplane.root");
    let plane = DataPlane::start_with(&recorder.folder(), &root, |command| {
        command.args(["--connections-per-tenant", "1"]);
    })
    .await;
    let (client, key) = (Client::new(), world.key("shop-admin"));

    // All three statements are parsed once: the fingerprint's is the last, within a second.
    let mut parsed = String::new();
    until("a fingerprint", async || {
        let (sent, _) = asked(&plane, &recorder, &client, &key).await;
        parsed.extend(sent.iter().flat_map(|said| said.tags.chars()).filter(|&tag| tag == 'P'));
        (parsed.len() == 3).then_some(())
    })
    .await;

    let began = Instant::now();
    let mut n_watched = 0;
    for request in 0..50 {
        let (sent, answered) = asked(&plane, &recorder, &client, &key).await;
        let [write] = &sent[..] else { panic!("request {request} was {} writes: {sent:?}", sent.len()) };
        assert!(write.is_whole, "{write:?}");
        let answer: String = answered.iter().map(|said| said.tags.as_str()).collect();
        match write.tags.as_str() {
            "BEBES" => assert_eq!(answer, "2DC2DCZ", "request {request}"),
            "BEBEBES" => {
                assert_eq!(answer, "2DC2DC2DCZ", "request {request}");
                n_watched += 1;
            }
            other => panic!("request {request} sent {other}"),
        }
    }
    assert!(
        n_watched <= 1 + began.elapsed().as_secs(),
        "{n_watched} of 50 requests asked for the fingerprint"
    );
}
