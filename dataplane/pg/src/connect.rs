//! Connections for everything but the hot path: where a PostgreSQL is, who logs in, whom TLS trusts, what a failed login means, and
//! the gate in front of the databases of tenants.

pub mod database_url;
pub(crate) mod gate;
pub mod login;
pub mod login_failure;
pub mod session;
pub mod tls;
pub mod tls_settings;
pub mod url;

pub use gate::closed;
