//! The state folder: made with modes that keep secrets private and let an unprivileged PostgreSQL in.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// Makes `state` if it is absent, and gives its absolute path.
pub(super) fn prepare(state: &Path) -> io::Result<PathBuf> {
    // As root, PostgreSQL runs as somebody else, who must pass through; every secret inside is of mode 0600.
    let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
    if !state.is_dir() {
        if let Some(parent) = state.parent() {
            fs::create_dir_all(parent)?;
        }
        DirBuilder::new().mode(mode).create(state)?;
    }
    state.canonicalize()
}
