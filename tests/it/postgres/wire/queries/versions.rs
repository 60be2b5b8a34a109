//! The same on the other versions of PostgreSQL that set-up has put into the cache.

use std::path::PathBuf;
use std::process::Command;

use rowgate_standalone::postgres::binaries;
use rowgate_tests::servers::postgres::{BIN, major};

/// Starts this test program again, with the PostgreSQL in this folder.
fn pass_on(folder: &PathBuf) {
    let program = std::env::current_exe().expect("a running test has a path");
    let mut command = Command::new(program);
    command.args(["wire::queries::persistence", "wire::queries::endings", "sql::escapes"]).env(BIN, folder);
    let output = command.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {printed}", folder.display());
    assert!(!printed.contains(" 0 passed"), "{printed}");
}

#[test]
fn the_other_versions_in_the_cache_hold_as_well() {
    let cached = std::fs::read_dir(binaries::cache()).into_iter().flatten().flatten();
    let folders = cached.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let version = name.strip_prefix("postgres-").and_then(|rest| rest.split('.').next()?.parse().ok());
        version.is_some_and(|version: u32| version != major()) && path.join("bin/postgres").exists()
    });
    for folder in folders {
        pass_on(&folder.join("bin"));
    }
}
