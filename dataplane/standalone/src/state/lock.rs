//! A lock that lets one process at a time use a state folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// Locks the folder until it is dropped; the kernel releases the lock however the process ends.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "the state folder {} is in use by another standalone Rowgate (process {holder}); stop that process, or name another \
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

/// Locks `state`; the error names the process that holds the lock.
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
    fn the_error_names_the_holder_until_the_lock_is_released() {
        let state = tempfile::tempdir().expect("a folder");
        let first = take(state.path()).expect("the folder is not locked");
        let message = take(state.path()).expect_err("the first holds it").to_string();
        assert!(message.contains(&format!("(process {})", std::process::id())), "{message}");
        drop(first);
        take(state.path()).expect("the lock is released");
    }
}
