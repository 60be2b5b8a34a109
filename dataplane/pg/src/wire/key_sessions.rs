//! Sessions that are logged in as a key's own role, for statements that are not ours: routines of the tenant (`calls`) and SQL of
//! the key itself (`queries`). Behind a role that is switched, as in the request pool, such a statement could go on as the login.
//!
//! A session belongs to one key, from its login to its end. `key_statements` takes a statement from its turn to its answer: `key_queue` says
//! whose is next, `opened` makes its session, `session_cache` has the sessions between statements, `bounded` ends what takes too long.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_core::role::SHARED_ROLE;
use tokio::time::{Instant, timeout};

use super::ask::{Ask, KeyRow};
use super::budget::Share;
use super::counters::Counters;
use super::failure::{CallFailure, Failure, QueryFailure};
use super::request_pool::RequestPool;
use super::request_pool::outage::Outage;
use crate::connect::login::Login;
use crate::failure::PgError;
use crate::tenant::backends;
use crate::tenant::lookups::LookUps;
use session_cache::{Of, Session, SessionCache};

mod bounded;
mod calls;
mod key_queue;
mod key_statements;
mod opened;
mod queries;
mod session_cache;

pub use calls::{Call, CallLimits, CallOutcome, Calls};
pub use key_queue::KeyPermit;
pub use queries::{
    Described, Queries, Query, QueryColumn, QueryLimits, QueryOutcome, RowForm, Typed, Typing, Values,
};

/// For the server to accept a new session, or a request to end one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that end sessions and restore roles.
const AUTH_CONNECTIONS: usize = 2;

/// How sessions log in: it must be PostgreSQL itself, since a pooler shares sessions.
pub struct KeyLogins {
    /// The role of a scoped key.
    pub key: Box<dyn Fn(&str) -> Login + Send + Sync>,
    /// `t<id>_sql`, for unscoped keys.
    pub sql: Login,
    /// `t<id>_auth`, which becomes such a role to end its sessions and to restore it.
    pub auth: Login,
    /// The SCRAM verifier of such a role's password, to set it again.
    pub verifier: Box<dyn Fn(&str) -> String + Send + Sync>,
}

/// The sessions of a tenant's keys, calls' and queries' alike. A cheap handle; clones share them.
#[derive(Clone)]
pub struct KeySessions {
    shared: Arc<Shared>,
}

struct Shared {
    logins: KeyLogins,
    /// Where keys are asked for before each statement.
    pool: RequestPool,
    /// `t<id>_lookups`, for `dl.backends`.
    registry: LookUps,
    /// As `logins.auth`.
    auth: LookUps,
    replica: Ulid,
    sessions: SessionCache,
    outage: Outage<String>,
    counters: Counters,
}

/// Why there is no session.
#[derive(Debug)]
enum Unopened {
    /// The role of the key may not log in: not any more, or not yet.
    NoLogin(String),
    Any(Failure),
}

/// What a key's answer is worth once its statement has run.
enum Doubt {
    /// The key died meanwhile.
    Dead,
    /// The database does not say.
    Unknown(Failure),
}

impl KeySessions {
    /// No session is opened yet. `pool` checks keys, `registry` logs in as `t<id>_lookups`, `replica` is who opens sessions, and
    /// these are among the connections of `share`.
    #[must_use]
    pub fn new(
        logins: KeyLogins,
        pool: RequestPool,
        registry: LookUps,
        replica: Ulid,
        share: &Share,
    ) -> KeySessions {
        let auth = LookUps::new(logins.auth.clone(), AUTH_CONNECTIONS, share);
        let (sessions, outage, counters) = (SessionCache::new(share), Outage::default(), Counters::default());
        KeySessions {
            shared: Arc::new(Shared { logins, pool, registry, auth, replica, sessions, outage, counters }),
        }
    }

    /// Ends what dead keys still run in this database, whoever opened it, and says how many sessions that were.
    pub async fn end_dead(&self) -> Result<usize, PgError> {
        let mut registry = self.shared.registry.acquire().await?;
        let dead = backends::dead(&mut registry).await;
        let dead = registry.done(dead)?;
        if !dead.is_empty() {
            let mut auth = self.shared.auth.acquire().await?;
            let ended = backends::end_all(&mut auth, &dead, 0).await;
            auth.done(ended)?;
        }
        Ok(dead.len())
    }

