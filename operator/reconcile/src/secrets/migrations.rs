//! The Secret of the login of migration tools.

use std::collections::BTreeMap;

use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::connect::tls::Tls;
use rowgate_pg::connect::url;

/// What stands in it. `ca.crt` is there where the server's certificate is one of an authority of the installation's own.
pub(crate) fn data(login: &Login) -> BTreeMap<String, String> {
    let (host, port, authority) = match &login.endpoint {
        Endpoint::Unix { directory, port } => (directory.to_string_lossy().into_owned(), port, None),
        Endpoint::Tcp { host, port, tls } => (host.clone(), port, authority(tls)),
    };
    let system = match &login.endpoint {
        Endpoint::Tcp { tls: Tls::VerifyFull(_), .. } if authority.is_none() => Some("system"),
        _ => None,
    };
    let mut data = BTreeMap::from([
        ("url".to_owned(), url::url(login, system)),
        ("host".to_owned(), host),
        ("port".to_owned(), port.to_string()),
        ("database".to_owned(), login.database.clone()),
        ("user".to_owned(), login.role.clone()),
        ("password".to_owned(), login.password.reveal().to_owned()),
    ]);
    data.extend(url::jdbc_url(login).map(|url| ("jdbcUrl".to_owned(), url)));
    data.extend(authority.map(|pem| ("ca.crt".to_owned(), pem)));
    data
}

fn authority(tls: &Tls) -> Option<String> {
    match tls {
        Tls::Disable => None,
        Tls::VerifyFull(authorities) => {
            authorities.pem().map(|pem| String::from_utf8_lossy(pem).into_owned())
        }
    }
}
