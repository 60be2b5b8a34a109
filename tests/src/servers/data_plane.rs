//! A data plane of its own: a real `serve` process over somebody's control database.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::scratch::Scratch;
use crate::wait::until;
use crate::world::{binary, free_port};

/// The process ends with this value, or with the test process.
#[derive(Debug)]
pub struct DataPlane {
    url: String,
    probes: u16,
    child: Child,
    scratch: Scratch,
}

impl DataPlane {
    /// Starts it and waits until it is ready. `socket` is the folder of PostgreSQL's socket, `root` the file with the
    /// data plane's root.
    pub async fn start(socket: &Path, root: &Path) -> DataPlane {
        DataPlane::start_with(socket, root, |_| ()).await
    }

    /// As [`DataPlane::start`], with further flags.
    pub async fn start_with(socket: &Path, root: &Path, change: impl FnOnce(&mut Command)) -> DataPlane {
        DataPlane::start_at(free_port(), socket, root, change).await
    }

    /// As [`DataPlane::start`], of another build.
    pub async fn start_of(program: &Path, socket: &Path, root: &Path) -> DataPlane {
        DataPlane::launch(program, free_port(), socket, root, |_| ()).await
    }

    /// As [`DataPlane::start_with`], at a port that others know already.
    pub async fn start_at(
        port: u16,
        socket: &Path,
        root: &Path,
        change: impl FnOnce(&mut Command),
    ) -> DataPlane {
        DataPlane::launch(&binary(), port, socket, root, change).await
    }

    async fn launch(
        program: &Path,
        port: u16,
        socket: &Path,
        root: &Path,
        change: impl FnOnce(&mut Command),
    ) -> DataPlane {
        let scratch = Scratch::new();
        let probes = free_port();
        let log = File::create(scratch.path().join("log")).expect("the folder is ours");
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .args(["--probes", &format!("127.0.0.1:{probes}"), "--control"])
            .arg(socket)
            .arg("--root-file")
            .arg(root)
            // as the chart has it
            .env("MIMALLOC_PURGE_DELAY", "50")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        change(&mut command);
        let child = command.spawn().expect("the binary was built; `make test` builds it");
        scratch.adopt(child.id());
        let replica = DataPlane { url: format!("http://127.0.0.1:{port}"), probes, child, scratch };
        until("the data plane's readiness", async || replica.is_ready().await.then_some(())).await;
        replica
    }

    /// What `/readyz` says.
    pub async fn is_ready(&self) -> bool {
        let answer = reqwest::get(format!("http://127.0.0.1:{}/readyz", self.probes)).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).expect("the file was made before it")
    }

    /// Sends a signal that does not end it; see [`DataPlane::end`].
    pub fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Stops it until it gets SIGCONT, and waits until no thread of it runs: the signal alone is not waited for.
    pub async fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let stands = || {
            let mut threads = fs::read_dir(&tasks).expect("it is there").filter_map(Result::ok);
            threads.all(|thread| {
                let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
                // behind the name, which may hold spaces
                stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
            })
        };
        until("every thread to stand still", async || stands().then_some(())).await;
    }

    /// Sends `signal` and waits for the end.
    pub async fn end(mut self, signal: Signal) -> ExitStatus {
        send(self.child.id(), signal);
        let end = async || self.child.try_wait().expect("it is our child");
        let status = until("the end of a data plane", end).await;
        self.scratch.forget(self.child.id());
        status
    }
}

/// Sends a signal to a child that nobody has waited for.
pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("process ids are positive 32-bit numbers"));
    kill(pid, signal).expect("it is our child, not yet waited for");
}
