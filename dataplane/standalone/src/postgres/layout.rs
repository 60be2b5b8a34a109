//! The folders of the cluster and the user that runs it. PostgreSQL refuses to run as root; under root, standalone chooses an
//! unprivileged user and folders that this user can reach.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, DirBuilder, Metadata};
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{User, geteuid};

use super::binaries::Binaries;

/// For data and binaries that the unprivileged user could not reach where they are.
const REACHABLE: &str = "/var/lib/rowgate";

/// The file in the state folder that holds the cluster's path when the cluster is elsewhere.
const NOTE: &str = "postgres.elsewhere";

/// Why the folders could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    #[error(
        "PostgreSQL refuses to run as root, and this system has no user `postgres` or `nobody` to run it; start standalone as \
         another user"
    )]
    NoUser,
    #[error("cannot create the folder {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} belongs to another user; remove it", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "the database of this state folder is in {}, which no longer exists; restore it, or start with an empty state \
         folder (--state)",
        path.display()
    )]
    Gone { path: PathBuf },
    #[error("cannot copy PostgreSQL from {} to {}", from.display(), to.display())]
    Copy { from: PathBuf, to: PathBuf },
}

/// The user that runs PostgreSQL under root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unprivileged {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The folders and the user of one cluster.
#[derive(Debug)]
pub(super) struct Layout {
    /// Holds `data`; owned by the server's user, with mode 0700.
    pub(super) home: PathBuf,
    pub(super) log: PathBuf,
    pub(super) user: Option<Unprivileged>,
}

impl Layout {
    pub(super) fn of(state: &Path, progress: &(dyn Fn(String) + Send + Sync)) -> Result<Layout, LayoutError> {
        let user = unprivileged()?;
        let home = home(state, user, progress)?;
        own_folder(&home, user)?;
        Ok(Layout { home, log: state.join("postgres.log"), user })
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// A short private folder for the socket, whose path may have 108 bytes on Linux and 104 on macOS.
    pub(super) fn socket(&self) -> Result<PathBuf, LayoutError> {
        let mut hasher = DefaultHasher::new();
        self.home.hash(&mut hasher);
        let name = format!("rowgate-{:016x}", hasher.finish());
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let parent = runtime
            .filter(|folder| self.user.is_none() && folder.is_dir() && folder.as_os_str().len() < 50)
            .unwrap_or_else(|| PathBuf::from("/tmp"));
        let folder = parent.join(name);
        own_folder(&folder, self.user)?;
        Ok(folder)
    }

    /// The same binaries, copied to a folder that the server's user can reach if necessary.
    pub(super) fn executable(
        &self,
        binaries: Binaries,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Binaries, LayoutError> {
        let Some(user) = self.user else { return Ok(binaries) };
        if can_reach(&binaries.bin, user) {
            return Ok(binaries);
        }
        // the whole installation: the programs expect `lib` and `share` beside `bin`
        let from = binaries.bin.parent().unwrap_or(&binaries.bin).to_owned();
        let to = Path::new(REACHABLE).join(format!("postgres-{}", binaries.fingerprint()));
        if !to.join("bin/postgres").exists() {
            progress(format!(
                "copying PostgreSQL to {}, where an unprivileged user can run it",
                to.display()
            ));
            copy_folder(&from, &to)?;
        }
        Ok(Binaries { bin: to.join("bin"), ..binaries })
    }

    /// A program that runs as the server's user, without the PostgreSQL variables of the environment.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PG") || name.starts_with("LC_")) {
                command.env_remove(name);
            }
        }
        // that user may not be able to reach the current folder
        command.current_dir("/").env("LC_ALL", "C");
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }
}

fn unprivileged() -> Result<Option<Unprivileged>, LayoutError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let user = ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| User::from_name(name).ok().flatten())
        .ok_or(LayoutError::NoUser)?;
    Ok(Some(Unprivileged { uid: user.uid.as_raw(), gid: user.gid.as_raw() }))
}

