//! Writing a private file in one step, so that no reader ever sees half of it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::source::SourceError;

/// Makes `path` hold `bytes`, mode 0600, in folders of mode 0700: a file beside it is written, synced and renamed.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), SourceError> {
    let done = write_beside(path, bytes, true).and_then(|()| File::open(parent(path)?)?.sync_all());
    done.map_err(|source| SourceError::Unwritable { path: path.to_owned(), source })
}

/// As [`replace`], for what is written again after a power failure: thousands of syncs take their time.
pub(super) fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<(), SourceError> {
    write_beside(path, bytes, false)
        .map_err(|source| SourceError::Unwritable { path: path.to_owned(), source })
}

/// Removes `path`; one that is not there is no error.
pub(super) fn remove(path: &Path) -> Result<(), SourceError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(SourceError::Unwritable { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("it has no folder"))
}

fn write_beside(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let dir = parent(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = dir.join(name);
    // One that a crash left behind may have another mode.
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    if sync {
        file.sync_all()?;
    }
    fs::rename(&beside, path)
}
