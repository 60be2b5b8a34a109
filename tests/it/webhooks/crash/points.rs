//! Moments at which replicas are killed. Each is brought about, not hoped for.

use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::servers::receiver::Receiver;
use rowgate_tests::wait::until;
use sqlx::PgConnection;
use tokio::sync::watch;

use super::works::{Works, probe};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    /// A subscription is claimed, and nothing was sent.
    Claimed,
    /// The receiver has the request and has not answered.
    UnderWay,
    /// The receiver has answered, and that is not written yet.
    Answered,
    /// The receiver has the request, and PostgreSQL goes.
    Restart,
}

pub(super) const ALL: [Point; 4] = [Point::Claimed, Point::UnderWay, Point::Answered, Point::Restart];

/// It makes what is sent without it, and reads the table.
const QUERY: &str = "select id, n from works.probes where id = @id for json path, without_array_wrapper";

/// A receiver that answers while its gate is open, and its subscription.
pub(super) struct Probe {
    pub(super) receiver: Receiver,
    gate: watch::Sender<bool>,
    id: String,
    /// Rows that were inserted.
    n_rows: usize,
}

impl Probe {
    pub(super) async fn of(works: &Works) -> Probe {
        let (receiver, gate) = Receiver::gated(true, || 200).await;
        let id = works.subscribe("probes", &receiver.url("/probes"), Some(QUERY)).await;
        Probe { receiver, gate, id, n_rows: 0 }
    }

    /// Kills these replicas at that point, and starts them again.
    pub(super) async fn reach(&mut self, point: Point, works: &mut Works, killed: &[usize]) {
        self.n_rows += 1;
        match point {
            Point::Claimed => self.claimed(works, killed).await,
            Point::UnderWay => {
                self.until_requested(works).await;
                works.kill(killed).await;
                self.gate.send_replace(true);
            }
            Point::Answered => self.answered(works, killed).await,
            Point::Restart => {
                self.until_requested(works).await;
                works.server.kill().await;
                works.kill(killed).await;
                works.server.start_again().await;
                self.gate.send_replace(true);
            }
        }
        works.start().await;
        works.is_settled(&self.id).await;
        assert!(0 < self.n_events(self.n_rows), "it was delivered");
    }

    /// The gate is closed, and the receiver has the event.
    async fn until_requested(&self, works: &Works) {
        self.gate.send_replace(false);
        let n = self.receiver.n_requests();
        probe(&mut works.sql().await, self.n_rows).await;
        until("a request", async || (n < self.receiver.n_requests()).then_some(())).await;
    }

    /// The lock comes with the commit, so that the payload query of a subscription that is claimed waits for it.
    async fn claimed(&self, works: &mut Works, killed: &[usize]) {
        let n = self.receiver.n_requests();
        let (mut writer, mut locker, mut look) = (works.sql().await, works.sql().await, works.sql().await);
        execute(&mut writer, "begin").await;
        probe(&mut writer, self.n_rows).await;
        execute(&mut locker, "begin").await;
        let lock = execute(&mut locker, "lock table works.probes in access exclusive mode");
        let commit = async {
            until_waits(&mut look, "query like 'lock table%'").await;
            execute(&mut writer, "commit").await;
        };
        tokio::join!(lock, commit);
        let claim =
            format!("select lease from dl.subscriptions where id = '{}' and lease is not null", self.id);
        until("a claim", async || (!rows(&mut look, &claim).await.is_empty()).then_some(())).await;
        until_waits(&mut look, "usename like '%\\_auth'").await;
        works.kill(killed).await;
        assert_eq!(self.receiver.n_requests(), n, "nothing was sent");
        execute(&mut locker, "rollback").await;
    }

    /// What writes that it was delivered waits for the lock of the row, and ends with its replica.
    async fn answered(&self, works: &mut Works, killed: &[usize]) {
        self.until_requested(works).await;
        let n = self.n_events(self.n_rows);
        let (mut locker, mut look) = (works.sql().await, works.sql().await);
        execute(&mut locker, "begin").await;
        execute(&mut locker, &format!("select from dl.subscriptions where id = '{}' for update", self.id))
            .await;
        self.gate.send_replace(true);
        until_waits(&mut look, "query like 'with durable%'").await;
        works.kill(killed).await;
        let end =
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where wait_event_type = 'Lock'";
        rows(&mut look, end).await;
        execute(&mut locker, "rollback").await;
        works.start().await;
        until("the same event once more", async || (n < self.n_events(self.n_rows)).then_some(())).await;
    }

    /// How many times the event of this row came.
    fn n_events(&self, row: usize) -> usize {
        let requests = self.receiver.requests();
        let events = requests.iter().flat_map(|request| request.events());
        events.filter(|event| event["data"]["id"] == row).count()
    }
}

async fn until_waits(look: &mut PgConnection, who: &str) {
    let waits = format!("select pid from pg_stat_activity where wait_event_type = 'Lock' and {who}");
    until("a wait for a lock", async || (!rows(look, &waits).await.is_empty()).then_some(())).await;
}
