//! Where the programs of `tests/cluster` are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("setup/cluster.sh");
    let output = Command::new(script).stderr(Stdio::inherit()).output().expect("bash runs");
    assert!(output.status.success(), "tests/setup/cluster.sh failed; what it said stands above");
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
});

/// The folder with all of them.
#[must_use]
pub fn tools() -> &'static Path {
    &FOLDER
}

/// Go's collector begins when the heap has grown by so many percent: these heaps are small and live for one run.
pub(super) const HEAP: (&str, &str) = ("GOGC", "800");

/// A program that a module of `tests/cluster` provides, such as `kubectl`; builds them all the first time.
#[must_use]
pub fn tool(name: &str) -> PathBuf {
    FOLDER.join(name)
}
