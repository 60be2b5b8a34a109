//! Clients that read slowly keep connections busy, and leave other keys and other tenants theirs.

use crate::neighbours::crowd::Crowd;

/// Seen to fail with answers that are never cut: 503.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_of_one_key_leave_places_to_the_other_keys() {
    let crowd =
        Crowd::new(&["big", "calm"], &["--connections-per-tenant", "4", "--client-timeout-seconds", "120"])
            .await;
    let neighbour = crowd.neighbour("calm-a");
    let mut slow = Vec::new();
    for _ in 0..16 {
        slow.push(crowd.slow_reader("big-a").await);
    }
    crowd.running("big", "long", 4).await;
    // One of them is ended for another key, and the last place is not theirs from then on: nobody waits for it.
    for _ in 0..5 {
        assert_eq!(crowd.get("big-b", "/notes?$first=1").await.rows().len(), 1);
    }
    crowd.running("big", "long", 3).await;
    // Another key that reads slowly takes it; a third one gets a place of the key with most.
    let mut other = crowd.slow_reader("big-b").await;
    crowd.running("big", "long", 4).await;
    assert_eq!(crowd.get("big-c", "/notes?$first=1").await.rows().len(), 1);
    let ended = "rowgate_database_exchanges_ended_total{tenant=\"big\",reason=\"others_wait\"}";
    assert_eq!(crowd.metric(ended).await, 2);
    drop(slow);
    assert!(other.is_whole().await, "its key had one only");
    neighbour.always_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_of_one_tenant_leave_places_to_the_other_tenants() {
    let crowd =
        Crowd::new(&["big", "calm"], &["--connections-per-server", "4", "--client-timeout-seconds", "120"])
            .await;
    let mut slow = Vec::new();
    // Three of the four are for requests; each key could have them all.
    for key in ["big-a", "big-b", "big-c"] {
        slow.push(crowd.slow_reader(key).await);
    }
    crowd.running("big", "long", 3).await;
    assert_eq!(crowd.get("calm-a", "/notes?$first=1").await.rows().len(), 1);
    let mut n_whole = 0;
    for reader in &mut slow {
        n_whole += usize::from(reader.is_whole().await);
    }
    assert_eq!(n_whole, 2, "one place was needed");
}
