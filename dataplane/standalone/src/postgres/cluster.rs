//! Runs `initdb` once, completely or not at all.

use std::fs;
use std::os::unix::fs::lchown;
use std::path::Path;

use rowgate_core::derive::Password;

use super::binaries::Binaries;
use super::layout::Layout;
use super::{PostgresError, SUPERUSER, io_error};
use crate::state::roots::write_private;

/// Every connection uses the private socket and proves its password.
const HBA: &str = "# Written by Rowgate: there is no TCP, and local connections are not trusted either.\n\
                   local all all scram-sha-256\n";

pub(super) fn make_if_absent(
    layout: &Layout,
    binaries: &Binaries,
    password: &Password,
    progress: &(dyn Fn(String) + Send + Sync),
) -> Result<(), PostgresError> {
    let data = layout.data();
    if data.is_dir() {
        return same_version(&data, binaries);
    }
    progress(format!("initialising PostgreSQL {} in {}", binaries.version.text, data.display()));

    let draft = layout.home.join("data.new");
    if draft.is_dir() {
        fs::remove_dir_all(&draft).map_err(|source| io_error("remove", &draft, source))?;
    }
    let password_file = layout.home.join("password");
    write_private(&password_file, password.reveal())
        .and_then(|()| {
            layout.user.map_or(Ok(()), |user| lchown(&password_file, Some(user.uid), Some(user.gid)))
        })
        .map_err(|source| io_error("write", &password_file, source))?;

    let mut command = layout.command(&binaries.bin.join("initdb"));
    command.arg("--pgdata").arg(&draft).arg("--username").arg(SUPERUSER).arg("--pwfile").arg(&password_file);
    command.args(["--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions"]);
    // Text sorts by code point on every machine, and letters beyond ASCII have a lower case. PostgreSQL 16 has no builtin
    // locales: it takes only the classification of letters from the system's.
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
