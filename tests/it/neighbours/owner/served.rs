//! The neighbour's clients: one that reads and one that writes, without a pause in all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rowgate_tests::asked::Asked;
use rowgate_tests::client::Client;
use rowgate_tests::stage::Stage;
use tokio::task::JoinHandle;

/// A request of a few milliseconds, beside what takes both processors.
const LONGEST: Duration = Duration::from_secs(10);

pub(super) struct Served {
    reads: Asked,
    writes: JoinHandle<(usize, Vec<String>)>,
    is_over: Arc<AtomicBool>,
}

impl Served {
    pub(super) async fn begin(stage: &Stage) -> Served {
        let (base, key) = (format!("{}/auth/beta/api/notes", stage.url()), stage.key("beta-web").await);
        let reads = Asked::begin(format!("{base}?$first=1"), key.clone(), &stage.pids());
        let is_over = Arc::new(AtomicBool::new(false));
        let writes = tokio::spawn(write(format!("{base}/id/1"), key, is_over.clone()));
        Served { reads, writes, is_over }
    }

    /// Every request was answered as if there were no neighbours, and in time.
    pub(super) async fn ends_well(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let (n_writes, wrong) = self.writes.await.expect("each write is answered");
        assert!(wrong.is_empty(), "the neighbour's writes: {}", wrong.join("\n"));
        let answers = self.reads.always_answered().await;
        assert!(
            answers.longest < LONGEST && 10 < answers.n && 10 < n_writes,
            "{answers:?}, {n_writes} writes"
        );
    }
}

async fn write(url: String, key: String, is_over: Arc<AtomicBool>) -> (usize, Vec<String>) {
    let (client, mut n, mut wrong) = (Client::new(), 0, Vec::new());
    let mut turn = tokio::time::interval(Duration::from_millis(100));
    while !is_over.load(Ordering::Relaxed) {
        turn.tick().await;
        n += 1;
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        let begun = Instant::now();
        let reply = client.send("PATCH", &url, &headers, &format!("{{\"body\": \"{n}\"}}")).await;
        if reply.status != 200 || LONGEST < begun.elapsed() {
            wrong.push(format!("{:?}: {reply:?}", begun.elapsed()));
        }
    }
    (n, wrong)
}
