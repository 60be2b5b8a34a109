//! A temporary folder with everything that was started in it. Both go when it is dropped, and also when the test
//! process is killed: a small shell process holds the other end of a pipe and cleans up when the pipe closes. Before, it
//! is searched for secrets, and the test fails where one stands in a log (`sweep`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::sweep;

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
        let folder = tempfile::Builder::new().prefix("rowgate-test-").tempdir().expect("a temporary folder");
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
