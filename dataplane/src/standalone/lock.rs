//! One process for one state folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// Held while this value lives; the kernel gives it back when the process ends in whatever way.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another standalone Rowgate (process {holder}) uses the state folder {}; stop it, or give this one another \
         folder with --state",
        state.display()
    )]
    Held { holder: String, state: PathBuf },
    #[error("cannot lock {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Locks `state`, or says which process holds it.
pub fn take(state: &Path) -> Result<StateLock, LockError> {
    let path = state.join("lock");
    let failed = |source| LockError::Io { path: path.clone(), source };
    let mut file =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).map_err(failed)?.trim().to_owned();
            return Err(LockError::Held { holder, state: state.to_owned() });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(failed)?;
    Ok(StateLock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_the_folder_until_the_first_lets_go() {
        let state = tempfile::tempdir().expect("a folder");
        let first = take(state.path()).expect("nobody holds it");
        let message = take(state.path()).expect_err("the first holds it").to_string();
        assert!(message.contains(&format!("(process {})", std::process::id())), "{message}");
        drop(first);
        take(state.path()).expect("nobody holds it any more");
    }
}
