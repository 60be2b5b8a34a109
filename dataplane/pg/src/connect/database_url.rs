//! The address of a running PostgreSQL with an administrator's login there: `--database-url`, and `url` of a Secret.

use std::borrow::Cow;
use std::path::PathBuf;

use rowgate_core::derive::Password;
use rowgate_core::percent;

use super::login::{Endpoint, Login};
use super::tls::{Authorities, Tls};
use super::tls_settings as tls;

/// Why a text is no URL of a PostgreSQL. The text itself may hold a password and is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("does not start with postgres://")]
    Scheme,
    #[error("names no user before the `@`")]
    NoUser,
    #[error("names no password (user:password@host): Rowgate logs in with SCRAM only")]
    NoPassword,
    #[error("names no host; for a socket write postgres://user:password@/postgres?host=/folder")]
    NoHost,
    #[error("has no port number between the last colon and the path")]
    Port,
    #[error(
        "contains a percent sign that is not followed by two hexadecimal digits, or bytes that are not UTF-8"
    )]
    Encoding,
    #[error("has an sslmode or sslrootcert that does not work: {0}")]
    Tls(String),
    #[error("has the parameter sslrootcert, a file; put the PEM of the authority under ca.crt of the Secret")]
    FileInSecret,
    #[error("names the folder of a socket; name a host")]
    SocketInSecret,
    #[error("stands beside a ca.crt that {0}")]
    Authorities(String),
    #[error("has the parameter {0:?}; only `host`, `port`, `sslmode` and `sslrootcert` are known")]
    Parameter(String),
}

/// Reads `postgres://user:password@host:5432/database` or `postgres://user:password@/database?host=/folder`, with
/// `sslmode` (`verify-full` where it is left out) and `sslrootcert`.
pub fn parse(text: &str) -> Result<Login, BadUrl> {
    read(text, None)
}

/// As [`parse`], of a Secret: files are the reader's and nobody else's, so that the authorities are given as PEM, and a socket or
/// `sslrootcert` is refused. `authorities`: `None` for those of the system.
pub fn parse_in_secret(text: &str, authorities: Option<&str>) -> Result<Login, BadUrl> {
    read(text, Some(authorities))
}

fn read(text: &str, secret: Option<Option<&str>>) -> Result<Login, BadUrl> {
    let rest = text
        .strip_prefix("postgres://")
        .or_else(|| text.strip_prefix("postgresql://"))
        .ok_or(BadUrl::Scheme)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = authority.rsplit_once('@').ok_or(BadUrl::NoUser)?;
    let (role, password) = user.split_once(':').ok_or(BadUrl::NoPassword)?;
    if role.is_empty() {
        return Err(BadUrl::NoUser);
    }
    if password.is_empty() {
        return Err(BadUrl::NoPassword);
    }
    let (mut host, mut port) = host_and_port(place)?;
    let (mut mode, mut ca) = (tls::Mode::default(), String::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "host" => host = decoded(value)?,
            "port" => port = value.parse().map_err(|_| BadUrl::Port)?,
            "sslmode" => mode = tls::mode(value).map_err(|why| bad_tls(value, &why))?,
            "sslrootcert" if secret.is_some() => return Err(BadUrl::FileInSecret),
            "sslrootcert" => ca = decoded(value)?,
            _ => return Err(BadUrl::Parameter(name.to_owned())),
        }
    }
    if host.is_empty() {
        return Err(BadUrl::NoHost);
    }
    let tls = match (mode, secret.flatten()) {
        (tls::Mode::VerifyFull, Some(pem)) => {
            Authorities::from_pem(pem.as_bytes()).map(Tls::VerifyFull).map_err(BadUrl::Authorities)?
        }
        _ => tls::of(mode, &ca).map_err(|why| bad_tls(&ca, &why))?,
    };
    let endpoint = match host.starts_with('/') {
        true if secret.is_some() => return Err(BadUrl::SocketInSecret),
        true => Endpoint::Unix { directory: PathBuf::from(host), port },
        false => {
            let place = Endpoint::Tcp { host: host.clone(), port, tls: tls.clone() };
            tls::with(place, tls).map_err(|why| bad_tls(&host, &why))?
        }
    };
    let database = if database.is_empty() { "postgres".to_owned() } else { decoded(database)? };
    Ok(Login { endpoint, database, role: decoded(role)?, password: Password::given(decoded(password)?) })
}

fn bad_tls(value: &str, why: &str) -> BadUrl {
    BadUrl::Tls(format!("{value:?} {why}"))
}

fn host_and_port(place: &str) -> Result<(String, u16), BadUrl> {
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| BadUrl::Port)?),
        _ => (place, 5432),
    };
    Ok((decoded(host.trim_start_matches('[').trim_end_matches(']'))?, port))
}

fn decoded(text: &str) -> Result<String, BadUrl> {
    percent::decode(text).map(Cow::into_owned).map_err(|_| BadUrl::Encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_login() {
        for (text, expected) in [
            ("postgres://admin:s3cret@db.internal:6432/app", "admin s3cret db.internal:6432 app"),
            ("postgresql://admin:a%40b%2Fc@db", "admin a@b/c db:5432 postgres"),
            ("postgres://admin:x@[::1]:6/", "admin x ::1:6 postgres"),
            ("postgres://a:x@/app?host=%2Frun%2Fpg&port=7", "a x /run/pg:7 app"),
            ("postgres://a:x@h/?sslmode=verify-full", "a x h:5432 postgres"),
            ("postgres://a:x@localhost/?sslmode=disable", "a x localhost:5432 postgres"),
        ] {
            let login = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let seen =
                format!("{} {} {} {}", login.role, login.password.reveal(), login.endpoint, login.database);
            assert_eq!(seen, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_without_repeating_it() {
        for (text, expected) in [
            ("mysql://a:b@c", BadUrl::Scheme),
            ("postgres://db/app", BadUrl::NoUser),
            ("postgres://:b@db", BadUrl::NoUser),
            ("postgres://a@db", BadUrl::NoPassword),
            ("postgres://a:b@/app", BadUrl::NoHost),
            ("postgres://a:b@db:many/app", BadUrl::Port),
            ("postgres://a:b%4@db", BadUrl::Encoding),
            (
                "postgres://a:b@db?sslmode=require",
                BadUrl::Tls(
                    "\"require\" does not verify the server; give verify-full".into(),
                ),
            ),
            (
                "postgres://a:b@db?sslmode=disable",
                BadUrl::Tls(
                    "\"db\" is another machine, but TLS is disabled; disable is allowed for localhost, 127.0.0.1 and ::1 only"
                        .into(),
                ),
            ),
            ("postgres://a:b@db?options=x", BadUrl::Parameter("options".into())),
        ] {
            assert_eq!(parse(text).err(), Some(expected), "{text}");
        }
    }
}
