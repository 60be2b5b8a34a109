//! The file of a download that is not complete: `FILE.part`, and beside it the id of the job whose bytes it has.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Bytes from the beginning of the file, without a gap.
#[derive(Debug)]
pub(super) struct Part {
    /// `None`: they go to their target at once.
    names: Option<Names>,
    /// What is written to, for messages.
    path: PathBuf,
    file: File,
    len: u64,
    is_done: bool,
}

#[derive(Debug)]
struct Names {
    target: PathBuf,
    marker: PathBuf,
}

/// Standard output, as other programs name it.
const STDOUT: &str = "-";

impl Part {
    fn at_once(path: PathBuf, file: File) -> Part {
        Part { names: None, path, file, len: 0, is_done: false }
    }

    /// Keeps the bytes of `resumed`, if they are that job's; other bytes are dropped.
    pub(super) fn open(target: &Path, resumed: Option<&str>) -> Result<Part, Failure> {
        if [STDOUT, "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"].iter().any(|it| target == Path::new(it)) {
            let stdout = std::io::stdout().as_fd().try_clone_to_owned();
            let file = File::from(stdout.map_err(|error| failed(target, &error))?);
            return Ok(Part::at_once("standard output".into(), file));
        }
        match fs::metadata(target) {
            Ok(it) if it.is_dir() => {
                return Err(Failure::Usage(format!("{} is a folder; name a file", target.display())));
            }
            // a device or a pipe, which no file may replace
            Ok(it) if !it.is_file() => {
                let file = OpenOptions::new().write(true).open(target);
                return Ok(Part::at_once(target.to_owned(), file.map_err(|error| failed(target, &error))?));
            }
            _ => {}
        }
        let target = followed(target)?;
        let beside = |ending: &str| {
            let mut name = target.as_os_str().to_owned();
            name.push(OsStr::new(ending));
            PathBuf::from(name)
        };
        let (path, marker) = (beside(".part"), beside(".part.job"));
        let is_ours =
            resumed.is_some_and(|id| fs::read_to_string(&marker).is_ok_and(|text| text.trim() == id));
        let file = OpenOptions::new().write(true).create(true).truncate(!is_ours).open(&path);
        let opened = file.and_then(|mut file| {
            // who may not read what is replaced may not read what replaces it
            if let Ok(replaced) = fs::metadata(&target) {
                file.set_permissions(fs::Permissions::from_mode(replaced.permissions().mode() | 0o200))?;
            }
            let len = file.seek(SeekFrom::End(0))?;
            Ok((file, len))
        });
        let (file, len) = opened.map_err(|error| failed(&path, &error))?;
        Ok(Part { names: Some(Names { target, marker }), path, file, len, is_done: false })
    }

    /// Notes whose bytes these are.
    pub(super) fn belongs_to(&mut self, id: &str) -> Result<(), Failure> {
        let Some(Names { marker, .. }) = &self.names else { return Ok(()) };
        fs::write(marker, format!("{id}\n")).map_err(|error| failed(marker, &error))
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| match &self.names {
            // whoever reads a pipe may have enough
            None if error.kind() == std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => failed(&self.path, &error),
        })?;
        self.len += u64::try_from(bytes.len()).expect("a piece fits into memory");
        Ok(())
    }

    pub(super) fn clear(&mut self) -> Result<(), Failure> {
        if self.names.is_none() && self.len != 0 {
            let what =
                format!("the download has to begin again, and {} has a part of it", self.path.display());
            return Err(Failure::Unavailable(what));
        }
        if self.names.is_none() {
            return Ok(());
        }
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        self.len = 0;
        cleared.map_err(|error| failed(&self.path, &error))
    }

    /// The whole file takes its name.
    pub(super) fn finish(mut self) -> Result<u64, Failure> {
        if let Some(Names { target, marker }) = &self.names {
            let done = self.file.sync_all().and_then(|()| fs::rename(&self.path, target));
            done.map_err(|error| failed(target, &error))?;
            let _may_be_missing = fs::remove_file(marker);
        }
        self.is_done = true;
        Ok(self.len)
    }
}

impl Drop for Part {
    /// Without any bytes there is nothing to go on with.
    fn drop(&mut self) {
        if let Some(Names { marker, .. }) = &self.names
            && !self.is_done
            && self.len == 0
        {
            let _may_be_missing = (fs::remove_file(&self.path), fs::remove_file(marker));
        }
    }
}

/// Where a link leads.
fn followed(target: &Path) -> Result<PathBuf, Failure> {
    match fs::symlink_metadata(target) {
        Ok(it) if it.is_symlink() => fs::canonicalize(target).map_err(|error| failed(target, &error)),
        _ => Ok(target.to_owned()),
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Local(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_part_goes_on_for_its_own_job_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("t.csv");
        let mut part = Part::open(&target, None).expect("a part");
        part.belongs_to("j1").expect("noted");
        part.append(b"abc").expect("written");
        drop(part);
        assert_eq!(names(folder.path()), ["t.csv.part", "t.csv.part.job"]);
        let mut part = Part::open(&target, Some("j1")).expect("a part");
        assert_eq!(part.len(), 3);
        part.append(b"d").expect("written");
        drop(part);
        assert_eq!(fs::read(folder.path().join("t.csv.part")).expect("a file"), b"abcd");
        assert_eq!(Part::open(&target, Some("j2")).expect("a part").len(), 0);
    }

    #[test]
    fn a_finished_file_stands_alone_and_replaces_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("t.csv");
        fs::write(&target, "old").expect("written");
        let mut part = Part::open(&target, None).expect("a part");
        part.belongs_to("j").expect("noted");
        part.append(b"wrong").expect("written");
        part.clear().expect("cleared");
        part.append(b"new").expect("written");
        assert_eq!(part.finish().expect("finished"), 3);
        assert_eq!(
            (names(folder.path()), fs::read(&target).expect("a file")),
            (vec!["t.csv".into()], b"new".into())
        );
    }

    #[test]
    fn what_is_no_file_is_not_replaced_and_a_link_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("t.csv"), folder.path().join("link.csv"));
        fs::write(&file, "old").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("changed");
        std::os::unix::fs::symlink("t.csv", &link).expect("a link");
        let mut part = Part::open(&link, None).expect("a part");
        part.append(b"new").expect("written");
        part.finish().expect("finished");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read(&file).expect("a file"), b"new");
        assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        std::os::unix::fs::symlink("nowhere/x", folder.path().join("dangling")).expect("a link");
        Part::open(&folder.path().join("dangling"), None).expect_err("nowhere");

        let mut part = Part::open(Path::new("/dev/null"), None).expect("a device");
        part.append(b"new").expect("written");
        part.clear().expect_err("what was read cannot be taken back");
        assert_eq!(part.finish().expect("finished"), 3);
        assert!(!fs::metadata("/dev/null").expect("a device").is_file());
    }

    #[test]
    fn nothing_is_left_of_a_job_that_did_not_begin() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("t.csv");
        drop(Part::open(&target, None).expect("a part"));
        assert_eq!(names(folder.path()), Vec::<String>::new());
        Part::open(folder.path(), None).expect_err("a folder");
        Part::open(&folder.path().join("no/t.csv"), None).expect_err("no folder");
    }
}
