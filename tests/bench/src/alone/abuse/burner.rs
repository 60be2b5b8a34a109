//! The control: as much CPU as the abuse took, outside Rowgate. What PostgreSQL used is burned in as many sessions of another
//! PostgreSQL as were busy; what the data plane and its clients used, by busy threads beside the data plane.
//!
//! Linux gives each session of PostgreSQL a share of its own (autogroup), so that threads alone would burn as much and weigh less.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rowgate_tests::servers::postgres::{Server, execute};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::account;

/// Threads of the data plane that are busy at most: one for each core of the machine.
const THREADS: usize = 2;
/// About 5 ms.
const STATEMENT: &str = "select count(*) from generate_series(1, 50000)";

/// What is to be burned, in cores, and in how many sessions of PostgreSQL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Burn {
    pub(crate) outside: f64,
    pub(crate) postgres: f64,
    pub(crate) n_sessions: usize,
}

/// It ends with this value.
pub(crate) struct Burner {
    pub(crate) threads: Child,
    _sessions: JoinSet<()>,
}

impl Burner {
    pub(crate) async fn light(server: &Server, burn: Burn) -> Burner {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut command = Command::new(program);
        command.args(["burn", &burn.outside.to_string()]).stdin(Stdio::null());
        let threads = command.spawn().expect("it is this program");
        let mut sessions = JoinSet::new();
        for _ in 0..burn.n_sessions {
            let mut session = server.connect("postgres").await;
            let pid = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await;
            let pid = [u32::try_from(pid.unwrap_or(0_i32)).expect("a process id is positive")];
            let share = burn.postgres / burn.n_sessions as f64;
            sessions.spawn(async move {
                let (began, before) = (Instant::now(), account::cpu(&pid));
                loop {
                    while share * began.elapsed().as_secs_f64() < account::cpu(&pid) - before {
                        sleep(Duration::from_millis(1)).await;
                    }
                    execute(&mut session, STATEMENT).await;
                }
            });
        }
        Burner { threads, _sessions: sessions }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ended = self.threads.kill();
        let _reaped = self.threads.wait();
    }
}

/// What the process does: it uses so many cores until it is killed.
pub(crate) fn burn(cores: f64) {
    let threads = (0..THREADS).map(|_| thread::spawn(move || use_core(cores / THREADS as f64)));
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it never ends"));
}

fn use_core(share: f64) {
    let began = Instant::now();
    let mut n = 0_u64;
    loop {
        // the first number: nanoseconds on a core
        let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let used = stat.split(' ').next().and_then(|it| it.parse::<f64>().ok()).unwrap_or_default() / 1e9;
        if share * began.elapsed().as_secs_f64() < used {
            thread::park_timeout(Duration::from_millis(1));
            continue;
        }
        let until = Instant::now() + Duration::from_micros(500);
        while Instant::now() < until {
            n = std::hint::black_box(n.wrapping_mul(31).wrapping_add(7));
        }
    }
}
