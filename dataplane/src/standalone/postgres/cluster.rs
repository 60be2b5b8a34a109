//! `initdb`, once, whole or not at all.

use std::fs;
use std::os::unix::fs::lchown;
use std::path::Path;

use rowgate_core::derive::Password;

use super::binaries::Binaries;
use super::place::Place;
use super::{PostgresError, SUPERUSER, io_error};
use crate::standalone::roots::write_private;

/// Every connection comes over the private socket and proves its password.
const HBA: &str = "# Written by Rowgate: there is no TCP, and local connections are not trusted.\n\
                   local all all scram-sha-256\n";

pub(super) fn make_if_absent(
    place: &Place,
    binaries: &Binaries,
    password: &Password,
    progress: &(dyn Fn(String) + Send + Sync),
) -> Result<(), PostgresError> {
    let data = place.data();
    if data.is_dir() {
        return same_version(&data, binaries);
    }
    progress(format!("initialising PostgreSQL {} in {}", binaries.version.text, data.display()));

    let draft = place.home.join("data.new");
    if draft.is_dir() {
        fs::remove_dir_all(&draft).map_err(|source| io_error("remove", &draft, source))?;
    }
    let password_file = place.home.join("password");
    write_private(&password_file, password.reveal())
        .and_then(|()| {
            place.user.map_or(Ok(()), |user| lchown(&password_file, Some(user.uid), Some(user.gid)))
        })
        .map_err(|source| io_error("write", &password_file, source))?;

    let mut command = place.command(&binaries.bin.join("initdb"));
    command.arg("--pgdata").arg(&draft).arg("--username").arg(SUPERUSER).arg("--pwfile").arg(&password_file);
    command.args(["--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions"]);
    // The same order of texts on every machine, that of the code points; and letters beyond ASCII have a lower case. 16 has
    // no locales of its own: of the system's it takes what a letter is, and nothing else.
    if 17 <= binaries.version.major {
        command.args(["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]);
    } else {
        let letters = if cfg!(target_os = "macos") { "UTF-8" } else { "C.UTF-8" };
        command.args(["--locale-provider=libc", "--locale=C", &format!("--lc-ctype={letters}")]);
    }
    let output = command.output();
    let _gone = fs::remove_file(&password_file);
    let output = output.map_err(|source| io_error("run initdb in", &binaries.bin, source))?;
    if !output.status.success() {
        return Err(PostgresError::Initdb {
            path: draft,
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    let hba = draft.join("pg_hba.conf");
    fs::write(&hba, HBA).map_err(|source| io_error("write", &hba, source))?;
    fs::rename(&draft, &data).map_err(|source| io_error("rename", &draft, source))
}

fn same_version(data: &Path, binaries: &Binaries) -> Result<(), PostgresError> {
    let path = data.join("PG_VERSION");
    let text = fs::read_to_string(&path).map_err(|source| io_error("read", &path, source))?;
    if text.trim() == binaries.version.major.to_string() {
        return Ok(());
    }
    Err(PostgresError::OtherVersion {
        path: data.to_owned(),
        data: text.trim().to_owned(),
        found: binaries.version.text.clone(),
    })
}
