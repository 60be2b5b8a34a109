//! Whether a login gets in where requests go.

use tokio::time::timeout;

use super::connection::connect::{ConnectError, connect, late};
use super::connection::transport::{Socket, dial};
use super::request_pool::{Sessions, WAIT};
use crate::connect::gate::Undialed;
use crate::connect::login::{Endpoint, Login};
use crate::connect::login_failure::LoginFailure;

/// Opens one connection to PostgreSQL itself as requests do, by SCRAM and nothing else, and closes it.
///
/// # Errors
/// Why requests could open none with this login, from here.
pub async fn try_login(login: &Login) -> Result<(), LoginFailure> {
    let opening = Box::pin(connect(login, Sessions::Own, false));
    timeout(WAIT, opening).await.unwrap_or_else(|_| Err(late(login, Sessions::Own))).map(drop)
}

/// A stream to the server, on which nobody has said who they are. The caller bounds the time.
pub(crate) async fn dial_for_sqlx(endpoint: &Endpoint) -> Result<Socket, Undialed> {
    let dialed = dial(endpoint).await;
    dialed.map(|(socket, _)| socket).map_err(|error| match error {
        ConnectError::Unreachable(error) => error.into(),
        ConnectError::Tls(why) => Undialed::tls(why),
        error => Undialed::other(error.to_string()),
    })
}
