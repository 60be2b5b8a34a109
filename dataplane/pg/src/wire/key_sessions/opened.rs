//! Opening a session of a key: logged in as its role, with nothing that a statement of before gave that role, and noted.

use super::session_cache::{Of, Session};
use super::{Shared, Unopened};
use crate::failure::PgError;
use crate::tenant::backends::{self, Backend};
use crate::wire::budget::Permit;
use crate::wire::connection::Connection;
use crate::wire::connection::connect::{ConnectError, connect_with};
use crate::wire::connection::transport::Socket;
use crate::wire::failure::{Failure, Part};
use crate::wire::request_pool::Sessions;

/// How an attempt failed.
enum Attempted {
    /// The role may be another than it was made: a key may change its own password and settings.
    Altered(Unopened),
    Failed(Unopened),
}

impl Shared {
    /// Logs in as the key's role, and notes the session where everybody finds it. A role that a statement has changed is brought
    /// back, once.
    pub(super) async fn open(&self, of: Of, permit: Permit) -> Result<Session, Unopened> {
        let session = |(connection, backend)| Session { connection, of: of.clone(), backend, permit };
        let failure = match self.try_open(&of).await {
            Ok(opened) => return Ok(session(opened)),
            Err(Attempted::Failed(failure)) => return Err(failure),
            Err(Attempted::Altered(failure)) => failure,
        };
        match self.mend(&of, &failure).await {
            Ok(true) => {}
            Ok(false) => return Err(failure),
            // A key that died meanwhile has a role that nobody becomes any more.
            Err(error) => {
                tracing::debug!(role = of.role, %error, "the role of a key could not be restored");
                return Err(failure);
            }
        }
        let opened = self.try_open(&of).await;
        opened.map(session).map_err(|(Attempted::Altered(failure) | Attempted::Failed(failure))| failure)
    }

    async fn try_open(&self, of: &Of) -> Result<(Connection<Socket>, Backend), Attempted> {
        let (login, role) = self.login(&of.role);
        let timeout_ms = of.statement_timeout_ms.to_string();
        let settings = [
            // What the key statement of the request pool sets for a transaction. A session begins with it, and a reset brings it back.
            ("search_path", "pg_catalog, pg_temp"),
            ("statement_timeout", timeout_ms.as_str()),
            ("bytea_output", "hex"),
            ("lc_monetary", "C"),
            ("extra_float_digits", "1"),
            ("quote_all_identifiers", "off"),
            ("transform_null_equals", "off"),
            ("row_security", "on"),
            // a plan for any value works out none before it reads rows, and an error would tell of one
            ("plan_cache_mode", "auto"),
            ("default_transaction_read_only", "off"),
            ("role", role),
        ];
        let connected = connect_with(&login, Sessions::Own, &settings).await;
        let mut connection = connected.map_err(|error| match error {
            ConnectError::NoLogin(cause) => Attempted::Altered(Unopened::NoLogin(cause.to_string())),
            rounds @ ConnectError::Rounds(_) => Attempted::Altered(Unopened::NoLogin(rounds.to_string())),
            ConnectError::Refused(cause) => {
                Attempted::Altered(Failure::Unavailable(cause.to_string()).into())
            }
            error => Attempted::Failed(Failure::Unavailable(error.to_string()).into()),
        })?;
        let own = connection.introduce().await;
        let own = own.map_err(|stop| Attempted::Altered(Failure::from(stop.failure(Part::Key)).into()))?;
        let backend = Backend { pid: own.pid, since: own.since, login: login.role };
        let noted = async {
            let mut registry = self.registry.acquire().await?;
            let registered = backends::register(&mut registry, &backend, &of.key, &self.replica).await;
            registry.done(registered)
        };
        match noted.await {
            Ok(true) => Ok((connection, backend)),
            Ok(false) => {
                let failure = Failure::Unavailable("the role has settings of its own".to_owned());
                Err(Attempted::Altered(failure.into()))
            }
            Err(error) => {
                let told = format!("a session could not be recorded: {error}");
                Err(Attempted::Failed(Failure::Unavailable(told).into()))
            }
        }
    }

    /// Brings the role of a key back to what it was made, and says whether that may have been what was in the way.
    async fn mend(&self, of: &Of, failure: &Unopened) -> Result<bool, PgError> {
        let (login, _) = self.login(&of.role);
        let mut auth = self.auth.acquire().await?;
        let mended = async {
            // Of a password nothing is seen. A server that is short of something is not helped by work.
            if !matches!(failure, Unopened::NoLogin(_))
                && !backends::has_settings(&mut auth, &login.role).await?
            {
                return Ok(false);
            }
            backends::mend(&mut auth, &login, &(self.logins.verifier)(&login.role)).await?;
            Ok(true)
        };
        let mended = mended.await;
        if !auth.done(mended)? {
            return Ok(false);
        }
        tracing::warn!(role = login.role, "the role of a key was changed and has been restored");
        Ok(true)
    }
}
