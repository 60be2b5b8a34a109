//! The neighbour: Tenant `acme` and its key `web`.

use std::fs;
use std::time::Duration;

use rowgate_tests::client::Client;
use rowgate_tests::reconciler::ready;
use rowgate_tests::stage::{DONE, Stage};
use tokio::task::JoinHandle;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use crate::scenarios::NOTES;

/// KiB by which the peak of a process may grow.
const GROWTH: u64 = 32 << 10;

/// Asks until it is told to stop; each answer must be a 200.
pub(super) struct Neighbour {
    stop: CancellationToken,
    asks: JoinHandle<u32>,
    pid: u32,
    memory: u64,
}

impl Neighbour {
    pub(super) async fn of(stage: &Stage) -> Neighbour {
        let (url, key) = (format!("{}{NOTES}", stage.url()), stage.key("web").await);
        let (client, stop) = (Client::new(), CancellationToken::new());
        let stopped = stop.clone();
        let asks = tokio::spawn(async move {
            let (mut n, mut turn) = (0, interval(Duration::from_millis(50)));
            while !stopped.is_cancelled() {
                turn.tick().await;
                let reply = client.get(&url, &[("X-API-Key", &key)]).await;
                assert_eq!(reply.status, 200, "request {n}: {reply:?}");
                n += 1;
            }
            n
        });
        Neighbour { stop, asks, pid: stage.pid(), memory: peak(stage.pid()) }
    }

    /// It was served all the time, is Ready, and the process that reconciles is the same and needed no more memory.
    pub(super) async fn is_well(self, stage: &Stage) {
        self.stop.cancel();
        assert!(0 < self.asks.await.expect("every request was served"));
        assert_eq!(stage.pid(), self.pid);
        let grown = peak(self.pid).saturating_sub(self.memory);
        assert!(grown < GROWTH, "the process needed {grown} KiB more");
        let status = stage.status("Tenant", "acme").await;
        assert_eq!(ready(&status).0, DONE, "{status}");
    }
}

/// The most that the process has held so far, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
