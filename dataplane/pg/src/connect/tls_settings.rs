//! The settings of TLS to PostgreSQL, for flags and for URLs.

use std::path::Path;

use super::login::Endpoint;
use super::tls::{Authorities, Tls};

/// The supported modes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    Disable,
    #[default]
    VerifyFull,
}

/// Reads a mode. libpq's weaker modes are refused: they do not prove that the server is the right one.
pub fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "disable" => Ok(Mode::Disable),
        "verify-full" => Ok(Mode::VerifyFull),
        "allow" | "prefer" | "require" | "verify-ca" => {
            Err("does not verify the server; give verify-full".to_owned())
        }
        _ => Err("is not a TLS mode; give verify-full or disable".to_owned()),
    }
}

/// The mode with the authorities in the file `ca`; the empty path stands for the system's.
pub fn of(mode: Mode, ca: &str) -> Result<Tls, String> {
    match (mode, ca) {
        (Mode::Disable, "") => Ok(Tls::Disable),
        (Mode::Disable, _) => Err("has no effect while TLS is disabled; remove one of the two".to_owned()),
        (Mode::VerifyFull, "") => Ok(Tls::VerifyFull(Authorities::system())),
        (Mode::VerifyFull, path) => Authorities::from_file(Path::new(path)).map(Tls::VerifyFull),
    }
}

/// The endpoint with this TLS. Only connections that stay on this machine may do without.
pub fn with(place: Endpoint, tls: Tls) -> Result<Endpoint, String> {
    match place {
        Endpoint::Tcp { host, .. } if tls == Tls::Disable && !is_here(&host) => {
            Err("is another machine, but TLS is disabled; disable is allowed for localhost, 127.0.0.1 and ::1 only"
                .to_owned())
        }
        Endpoint::Tcp { host, port, .. } => Ok(Endpoint::Tcp { host, port, tls }),
        socket @ Endpoint::Unix { .. } => Ok(socket),
    }
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, tls: Tls) -> Endpoint {
        Endpoint::Tcp { host: host.to_owned(), port: 5432, tls }
    }

    #[test]
    fn there_is_nothing_between_verified_and_none_at_all() {
        assert_eq!(mode("verify-full"), Ok(Mode::VerifyFull));
        assert_eq!(mode("disable"), Ok(Mode::Disable));
        for weak in ["prefer", "require", "verify-ca", "allow", "", "VERIFY-FULL"] {
            assert!(mode(weak).is_err(), "{weak}");
        }
        assert!(of(Mode::Disable, "/ca.pem").is_err());
        assert!(of(Mode::VerifyFull, "/does/not/exist").is_err());
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        for text in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(&file, text).expect("a file");
            assert!(of(Mode::VerifyFull, file.to_str().expect("UTF-8")).is_err(), "{text}");
        }
    }

    #[test]
    fn another_machine_is_never_met_in_clear_text() {
        for here in ["localhost", "127.0.0.1", "127.1.2.3", "::1"] {
            assert_eq!(with(tcp(here, Tls::default()), Tls::Disable), Ok(tcp(here, Tls::Disable)), "{here}");
        }
        for elsewhere in ["db", "10.0.0.1", "localhost.example", "::2", "0.0.0.0"] {
            assert!(with(tcp(elsewhere, Tls::default()), Tls::Disable).is_err(), "{elsewhere}");
            assert!(with(tcp(elsewhere, Tls::Disable), Tls::default()).is_ok(), "{elsewhere}");
        }
        let socket = Endpoint::Unix { directory: "/run".into(), port: 5432 };
        assert_eq!(with(socket.clone(), Tls::Disable), Ok(socket));
    }
}
