//! The address of the PostgreSQL that `--database-url` names, kept in the state folder for `psql`; neither the user nor the
//! password is kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::connect::tls::Tls;
use rowgate_program::tls;
use serde_json::{Value, json};

use super::roots::write_private;

/// The certificates that `sslrootcert` named, copied at the last start.
pub(crate) const AUTHORITY: &str = "database-ca.pem";

/// The file that holds the address.
pub(crate) fn file(state: &Path) -> PathBuf {
    state.join("database.json")
}

/// Writes the address; `None`: standalone runs the server, whose `postmaster.pid` says where it listens.
pub(crate) fn write(state: &Path, endpoint: Option<&Endpoint>) -> io::Result<()> {
    let note = match endpoint {
        None => {
            return match fs::remove_file(file(state)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        Some(Endpoint::Unix { directory, port }) => json!({ "host": directory, "port": port }),
        Some(Endpoint::Tcp { host, port, tls: Tls::Disable }) => {
            json!({ "host": host, "port": port, "tls": "disable" })
        }
        Some(Endpoint::Tcp { host, port, tls: Tls::VerifyFull(authorities) }) => {
            let pem = authorities.pem().map(String::from_utf8_lossy);
            if let Some(pem) = &pem {
                write_private(&state.join(AUTHORITY), pem)?;
            }
            json!({ "host": host, "port": port, "tls": "verify-full", "authority": pem.is_some() })
        }
    };
    write_private(&file(state), &format!("{note}\n"))
}

/// The address of the last start; `None`: standalone runs the server.
pub(crate) fn read(state: &Path) -> io::Result<Option<Endpoint>> {
    let text = match fs::read_to_string(file(state)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let note: Value = serde_json::from_str(&text).map_err(|_| bad("the file is not JSON".to_owned()))?;
    let (host, port) = (note["host"].as_str(), note["port"].as_u64().and_then(|port| port.try_into().ok()));
    let (Some(host), Some(port)) = (host, port) else {
        return Err(bad("the file names no host and port".to_owned()));
    };
    if host.starts_with('/') {
        return Ok(Some(Endpoint::Unix { directory: host.into(), port }));
    }
    let mode = tls::mode(note["tls"].as_str().unwrap_or_default()).map_err(bad)?;
    let authority = match note["authority"] == true {
        true => state.join(AUTHORITY).to_string_lossy().into_owned(),
        false => String::new(),
    };
    let tls = tls::of(mode, &authority).map_err(bad)?;
    Ok(Some(Endpoint::Tcp { host: host.to_owned(), port, tls }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back_until_standalone_runs_the_server() {
        let state = tempfile::tempdir().expect("a folder");
        assert_eq!(read(state.path()).expect("nothing is no error"), None);
        let tcp = |tls| Endpoint::Tcp { host: "db.internal".to_owned(), port: 6432, tls };
        for endpoint in [
            Endpoint::Unix { directory: "/run/postgresql".into(), port: 5433 },
            tcp(Tls::Disable),
            tcp(Tls::default()),
        ] {
            write(state.path(), Some(&endpoint)).expect("it is written");
            assert_eq!(read(state.path()).expect("it is read"), Some(endpoint));
        }
        write(state.path(), None).expect("it is removed");
        write(state.path(), None).expect("once is enough");
        assert_eq!(read(state.path()).expect("nothing is no error"), None);
        fs::write(file(state.path()), "{}").expect("the folder is ours");
        assert!(read(state.path()).is_err());
    }
}
