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

/// `$1` is the folder. Processes first, so that nobody writes into what is being removed. The pid file, not the
/// process, tells that PostgreSQL has ended: an unreaped child counts as alive. A copy that was under way when the test
/// was killed may still fill the folder for a moment.
const CLEAN_UP: &str = r#"
cat >/dev/null
for note in "$1"/pids/*; do
  [ -e "$note" ] && kill -KILL "$(cat "$note")"
done
find "$1" -name postmaster.pid | while read -r note; do
  socket=$(sed -n 5p "$note")
  kill -QUIT "$(sed -n 1p "$note")"
  looks=0
  while [ -e "$note" ] && [ "$looks" -lt 200 ]; do sleep 0.02; looks=$((looks + 1)); done
  case "$socket" in */rowgate-*) rm -rf "$socket" ;; esac
done
looks=0
while ! rm -rf "$1" && [ "$looks" -lt 50 ]; do sleep 0.1; looks=$((looks + 1)); done
"#;

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
        fs::write(self.note(pid), pid.to_string()).expect("the folder is ours");
    }

    pub fn forget(&self, pid: u32) {
        fs::remove_file(self.note(pid)).expect("it was adopted");
    }

    fn note(&self, pid: u32) -> PathBuf {
        self.path.join("pids").join(pid.to_string())
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
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
}
