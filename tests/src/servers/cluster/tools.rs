//! Where the programs of `tests/cluster` are.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::servers::setup;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| setup::path("cluster.sh", &[]));

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
