//! Starts, takes over and stops the server's process, by means of the `postmaster.pid` that PostgreSQL writes.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use super::binaries::Binaries;
use super::layout::Layout;
use super::{PostgresConfig, PostgresError, io_error};

/// Recovery after a crash may take this long.
const START_SECONDS: u64 = 120;
const STOP_SECONDS: u64 = 30;
/// How long to wait for a server that is starting or stopping before another one is started.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A log larger than this is renamed at the next start.
const MAX_LOG_BYTES: u64 = 10 << 20;

const SETTINGS: [&str; 9] = [
    "listen_addresses=",
    "port=5432",
    "unix_socket_permissions=0700",
    "max_connections=200",
    "password_encryption=scram-sha-256",
    // values of requests do not belong in logs
    "log_parameter_max_length=0",
    "log_parameter_max_length_on_error=0",
    "log_timezone=UTC",
    "timezone=UTC",
];

/// Sets RLIMIT_DATA to `$0` KiB (memory shared between processes does not count), then becomes the program, which keeps the
/// process id.
const WITH_DATA_LIMIT: &str = "ulimit -d \"$0\" 2> /dev/null; exec \"$@\"";

#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    socket: PathBuf,
    port: u16,
    /// `None` for a server that was taken over, which is a child of init.
    child: Option<Child>,
}

impl Process {
    /// The server that already runs on `data`.
    pub(super) async fn running(data: &Path) -> Option<Process> {
        let deadline = Instant::now() + TAKEOVER_TIMEOUT;
        loop {
            let published = Published::read(data)?;
            if !alive(published.pid) {
                return None;
            }
            // a process with a recycled id does not listen on this socket
            if published.ready && UnixStream::connect(published.socket_file()).is_ok() {
                let Published { pid, socket, port, .. } = published;
                return Some(Process { pid, socket, port, child: None });
            }
            if deadline < Instant::now() {
                return None;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    pub(super) async fn start(
        layout: &Layout,
        binaries: &Binaries,
        config: &PostgresConfig,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Process, PostgresError> {
        let began = Instant::now();
        let data = layout.data();
        let socket = layout.socket()?;
        rotate(&layout.log);
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&layout.log)
            .map_err(|source| io_error("write", &layout.log, source))?;
        let errors = log.try_clone().map_err(|source| io_error("write", &layout.log, source))?;

        let postgres = binaries.bin.join("postgres");
        // Every process of the server inherits the limit and cannot raise it. The shell exists because PostgreSQL itself needs
        // it. If the system does not support the limit, or sets a smaller one, the server runs with what the system sets.
        let mut command = layout.command(Path::new("/bin/sh"));
        command
            .arg("-c")
            .arg(WITH_DATA_LIMIT)
            .arg((u64::from(config.session_memory) * 1024).to_string())
            .arg(&postgres);
        command.arg("-D").arg(&data).arg("-c").arg(format!("unix_socket_directories={}", socket.display()));
        for setting in SETTINGS.iter().copied().chain(config.settings.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        // its own process group: Ctrl-C in the terminal reaches only standalone
        command.process_group(0).stdin(Stdio::null()).stdout(log).stderr(errors);
        let mut child = command.spawn().map_err(|source| io_error("run", &postgres, source))?;

        loop {
            if let Some(published) = Published::read(&data)
                && published.pid == child.id()
                && published.ready
            {
                progress(format!(
                    "PostgreSQL {} is ready after {:.1} s",
                    binaries.version.text,
                    began.elapsed().as_secs_f32()
                ));
                let Published { pid, socket, port, .. } = published;
                return Ok(Process { pid, socket, port, child: Some(child) });
            }
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(PostgresError::Ended { log: layout.log.clone(), tail: tail(&layout.log) });
            }
            if Duration::from_secs(START_SECONDS) < began.elapsed() {
                signal(child.id(), Signal::SIGINT);
                return Err(PostgresError::Slow { seconds: START_SECONDS, log: layout.log.clone() });
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn has_ended(&mut self) -> bool {
        match &mut self.child {
            // waiting for a child reaps it; until then it counts as alive
            Some(child) => child.try_wait().is_ok_and(|ended| ended.is_some()),
            None => !alive(self.pid),
        }
    }

    /// PostgreSQL's fast shutdown, which disconnects sessions and writes a checkpoint. A session may be within a function that does not
    /// look whether it was ended; then an immediate shutdown, after which the next start recovers from the log.
    pub(super) async fn stop(mut self) -> Result<(), PostgresError> {
        signal(self.pid, Signal::SIGINT);
        if !self.ends_within(STOP_SECONDS).await {
            tracing::warn!(
                pid = self.pid,
                seconds = STOP_SECONDS,
                "PostgreSQL has sessions that do not end; it is shut down immediately, and its next start recovers from its log"
            );
            signal(self.pid, Signal::SIGQUIT);
            if !self.ends_within(STOP_SECONDS).await {
                return Err(PostgresError::Stuck { pid: self.pid, seconds: 2 * STOP_SECONDS });
            }
        }
        // the folder is empty and named by this installation; a leftover does no harm
        let _left = fs::remove_dir(&self.socket);
        Ok(())
    }

    async fn ends_within(&mut self, seconds: u64) -> bool {
        let began = Instant::now();
        while !self.has_ended() {
            if Duration::from_secs(seconds) < began.elapsed() {
                return false;
            }
            sleep(POLL_INTERVAL).await;
        }
        true
    }
}

/// The contents of `postmaster.pid`.
struct Published {
    pid: u32,
    socket: PathBuf,
    port: u16,
    ready: bool,
}

impl Published {
    fn read(data: &Path) -> Option<Published> {
        Published::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    /// Lines: pid, data folder, start time, port, socket folder, listen address, shared memory, status.
    fn parse(text: &str) -> Option<Published> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Published {
            pid: lines.first()?.parse().ok()?,
            port: lines.get(3)?.parse().ok()?,
            socket: PathBuf::from(lines.get(4)?),
            ready: lines.get(7).is_some_and(|status| *status == "ready"),
        })
    }

    fn socket_file(&self) -> PathBuf {
        self.socket.join(format!(".s.PGSQL.{}", self.port))
    }
}

fn alive(pid: u32) -> bool {
    !matches!(kill(raw(pid), None), Err(Errno::ESRCH))
}

fn signal(pid: u32, signal: Signal) {
    // the process may have ended already
    let _ended = kill(raw(pid), signal);
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("process ids are positive 32-bit numbers"))
}

fn rotate(log: &Path) {
    if fs::metadata(log).is_ok_and(|metadata| MAX_LOG_BYTES < metadata.len()) {
        let _kept = fs::rename(log, log.with_extension("log.1"));
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_says_where_the_server_listens_and_whether_it_is_ready() {
        let text = "4711\n/data\n1790000000\n5432\n/tmp/rowgate-1\n\n 123 456\nready   \n";
        let published = Published::parse(text).expect("a whole file");
        assert_eq!(published.socket_file(), Path::new("/tmp/rowgate-1/.s.PGSQL.5432"));
        assert_eq!((published.pid, published.ready), (4711, true));
        assert!(Published::parse("4711\n/data\n").is_none());
        assert!(!Published::parse(&text.replace("ready", "starting")).expect("a whole file").ready);
    }
}
