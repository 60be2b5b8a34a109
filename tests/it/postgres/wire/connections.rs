//! How a connection begins and ends: authentication, TLS, a pooler, a standby.

mod connect;
mod pooler;
mod standby;
mod tls;