/// `<state>/postgres`, or a folder elsewhere if the server's user cannot reach it. The choice is recorded: a later change of
/// the parents' modes must not make the data disappear.
fn home(
    state: &Path,
    user: Option<Unprivileged>,
    progress: &(dyn Fn(String) + Send + Sync),
) -> Result<PathBuf, LayoutError> {
    if let Some(path) = elsewhere(state) {
        return if path.is_dir() { Ok(path) } else { Err(LayoutError::Gone { path }) };
    }
    let (note, inside) = (state.join(NOTE), state.join("postgres"));
    match user {
        Some(user) if !inside.is_dir() && !can_reach(state, user) => {
            let path = Path::new(REACHABLE).join(format!("{:016x}", rand::random::<u64>()));
            progress(format!(
                "storing the database in {}: PostgreSQL runs as an unprivileged user, who cannot reach {}",
                path.display(),
                state.display()
            ));
            fs::create_dir_all(&path).map_err(|source| LayoutError::Folder { path: path.clone(), source })?;
            fs::write(&note, format!("{}\n", path.display()))
                .map_err(|source| LayoutError::Folder { path: note, source })?;
            Ok(path)
        }
        _ => Ok(inside),
    }
}

/// The recorded choice.
fn elsewhere(state: &Path) -> Option<PathBuf> {
    fs::read_to_string(state.join(NOTE)).ok().map(|text| PathBuf::from(text.trim()))
}

/// The data folder of an existing cluster.
pub(super) fn data(state: &Path) -> PathBuf {
    elsewhere(state).unwrap_or_else(|| state.join("postgres")).join("data")
}

/// Creates `path` with mode 0700 for the server's user, or checks that it is such a folder.
fn own_folder(path: &Path, user: Option<Unprivileged>) -> Result<(), LayoutError> {
    let failed = |source| LayoutError::Folder { path: path.to_owned(), source };
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // in /tmp another user may have created this name first, possibly as a link
            let found = fs::symlink_metadata(path).map_err(failed)?;
            let own = user.map_or_else(|| geteuid().as_raw(), |user| user.uid);
            if !found.is_dir() || (found.uid() != own && found.uid() != geteuid().as_raw()) {
                return Err(LayoutError::Foreign { path: path.to_owned() });
            }
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    if let Some(user) = user {
        std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid)).map_err(failed)?;
    }
    Ok(())
}

/// Whether `user` may enter `path` and every folder above it.
fn can_reach(path: &Path, user: Unprivileged) -> bool {
    path.ancestors().all(|folder| fs::metadata(folder).is_ok_and(|metadata| may_enter(&metadata, user)))
}

fn may_enter(metadata: &Metadata, user: Unprivileged) -> bool {
    let bit = if metadata.uid() == user.uid {
        0o100
    } else if metadata.gid() == user.gid {
        0o010
    } else {
        0o001
    };
    metadata.mode() & bit != 0
}

/// Copies a folder with its links, completely or not at all.
fn copy_folder(from: &Path, to: &Path) -> Result<(), LayoutError> {
    let failed = || LayoutError::Copy { from: from.to_owned(), to: to.to_owned() };
    let draft = to.with_added_extension(std::process::id().to_string());
    fs::create_dir_all(REACHABLE).map_err(|_| failed())?;
    let copied = Command::new("cp").arg("-R").arg(from).arg(&draft).status();
    if !copied.is_ok_and(|status| status.success()) {
        return Err(failed());
    }
    // another process may have been first; its copy serves as well
    match fs::rename(&draft, to) {
        Err(_) if to.join("bin/postgres").exists() => fs::remove_dir_all(&draft).map_err(|_| failed()),
        Err(_) => Err(failed()),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_below_a_private_one_is_out_of_reach() {
        let user = Unprivileged { uid: 4_000_000, gid: 4_000_000 };
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();

        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(can_reach(&inner, user));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!can_reach(&inner, user));
    }

    #[test]
    fn a_socket_folder_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(matches!(own_folder(&link, None), Err(LayoutError::Foreign { .. })));
    }
}
