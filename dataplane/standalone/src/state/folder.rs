//! Creates the state folder, with a mode that keeps secrets private and lets an unprivileged PostgreSQL in.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// Creates `state` if it does not exist, and returns its absolute path.
pub(crate) fn prepare(state: &Path) -> io::Result<PathBuf> {
    // Under root, PostgreSQL runs as another user, who must be able to enter; every secret inside has mode 0600.
    let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
    if !state.is_dir() {
        if let Some(parent) = state.parent() {
            fs::create_dir_all(parent)?;
        }
        DirBuilder::new().mode(mode).create(state)?;
    }
    state.canonicalize()
}
