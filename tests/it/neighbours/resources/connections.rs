//! A server's connections are shared among tenants: few are open however many ask, idle ones go first, and each tenant gets one
//! in turn.

use std::time::Duration;

use rowgate_core::problem::Code;
use rowgate_tests::client::Client;
use rowgate_tests::wait::until;
use tokio::task::JoinSet;

use crate::neighbours::crowd::{Crowd, refuses, url};

const TENANTS: [&str; 8] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
const BOUND: i64 = 6;

/// Eight tenants at once, each with more requests than there are connections, and one of them with ten times as many.
///
/// Seen to fail with a server that takes as many connections as anybody wants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tenants_share_few_connections_and_none_starves() {
    let crowd = Crowd::new(&TENANTS, &["--connections-per-server", "6"]).await;
    let neighbour = crowd.neighbour("t8-b");
    let mut asking = JoinSet::new();
    for (i, tenant) in TENANTS.iter().enumerate() {
        let key = format!("{tenant}-a");
        let url = url(&crowd.world.url(), &key, "/napping?$first=1&$select=id,nap");
        let (client, secret) = (Client::new(), crowd.world.key(&key));
        for _ in 0..(if i == 0 { 80 } else { 8 }) {
            let (client, url, secret) = (client.clone(), url.clone(), secret.clone());
            asking.spawn(async move { (i, client.get(&url, &[("X-API-Key", &secret)]).await) });
        }
    }
    let (mut most, mut n_left, mut n_refused) = (0, asking.len(), 0);
    while 0 < n_left {
        while let Some(answered) = asking.try_join_next() {
            let (i, reply) = answered.expect("no panic");
            n_left -= 1;
            match i == 0 && reply.status == 503 {
                // Who asks for so much may be told to come again.
                true => n_refused += usize::from(reply.header("retry-after") == Some("1")),
                false => assert_eq!(reply.rows().len(), 1, "{}", TENANTS[i]),
            }
        }
        most = most.max(crowd.sessions().await);
    }
    println!("{most} sessions at most, {n_refused} of 80 refused");
    // PostgreSQL counts a session that was closed until its process has ended.
    assert!(most <= BOUND + 4, "{most} sessions");
    until("the end of what was closed", async || (crowd.sessions().await <= BOUND).then_some(())).await;
    let server = format!("{{server=\"{}\"}}", crowd.server.endpoint());
    assert!(crowd.metric(&format!("rowgate_server_connections{server}")).await <= BOUND as u64);
    assert_eq!(crowd.metric(&format!("rowgate_server_connections_max{server}")).await, BOUND as u64);
    assert_eq!(crowd.metric(&format!("rowgate_server_waiting_pools{server}")).await, 0);
    assert!(0 < crowd.metric(&format!("rowgate_server_connections_reclaimed_total{server}")).await);
    let answers = neighbour.always_answered().await;
    println!("the neighbour: {answers:?}");
    assert!(answers.longest < Duration::from_secs(5), "{answers:?}");
}

/// Where all connections are busy and none can be had, who waits for too long is told when to come again; the others' requests
/// are not touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gets_none_in_time_is_told_to_come_again() {
    let tenants = ["one", "two", "three", "late"];
    let crowd = Crowd::new(&tenants, &["--connections-per-server", "4"]).await;
    // Three places are for requests, and a write is not ended for others.
    let mut locks = Vec::new();
    let mut writes = JoinSet::new();
    for tenant in &tenants[..3] {
        let mut lock = crowd.server.connect(tenant).await;
        rowgate_tests::servers::postgres::execute(&mut lock, "begin; lock table t.notes").await;
        locks.push(lock);
        let key = format!("{tenant}-a");
        let (url, secret) = (url(&crowd.world.url(), &key, "/notes/id/1"), crowd.world.key(&key));
        writes.spawn(async move {
            let headers = [("X-API-Key", secret.as_str()), ("Content-Type", "application/json")];
            Client::new().send("PATCH", &url, &headers, "{\"body\": \"written\"}").await
        });
        crowd.running(tenant, "notes", 1).await;
    }
    let late = crowd.get("late-a", "/notes?$first=1").await;
    assert!(refuses(&late, Code::Unavailable), "{late:?}");
    assert_eq!((late.status.as_u16(), late.header("retry-after")), (503, Some("1")));
    drop(locks);
    while let Some(written) = writes.join_next().await {
        assert_eq!(written.expect("no panic").status, 200);
    }
    assert_eq!(crowd.get("late-a", "/notes?$first=1").await.rows().len(), 1);
}
