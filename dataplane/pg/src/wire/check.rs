//! Whether a login gets in where requests go.

use tokio::time::timeout;

use super::connect::{connect, late};
use super::lane::{Sessions, WAIT};
use crate::login::Login;
use crate::login_failure::LoginFailure;

/// Opens one connection to PostgreSQL itself as requests do, by SCRAM and nothing else, and closes it.
///
/// # Errors
/// Why requests could open none with this login, from here.
pub async fn try_login(login: &Login) -> Result<(), LoginFailure> {
    let opening = Box::pin(connect(login, Sessions::Own, false));
    timeout(WAIT, opening).await.unwrap_or_else(|_| Err(late(login, Sessions::Own))).map(drop)
}
