//! A neighbour that is asked all the time, and how much memory the processes that serve it take meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::client::Client;

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(50);

/// KiB by which the peak of a process may grow while others do what they like.
const GROWTH: u64 = 32 << 10;

/// Requests of one key, one after the other, until [`Asked::always_answered`].
#[derive(Debug)]
pub struct Asked {
    is_over: Arc<AtomicBool>,
    memory: Memory,
    asking: JoinHandle<(Answers, Vec<String>)>,
}

/// What became of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers {
    pub n: usize,
    pub longest: Duration,
}

impl Asked {
    /// Begins. `url` with its path; `pids`: the processes of ours that must not grow.
    #[must_use]
    pub fn begin(url: String, key: String, pids: &[u32]) -> Asked {
        let memory = Memory::of(pids);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let asking = tokio::spawn(async move {
            let (client, mut answers, mut wrong) = (Client::new(), Answers::default(), Vec::new());
            let mut turn = tokio::time::interval(PAUSE);
            while !over.load(Ordering::Relaxed) {
                turn.tick().await;
                let asked = Instant::now();
                let reply = client.get(&url, &[("X-API-Key", &key)]).await;
                answers = Answers { n: answers.n + 1, longest: answers.longest.max(asked.elapsed()) };
                if reply.status != 200 {
                    wrong.push(format!("{reply:?}"));
                }
            }
            (answers, wrong)
        });
        Asked { is_over, memory, asking }
    }

    /// Ends it, and panics where an answer was no 200 or a process took 32 MiB more than at the beginning.
    pub async fn always_answered(self) -> Answers {
        self.answered_but_for(0).await
    }

    /// As [`Asked::always_answered`], but for so many requests that may be on their way when a test ends their sessions, and are answered 503.
    pub async fn answered_but_for(self, most: usize) -> Answers {
        self.is_over.store(true, Ordering::Relaxed);
        let (answers, wrong) = self.asking.await.expect("each request is answered");
        let is_well = wrong.len() <= most && wrong.iter().all(|reply| reply.contains("status: 503"));
        assert!(is_well, "the neighbour was answered otherwise: {wrong:?}");
        assert!(0 < answers.n, "the neighbour was asked");
        let growth = self.memory.growth();
        assert!(growth.iter().all(|it| *it < GROWTH), "the processes took {growth:?} KiB more");
        answers
    }
}

/// What processes hold, each in KiB.
#[derive(Debug)]
struct Memory(Vec<(u32, u64)>);

impl Memory {
    /// From now on their highest is watched.
    fn of(pids: &[u32]) -> Memory {
        let one = |pid: &u32| {
            // 5: VmHWM begins anew
            std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the process is ours");
            (*pid, kib(*pid, "VmRSS:"))
        };
        Memory(pids.iter().map(one).collect())
    }

    /// By how much each has grown at its highest since.
    fn growth(&self) -> Vec<u64> {
        self.0.iter().map(|(pid, before)| kib(*pid, "VmHWM:").saturating_sub(*before)).collect()
    }
}

fn kib(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
