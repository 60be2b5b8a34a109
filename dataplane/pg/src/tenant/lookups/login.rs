//! Who looks up in a tenant's database: a login as which no request runs.

use sqlx::{Connection as _, PgConnection};

use crate::connect::login::Login;
use crate::connect::session;
use crate::failure::PgError;

/// What PostgreSQL answers to a login that is not made yet, or not let in.
const NOT_MADE: [&str; 3] = ["28P01", "28000", DENIED];
/// What it answers to a statement for which a right is missing.
pub(super) const DENIED: &str = "42501";

/// `t<id>_lookups`, or `t<id>_auth` where an operator of version 0.2 gave that login the rights and has not made the other.
#[derive(Debug, Clone)]
pub struct LookUpLogin {
    login: Login,
    before: Option<Login>,
}

/// A connection of either.
pub struct Connected {
    pub connection: PgConnection,
    /// False: of the login of before, which loses its rights as soon as the other is made.
    pub lasts: bool,
}

impl LookUpLogin {
    /// As `login`, or while that is not made as `before`.
    #[must_use]
    pub fn new(login: Login, before: Login) -> LookUpLogin {
        LookUpLogin { login, before: Some(before) }
    }

    /// # Errors
    /// Why the server lets nobody in: of two, what it says to the login that is to be there.
    pub async fn connect(&self) -> Result<Connected, PgError> {
        let refused = match session::connect(&self.login).await {
            Ok(connection) => return Ok(Connected { connection, lasts: true }),
            Err(error) => error,
        };
        let is_made = refused.code().is_none_or(|code| !NOT_MADE.contains(&code));
        let Some(before) = self.before.as_ref().filter(|_| !is_made) else { return Err(refused) };
        let Ok(mut connection) = session::connect(before).await else { return Err(refused) };
        if may_look_up(&mut connection).await {
            return Ok(Connected { connection, lasts: false });
        }
        // a connection that does not close well is the server's to clear
        let _ = connection.close().await;
        Err(refused)
    }
}

impl From<Login> for LookUpLogin {
    fn from(login: Login) -> LookUpLogin {
        LookUpLogin { login, before: None }
    }
}

/// Whether the login has the rights that an operator of version 0.2 gave it.
async fn may_look_up(connection: &mut PgConnection) -> bool {
    let query = sqlx::query_scalar("select pg_catalog.has_table_privilege('dl.entities', 'select')");
    query.fetch_one(connection).await.unwrap_or(false)
}
