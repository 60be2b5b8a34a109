//! Files in a folder: `<id>.<fence>.part` is being written, `<id>.<fence>` is whole; anything else in the folder is left alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{Found, PART, parsed};

#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder where it is missing, readable for us alone.
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        // what cannot be written to is found out now, and not with the first job
        let probe = path.join(format!(".probe-{}", std::process::id()));
        File::create(&probe)?;
        fs::remove_file(&probe)?;
        Ok(Folder { path: path.to_owned() })
    }

    fn whole(&self, id: &str, fence: i32) -> PathBuf {
        self.path.join(format!("{id}.{fence}"))
    }

    fn part(&self, id: &str, fence: i32) -> PathBuf {
        self.path.join(format!("{id}.{fence}{PART}"))
    }

    /// An empty file to write to.
    pub(super) fn begin(&self, id: &str, fence: i32) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).open(self.part(id, fence))
    }

    /// The file is whole: from here on it can be given out. Returns its length.
    pub(super) fn finish(&self, id: &str, fence: i32, file: &File) -> io::Result<u64> {
        file.sync_all()?;
        fs::rename(self.part(id, fence), self.whole(id, fence))?;
        File::open(&self.path)?.sync_all()?;
        Ok(file.metadata()?.len())
    }

    /// Removes what an attempt has written, if it has.
    pub(super) fn remove(&self, id: &str, fence: i32) {
        for path in [self.part(id, fence), self.whole(id, fence)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, "a file of an export cannot be removed");
                }
                _ => {}
            }
        }
    }

    /// A whole file and its length. `None`: it is not there.
    pub(crate) fn read(&self, id: &str, fence: i32) -> io::Result<Option<(File, u64)>> {
        match File::open(self.whole(id, fence)) {
            Ok(file) => {
                let len = file.metadata()?.len();
                Ok(Some((file, len)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn list(&self) -> io::Result<Found> {
        let mut found = Found::default();
        for entry in fs::read_dir(&self.path)? {
            found.extend(entry?.file_name().to_str().and_then(parsed));
        }
        Ok(found)
    }
}

/// Whether the file was removed since it was opened.
pub(crate) fn is_removed(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const ID: &str = "00000000010000000000000000";

    #[test]
    fn a_file_is_read_once_it_is_whole_and_not_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Folder::open(&folder.path().join("new")).expect("a folder");
        let mut part = files.begin(ID, 1).expect("a part");
        part.write_all(b"abc").expect("written");
        assert!(files.read(ID, 1).expect("asked").is_none());
        assert_eq!(files.finish(ID, 1, &part).expect("whole"), 3);
        let (file, len) = files.read(ID, 1).expect("asked").expect("there");
        assert_eq!((len, is_removed(&file).expect("asked")), (3, false));
        assert!(files.read(ID, 2).expect("asked").is_none(), "another attempt's");
        files.remove(ID, 1);
        assert!(is_removed(&file).expect("asked") && files.read(ID, 1).expect("asked").is_none());
        files.remove(ID, 1);
    }

    #[test]
    fn files_of_others_are_not_listed() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Folder::open(folder.path()).expect("a folder");
        drop(files.begin(ID, 7).expect("a part"));
        for other in ["notes.txt", ".hidden", "a.1", &format!("{ID}.x"), ID, &format!("{ID}.1.tmp")] {
            File::create(folder.path().join(other)).expect("made");
        }
        assert_eq!(files.list().expect("listed"), Found::from([(ID.to_owned(), 7)]));
    }
}
