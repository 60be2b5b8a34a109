//! Where a PostgreSQL is and who goes there.

use std::fmt;
use std::path::PathBuf;

use rowgate_core::derive::Password;
use rowgate_core::role::TenantLogin;

use crate::connect::tls::Tls;

/// The address of a PostgreSQL server, and how it is known to be that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `<directory>/.s.PGSQL.<port>`.
    Unix {
        directory: PathBuf,
        port: u16,
    },
    Tcp {
        host: String,
        port: u16,
        tls: Tls,
    },
}

/// One role on one database of one server.
#[derive(Clone)]
pub struct Login {
    pub endpoint: Endpoint,
    pub database: String,
    pub role: String,
    pub password: Password,
}

impl Login {
    /// Whether the statements of its sessions are all ours: it is `t<id>_dl`, `t<id>_lookups`, or `t<id>_auth` apart from requests.
    pub(crate) fn runs_ours_alone(&self) -> bool {
        let login = TenantLogin::of_role(&self.role);
        matches!(login, Some(TenantLogin::Records | TenantLogin::Lookups | TenantLogin::Auth))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix { directory, port } => write!(f, "{}:{port}", directory.display()),
            Endpoint::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({} on {} at {})", self.role, self.database, self.endpoint)
    }
}
