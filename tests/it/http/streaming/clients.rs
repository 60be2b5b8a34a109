//! Clients that stop reading, go away in the middle, or do not wait for the first byte. The tenant has one connection,
//! so that whatever they leave behind meets the next request.

use super::fixture::{Fixture, big, ids};
use super::raw::{Raw, has_end};

/// Seen to fail with a client timeout of an hour.
#[tokio::test]
async fn a_client_that_stops_reading_is_cut_and_its_connection_serves_others() {
    let flags = ["--connections-per-tenant", "1", "--client-timeout-seconds", "1"];
    let mut fixture = Fixture::new("10m", &flags).await;
    let mut stalled = Raw::get(&fixture.world, &fixture.key, &big("/long?$first=-1")).await;
    assert!(stalled.take(15).await.starts_with(b"HTTP/1.1 200"));
    // It would run for as long as the client likes.
    fixture.runs("long").await;
    fixture.nothing_runs().await;
    assert_eq!(ids(&fixture.get("/long?$first=3").await), [1, 2, 3]);
    assert!(!has_end(&stalled.rest().await), "what was cut must not look whole");
}

#[tokio::test]
async fn clients_that_go_away_in_the_middle_leave_nothing_behind() {
    let mut fixture = Fixture::new("10m", &["--connections-per-tenant", "1"]).await;
    for round in 0..12 {
        let mut leaving = Raw::get(&fixture.world, &fixture.key, &big("/long?$first=-1")).await;
        leaving.take(1 + (round * 70_001) % 500_000).await;
        drop(leaving);
        // Little is left of these: their connection may be read to its end and used again.
        let mut leaving = Raw::get(&fixture.world, &fixture.key, &big("/long?$first=200")).await;
        leaving.take(1).await;
        drop(leaving);
        let first = 1 + round % 150;
        let next = fixture.get(&format!("/long?$first={first}&$orderby=id%20desc")).await;
        assert_eq!(ids(&next), (40_001 - first as u64..=40_000).rev().collect::<Vec<_>>(), "{round}");
    }
    fixture.nothing_runs().await;
    assert!(fixture.backends().await.len() <= 1, "no more than --connections-per-tenant");
}

/// Seen to fail with an exchange that nobody ends.
#[tokio::test]
async fn a_client_that_goes_away_before_the_first_row_ends_its_statement() {
    let mut fixture = Fixture::new("10m", &["--connections-per-tenant", "1"]).await;
    for _ in 0..2 {
        let waiting = Raw::get(&fixture.world, &fixture.key, &big("/slow?$first=1")).await;
        fixture.runs("slow").await;
        drop(waiting);
        fixture.nothing_runs().await;
        assert_eq!(ids(&fixture.get("/long?$first=2").await), [1, 2]);
    }
}