    /// Closes the sessions that nobody has used for `age`; to be called now and then.
    pub fn trim(&self, age: Duration) {
        self.shared.sessions.trim(age);
        self.shared.auth.trim(age);
    }

    /// No session is ended any more, and no role restored.
    pub fn close(&self) {
        self.shared.auth.close();
    }

    /// How many are open between two statements.
    #[must_use]
    pub fn n_idle(&self) -> usize {
        self.shared.sessions.len()
    }

    /// Of sessions, and of statements whose caller went away.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }
}

impl Shared {
    /// How the role logs in, and the role that its session has then.
    fn login(&self, role: &str) -> (Login, &'static str) {
        match role {
            SHARED_ROLE => (self.logins.sql.clone(), SHARED_ROLE),
            role => ((self.logins.key)(role), "none"),
        }
    }

    /// A session of the key's, one of before or a new one, for which at most `n_idle` others stay open. While none can be made
    /// most are refused at once.
    async fn session(&self, of: Of, n_idle: usize, wait: Duration) -> Result<Session, Unopened> {
        if let Some(session) = self.sessions.take(&of) {
            return Ok(session);
        }
        self.sessions.leave(n_idle);
        let permit = self.sessions.permit(wait).await;
        let busy = || Failure::Busy("no server connection became free in time".to_owned());
        let permit = permit.ok_or_else(busy)?;
        let attempt = self.outage.attempt(Instant::now()).map_err(Failure::Unavailable)?;
        let failure = match timeout(CONNECT_TIMEOUT, self.open(of, permit)).await {
            Ok(Ok(session)) => {
                self.counters.note_connect(true);
                attempt.succeeded();
                return Ok(session);
            }
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Unavailable("PostgreSQL did not accept a session in time".to_owned()).into(),
        };
        self.counters.note_connect(false);
        match &failure {
            Unopened::Any(Failure::Unavailable(cause)) => attempt.failed(Instant::now(), cause),
            // Who may not log in says nothing of others.
            Unopened::Any(_) | Unopened::NoLogin(_) => attempt.succeeded(),
        }
        Err(failure)
    }

    /// Whether the key lives and has the role that the statement is for. The session was noted before, so that from here on a
    /// revocation finds it.
    async fn check(&self, check: Ask) -> Result<KeyRow, Failure> {
        Ok(self.pool.read(check, 0).await?.key)
    }

    /// Whether the key still lives, once its statement has run. The key is what matters then, whatever the catalog says.
    async fn check_again(&self, check: Ask) -> Result<(), Doubt> {
        match self.pool.read(Ask { watched: None, ..check }, 0).await {
            Ok(_) | Err(Failure::WrongRole(_)) => Ok(()),
            Err(Failure::DeadKey | Failure::Ended) => Err(Doubt::Dead),
            Err(failure) => Err(Doubt::Unknown(failure)),
        }
    }

    /// Keeps a session whose key was not found dead.
    fn put_unused(&self, session: Session, failure: &Failure) {
        if !matches!(failure, Failure::DeadKey | Failure::Ended) {
            self.sessions.put(session);
        }
    }
}

impl From<Failure> for Unopened {
    fn from(failure: Failure) -> Unopened {
        Unopened::Any(failure)
    }
}

impl From<Unopened> for CallFailure {
    fn from(unopened: Unopened) -> CallFailure {
        match unopened {
            Unopened::NoLogin(cause) => CallFailure::NoLogin(cause),
            Unopened::Any(failure) => failure.into(),
        }
    }
}

impl From<Unopened> for QueryFailure {
    fn from(unopened: Unopened) -> QueryFailure {
        match unopened {
            Unopened::NoLogin(cause) => QueryFailure::NoLogin(cause),
            Unopened::Any(failure) => failure.into(),
        }
    }
}

impl fmt::Debug for KeyLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyLogins({:?})", self.sql)
    }
}
