//! A temporary folder with everything that was started in it. Both go when it is dropped, and also when the test
//! process is killed: a small shell process holds the other end of a pipe and cleans up when the pipe closes. Before, it
//! is searched for secrets, and the test fails where one stands in a log (`sweep`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use crate::sweep;

/// Memory, where Linux has enough of it for servers; elsewhere, and where `TMPDIR` names one, the folder for temporary files.
/// On ext4 the copy of a cluster cost up to a second of a core: it looks at every inode that was removed in the last seconds.
static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let is_told = std::env::var_os("TMPDIR").is_some();
    if !is_told && holds_servers(&mounts) { MEMORY.into() } else { std::env::temp_dir() }
});

const MEMORY: &str = "/dev/shm";
/// KiB that a dozen servers with their tenants fit into.
const ENOUGH: u64 = 4 << 20;

/// Whether programs may run in the memory that these mounts list, and whether it is large enough. Without a size it is half
/// of the machine's.
fn holds_servers(mounts: &str) -> bool {
    let mut places = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let Some(place) = places.find(|it| it.get(1) == Some(&MEMORY)) else { return false };
    let mut options = place.get(3).unwrap_or(&"noexec").split(',');
    options.all(|option| match option.strip_prefix("size=") {
        Some(size) => {
            size.strip_suffix('k').and_then(|it| it.parse().ok()).is_some_and(|it: u64| ENOUGH <= it)
        }
        None => !["noexec", "ro"].contains(&option),
    })
}

/// `$1` is the folder. Processes first, so that none writes into what is being removed. Ids are given again, within minutes
/// where there are 32,768: a process is ours if it began when the note says, a PostgreSQL if it stands in its folder, which a
/// test may have killed. The pid file, not the process, tells that PostgreSQL has ended: an unreaped child counts as alive. A
/// copy that was under way when the test was killed may still fill the folder for a moment.
const CLEAN_UP: &str = r#"
cat >/dev/null
folder=$1
for note in "$folder"/pids/*; do
  [ -e "$note" ] && read -r pid began <"$note" && read -r stat <"/proc/$pid/stat" || continue
  set -- ${stat##*) }
  [ "${20}" = "$began" ] && kill -KILL "$pid"
done
find "$folder" -name postmaster.pid | while read -r note; do
  socket=$(sed -n 5p "$note")
  pid=$(sed -n 1p "$note")
  if [ "/proc/$pid/cwd" -ef "${note%/*}" ]; then
    kill -QUIT "$pid"
    looks=0
    while [ -e "$note" ] && [ "$looks" -lt 200 ]; do sleep 0.02; looks=$((looks + 1)); done
  fi
  case "$socket" in */rowgate-*) rm -rf "$socket" ;; esac
done
looks=0
while ! rm -rf "$folder" && [ "$looks" -lt 50 ]; do sleep 0.1; looks=$((looks + 1)); done
"#;

/// Of each log this much is shown when a test fails.
const SHOWN: usize = 20;

/// See the module's page.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    cleaner: Child,
}

impl Scratch {
    /// A folder that an unprivileged PostgreSQL can reach, too.
    #[must_use]
    pub fn new() -> Scratch {
        let folder = tempfile::Builder::new().prefix("rowgate-test-").tempdir_in(&*PLACE);
        let folder = folder.expect("a temporary folder");
        let path = folder.keep();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).expect("the folder is ours");
        fs::create_dir(path.join("pids")).expect("the folder is ours");
        let cleaner = Command::new("sh")
            .args(["-c", CLEAN_UP, "clean-up"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C must reach the tests only, or nobody would clean up.
            .process_group(0)
            .spawn()
            .expect("a shell");
        sweep::begin(&path);
        Scratch { path, cleaner }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has this process killed with the folder. Forget it again when it was waited for: its id may be another's soon.
    pub fn adopt(&self, pid: u32) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it was not waited for");
        // behind the name, which may hold spaces
        let began = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19));
        let note = format!("{pid} {}\n", began.expect("a time"));
        fs::write(self.note(pid), note).expect("the folder is ours");
    }

    pub fn forget(&self, pid: u32) {
        fs::remove_file(self.note(pid)).expect("it was adopted");
    }

    fn note(&self, pid: u32) -> PathBuf {
        self.path.join("pids").join(pid.to_string())
    }

    /// The end of what the processes have written.
    fn last_lines(&self) -> String {
        let mut shown = String::new();
        for name in ["log", "stderr"] {
            let Ok(log) = fs::read_to_string(self.path.join(name)) else { continue };
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
            shown += &format!("the end of {}:\n{last}\n", self.path.join(name).display());
        }
        shown
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

#[expect(clippy::print_stderr, reason = "the test harness shows it with the test that failed")]
impl Drop for Scratch {
    fn drop(&mut self) {
        if thread::panicking() {
            eprint!("{}", self.last_lines());
        }
        let leaks = sweep::end(&self.path);
        drop(self.cleaner.stdin.take());
        let _status = self.cleaner.wait();
        // A test that fails already says why; a second panic would end the whole process.
        if !thread::panicking() {
            assert!(leaks.is_empty(), "secrets stand where they do not belong: {}", leaks.join("; "));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn memory_holds_servers_where_it_is_large_and_programs_may_run_there() {
        for (options, holds) in [
            ("rw,nosuid,nodev,inode64", true),
            ("rw,relatime,size=24683656k", true),
            ("rw,nosuid,size=65536k", false),
            ("rw,noexec,size=24683656k", false),
        ] {
            let mounts = format!("proc /proc proc rw,noexec 0 0\ntmpfs /dev/shm tmpfs {options} 0 0\n");
            assert_eq!(holds_servers(&mounts), holds, "{options}");
        }
        assert!(!holds_servers("proc /proc proc rw 0 0\n"));
    }

    /// Of the two processes one began when its note says. The note of a PostgreSQL that was killed names a third.
    #[test]
    fn a_process_that_has_the_id_of_another_one_is_not_killed() {
        let sleeps = || Command::new("sleep").arg("600").spawn().expect("a program");
        let [mut ours, mut another, mut third] = [sleeps(), sleeps(), sleeps()];
        let scratch = Scratch::new();
        scratch.adopt(ours.id());
        scratch.adopt(another.id());
        fs::write(scratch.note(another.id()), format!("{} 1\n", another.id())).expect("the folder is ours");
        let published = format!("{}\n", third.id());
        fs::write(scratch.path().join("postmaster.pid"), published).expect("the folder is ours");
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
        let signal = ours.wait().expect("our child").signal();
        let lives = [&mut another, &mut third].map(|it| it.try_wait().expect("our child").is_none());
        for it in [&mut another, &mut third] {
            it.kill().and_then(|()| it.wait()).expect("our child");
        }
        assert_eq!((signal, lives), (Some(9), [true, true]));
    }
}
