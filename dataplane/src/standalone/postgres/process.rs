//! The server's process: started, taken over, ended. `postmaster.pid` is what PostgreSQL itself publishes.

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
use super::place::Place;
use super::{PostgresError, Wish, io_error};

/// Recovery after a crash may take this long.
const START_SECONDS: u64 = 120;
const STOP_SECONDS: u64 = 30;
/// How long a server that is just starting or ending is watched before we start one.
const UNDECIDED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// A log that has grown beyond this is set aside at the next start.
const LOG_BYTES: u64 = 10 << 20;

const SETTINGS: [&str; 9] = [
    "listen_addresses=",
    "port=5432",
    "unix_socket_permissions=0700",
    "max_connections=200",
    "password_encryption=scram-sha-256",
    // Values of requests do not belong into logs.
    "log_parameter_max_length=0",
    "log_parameter_max_length_on_error=0",
    "log_timezone=UTC",
    "timezone=UTC",
];

/// `$0` KiB of data (RLIMIT_DATA: memory that is shared between processes does not count), then the program, which keeps the
/// process id.
const LIMITED: &str = "ulimit -d \"$0\" 2> /dev/null; exec \"$@\"";

#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    socket: PathBuf,
    port: u16,
    /// None when the server was taken over: then it is init's child.
    child: Option<Child>,
}

impl Process {
    /// The server that runs over `data` already.
    pub(super) async fn running(data: &Path) -> Option<Process> {
        let deadline = Instant::now() + UNDECIDED;
        loop {
            let published = Published::read(data)?;
            if !alive(published.pid) {
                return None;
            }
            // A process with a recycled id does not listen on our socket.
            if published.ready && UnixStream::connect(published.socket_file()).is_ok() {
                let Published { pid, socket, port, .. } = published;
                return Some(Process { pid, socket, port, child: None });
            }
            if deadline < Instant::now() {
                return None;
            }
            sleep(LOOK).await;
        }
    }

    pub(super) async fn start(
        place: &Place,
        binaries: &Binaries,
        wish: &Wish,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Process, PostgresError> {
        let began = Instant::now();
        let data = place.data();
        let socket = place.socket()?;
        set_aside(&place.log);
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&place.log)
            .map_err(|source| io_error("write", &place.log, source))?;
        let errors = log.try_clone().map_err(|source| io_error("write", &place.log, source))?;

        let postgres = binaries.bin.join("postgres");
        // The limit is inherited by every process of the server, and none of them can lift it again. PostgreSQL itself runs
        // this shell, so it is there. Where the system has no such limit, or a smaller one, that one stands.
        let mut command = place.command(Path::new("/bin/sh"));
        command
            .arg("-c")
            .arg(LIMITED)
            .arg((u64::from(wish.session_memory) * 1024).to_string())
            .arg(&postgres);
        command.arg("-D").arg(&data).arg("-c").arg(format!("unix_socket_directories={}", socket.display()));
        for setting in SETTINGS.iter().copied().chain(wish.settings.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        // A process group of its own: Ctrl-C in our terminal is ours alone.
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
                return Err(PostgresError::Ended { log: place.log.clone(), tail: tail(&place.log) });
            }
            if Duration::from_secs(START_SECONDS) < began.elapsed() {
                signal(child.id(), Signal::SIGINT);
                return Err(PostgresError::Slow { seconds: START_SECONDS, log: place.log.clone() });
            }
            sleep(LOOK).await;
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
            // Waiting for a child reaps it; until then it would count as alive.
            Some(child) => child.try_wait().is_ok_and(|ended| ended.is_some()),
            None => !alive(self.pid),
        }
    }

    /// The fast shutdown: sessions are cut, a checkpoint is written.
    pub(super) async fn stop(mut self) -> Result<(), PostgresError> {
        let began = Instant::now();
        signal(self.pid, Signal::SIGINT);
        while !self.has_ended() {
            if Duration::from_secs(STOP_SECONDS) < began.elapsed() {
                return Err(PostgresError::Stuck { pid: self.pid, seconds: STOP_SECONDS });
            }
            sleep(LOOK).await;
        }
        // Empty by now, and ours by name; a leftover folder does no harm.
        let _left = fs::remove_dir(&self.socket);
        Ok(())
    }
}

/// What `postmaster.pid` says.
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
    // It may have ended already, which is what we want.
    let _ended = kill(raw(pid), signal);
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("process ids are positive 32-bit numbers"))
}

fn set_aside(log: &Path) {
    if fs::metadata(log).is_ok_and(|metadata| LOG_BYTES < metadata.len()) {
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
    fn the_pid_file_tells_where_the_server_listens_and_whether_it_is_ready() {
        let text = "4711\n/data\n1790000000\n5432\n/tmp/rowgate-1\n\n 123 456\nready   \n";
        let published = Published::parse(text).expect("a whole file");
        assert_eq!(published.socket_file(), Path::new("/tmp/rowgate-1/.s.PGSQL.5432"));
        assert_eq!((published.pid, published.ready), (4711, true));
        assert!(Published::parse("4711\n/data\n").is_none());
        assert!(!Published::parse(&text.replace("ready", "starting")).expect("a whole file").ready);
    }
}
