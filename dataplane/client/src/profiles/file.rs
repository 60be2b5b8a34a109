//! The file of profiles: JSON, for its owner alone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::key::Key;

/// The rights that others must not have.
const OF_OTHERS: u32 = 0o077;

/// All profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Profiles {
    /// The one that is taken where no other is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) profiles: BTreeMap<String, Profile>,
}

/// One server, and a key for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    /// The PEM file of a private authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
    pub(crate) key: Key,
}

/// `profiles.json` in `$XDG_CONFIG_HOME/rowgate`, or in `~/.config/rowgate`. `None` without either variable.
#[must_use]
pub(crate) fn path(config_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    // a relative path is to be ignored, says the XDG specification
    let config =
        config_home.filter(|path| path.is_absolute()).or_else(|| home.map(|home| home.join(".config")));
    Some(config?.join("rowgate").join("profiles.json"))
}

impl Profiles {
    /// No file is no profiles. A file that others may read is refused, because it holds keys.
    pub(crate) fn read(path: &Path) -> Result<Profiles, String> {
        let shown = path.display();
        let mode = match fs::metadata(path) {
            Ok(metadata) => metadata.mode() & 0o777,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Profiles::default()),
            Err(error) => return Err(format!("cannot read {shown}: {error}")),
        };
        if mode & OF_OTHERS != 0 {
            return Err(format!(
                "{shown} holds keys, and others may read or change it (mode {mode:03o}); run: chmod 600 '{shown}'"
            ));
        }
        let text = fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        // The text of serde's error could hold a part of a key.
        serde_json::from_slice(&text).map_err(|error| {
            format!("{shown} is not a file of profiles (line {}, column {})", error.line(), error.column())
        })
    }

    /// As [`Profiles::read`], while no other command changes them: until the lock is dropped.
    pub(crate) fn locked(path: &Path) -> Result<(Profiles, File), String> {
        let failed = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let folder = made(path).map_err(failed)?;
        let lock = File::open(folder).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok((Profiles::read(path)?, lock))
    }

    /// Replaces the file as a whole, with the mode 0600.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot write {}: {error}", path.display());
        made(path).map_err(failed)?;
        let draft = path.with_extension(format!("json.{}", std::process::id()));
        let written = write_new(&draft, self).and_then(|()| fs::rename(&draft, path));
        written.map_err(|error| {
            let _may_be_missing = fs::remove_file(&draft);
            failed(error)
        })
    }
}

/// The folder of the file, which is there from now on.
fn made(path: &Path) -> io::Result<&Path> {
    let folder = path.parent().expect("a file of profiles has a folder");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    Ok(folder)
}

fn write_new(path: &Path, profiles: &Profiles) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let text = serde_json::to_string_pretty(profiles).expect("profiles are texts");
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn some() -> Profiles {
        let key = Key::parse("shop:dlk_x").expect("a key");
        let profile = Profile { url: "http://127.0.0.1:8080".to_owned(), tenant: None, ca: None, key };
        Profiles {
            current: Some("shop".to_owned()),
            profiles: BTreeMap::from([("shop".to_owned(), profile)]),
        }
    }

    #[test]
    fn what_is_written_is_read_and_is_for_its_owner_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let path = path(Some(home.path().to_owned()), None).expect("a path");
        assert_eq!(Profiles::read(&path), Ok(Profiles::default()));
        some().write(&path).expect("written");
        some().write(&path).expect("replaced");
        assert_eq!(Profiles::read(&path), Ok(some()));
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("a folder").count(), 1);
    }

    #[test]
    fn of_several_commands_that_change_it_each_one_does() {
        let home = tempfile::tempdir().expect("a folder");
        let path = path(Some(home.path().to_owned()), None).expect("a path");
        std::thread::scope(|scope| {
            for i in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let (mut profiles, _lock) = Profiles::locked(path).expect("locked");
                    profiles.profiles.extend(some().profiles.into_values().map(|it| (format!("p{i}"), it)));
                    profiles.write(path).expect("written");
                });
            }
        });
        assert_eq!(Profiles::read(&path).expect("a file").profiles.len(), 8);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let home = tempfile::tempdir().expect("a folder");
        let path = path(None, Some(home.path().to_owned())).expect("a path");
        some().write(&path).expect("written");
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
            let why = Profiles::read(&path).expect_err("others read it");
            assert!(why.contains(&format!("{mode:03o}")) && why.contains("chmod 600"), "{why}");
        }
    }

    #[test]
    fn a_broken_file_is_named_and_not_shown() {
        let home = tempfile::tempdir().expect("a folder");
        let path = path(Some(home.path().to_owned()), None).expect("a path");
        some().write(&path).expect("written");
        fs::write(&path, "{\"profiles\": {\"shop\": \"dlk_secret\"}}").expect("written");
        let why = Profiles::read(&path).expect_err("it is broken");
        assert!(why.contains("line 1") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn a_relative_config_home_is_ignored() {
        let path = |config: &str, home: &str| path(Some(config.into()), Some(home.into()));
        assert_eq!(path("/c", "/h"), Some("/c/rowgate/profiles.json".into()));
        assert_eq!(path("", "/h"), Some("/h/.config/rowgate/profiles.json".into()));
    }
}
