//! Databases that do not answer in time.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rowgate_core::problem::Code;
use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{Fixture, ids};

#[tokio::test]
async fn a_backend_that_stopped_is_504_and_not_asked_again() {
    let mut fixture = Fixture::new("1s", &["--connections-per-tenant", "1"]).await;
    assert_eq!(ids(&fixture.get("/long?$first=2").await), [1, 2]);
    let backends = fixture.backends().await;
    let [pid] = backends[..] else { panic!("one connection, and not {backends:?}") };
    kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("it runs");
    let reply = fixture.get("/long?$first=2").await;
    assert_eq!(reply.json()["error"]["code"], json!(Code::StatementTimeout), "{reply:?}");
    assert_eq!(ids(&fixture.get("/long?$first=3").await), [1, 2, 3], "on another connection");
    kill(Pid::from_raw(pid), Signal::SIGCONT).expect("it stands still");
    let gone = async || (!fixture.backends().await.contains(&pid)).then_some(());
    until("an end of the session that stopped", gone).await;
}

#[tokio::test]
async fn a_wait_for_a_lock_ends_with_the_statement_timeout() {
    let mut fixture = Fixture::new("1s", &["--connections-per-tenant", "1"]).await;
    let lock = fixture.lock().await;
    let reply = fixture.get("/numbers?$first=2").await;
    assert_eq!(reply.json()["error"]["code"], json!(Code::StatementTimeout), "{reply:?}");
    fixture.nothing_runs().await;
    drop(lock);
    let served = async || {
        let reply = fixture.get("/numbers?$first=2").await;
        (reply.status == 200).then(|| ids(&reply))
    };
    assert_eq!(until("the end of the lock", served).await, [1, 2]);
}
