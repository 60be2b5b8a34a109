//! Addresses with a role and its password, as other clients read them.

use rowgate_core::percent;

use crate::connect::login::{Endpoint, Login};
use crate::connect::tls::Tls;

/// As libpq and most other clients read it: the folder of a socket takes the place of the host. `authority`: `sslrootcert`.
#[must_use]
pub fn url(login: &Login, authority: Option<&str>) -> String {
    let place = match &login.endpoint {
        Endpoint::Unix { directory, port } => format!("{}:{port}", encoded(&directory.to_string_lossy())),
        Endpoint::Tcp { host, port, .. } => address(host, *port),
    };
    let (role, password) = (encoded(&login.role), encoded(login.password.reveal()));
    let mut url = format!("postgresql://{role}:{password}@{place}/{}", encoded(&login.database));
    if let Some(mode) = ssl_mode(&login.endpoint) {
        url += &format!("?sslmode={mode}");
        url += &authority.map(|it| format!("&sslrootcert={}", encoded(it))).unwrap_or_default();
    }
    url
}

/// As the JDBC driver reads it; `None` for a socket, to which it does not connect.
#[must_use]
pub fn jdbc_url(login: &Login) -> Option<String> {
    let Endpoint::Tcp { host, port, .. } = &login.endpoint else { return None };
    let mode = ssl_mode(&login.endpoint).map(|mode| format!("&sslmode={mode}")).unwrap_or_default();
    let (role, password) = (encoded(&login.role), encoded(login.password.reveal()));
    let place = address(host, *port);
    Some(format!(
        "jdbc:postgresql://{place}/{}?user={role}&password={password}{mode}",
        encoded(&login.database)
    ))
}

/// libpq's `sslmode`; `None` for a socket, which has none.
#[must_use]
pub fn ssl_mode(endpoint: &Endpoint) -> Option<&'static str> {
    let Endpoint::Tcp { tls, .. } = endpoint else { return None };
    Some(match tls {
        Tls::Disable => "disable",
        Tls::VerifyFull(_) => "verify-full",
    })
}

fn address(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{}:{port}", encoded(host)),
    }
}

fn encoded(text: &str) -> String {
    percent::encode(text).to_string()
}
