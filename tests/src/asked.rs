//! A neighbour that is asked all the time, and how much memory the processes take meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::world::get;

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(50);

/// Requests of one key, one after the other.
#[derive(Debug)]
pub struct Asked {
    task: JoinHandle<()>,
    n_answered: Arc<AtomicUsize>,
    wrong: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Asked {
    /// Begins. `url` with its path; each answer must be a 200.
    #[must_use]
    pub fn begin(url: String, key: String) -> Asked {
        let (n_answered, wrong) =
            (Arc::<AtomicUsize>::default(), Arc::<std::sync::Mutex<Vec<String>>>::default());
        let (n, failures) = (n_answered.clone(), wrong.clone());
        let task = tokio::spawn(async move {
            let mut turn = tokio::time::interval(PAUSE);
            loop {
                turn.tick().await;
                let answer = get(&url, &key).await;
                match answer.status.as_u16() {
                    200 => drop(n.fetch_add(1, Ordering::Relaxed)),
                    _ => failures.lock().expect("nobody panics with it").push(format!("{answer:?}")),
                }
            }
        });
        Asked { task, n_answered, wrong }
    }

    /// Ends, and panics where an answer was another one.
    pub fn end(self) {
        self.task.abort();
        let wrong = self.wrong.lock().expect("nobody panics with it").clone();
        assert!(wrong.is_empty(), "the neighbour was answered otherwise: {wrong:?}");
        assert!(0 < self.n_answered.load(Ordering::Relaxed), "the neighbour was asked");
    }
}

/// What processes hold, each in KiB.
#[derive(Debug)]
pub struct Memory(Vec<(u32, u64)>);

impl Memory {
    /// From now on their highest is watched.
    #[must_use]
    pub fn of(pids: &[u32]) -> Memory {
        let one = |pid: &u32| {
            // 5: VmHWM begins anew
            std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the process is ours");
            (*pid, kib(*pid, "VmRSS:"))
        };
        Memory(pids.iter().map(one).collect())
    }

    /// By how much each has grown at its highest since.
    #[must_use]
    pub fn growth(&self) -> Vec<u64> {
        self.0.iter().map(|(pid, before)| kib(*pid, "VmHWM:").saturating_sub(*before)).collect()
    }
}

fn kib(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
