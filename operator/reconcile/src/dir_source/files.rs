//! Writing a private file in one step, so that nobody ever reads half of it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::source::SourceError;

/// Makes `path` hold `bytes`, mode 0600, in folders of mode 0700: a file beside it is written, synced and renamed.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), SourceError> {
    try_replace(path, bytes).map_err(|source| SourceError::Unwritable { path: path.to_owned(), source })
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

fn try_replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = dir.join(name);
    // One that a crash left behind may have another mode.
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(dir)?.sync_all()
}
