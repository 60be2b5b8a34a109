//! What the scripts of `tests/setup` put into the cache, and where.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a script of `tests/setup`, which downloads or builds what is not there yet, and gives the path that it prints.
#[must_use]
pub fn path(script: &str, arguments: &[&str]) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("setup").join(script);
    let output = Command::new(file).args(arguments).stderr(Stdio::inherit()).output().expect("bash runs");
    assert!(output.status.success(), "tests/setup/{script} failed; what it said stands above");
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
}
