//! A few connections of one tenant as `t<id>_lookups`, shared by look-ups that are not the hot path. None is open before the first
//! is asked for, and each is among the connections that the server takes.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use rowgate_core::backoff::Backoff;
use sqlx::Connection as _;
pub use sqlx::PgConnection;
use tokio::time::{Instant, sleep, timeout};

use crate::connect::session;
use crate::failure::PgError;
use crate::wire::Share;
use crate::wire::budget::Purpose;
use crate::wire::pool::{Pool, Slot, StatementHash, Warm, Who};
use login::{Connected, DENIED};

mod login;

pub use login::LookUpLogin;

/// For a free connection, opened or waited for.
const WAIT: Duration = Duration::from_secs(5);
/// Look-ups at most that wait for one.
const QUEUE: usize = 10_000;
/// One that answered so long ago is asked first whether it still does, even for a caller that bears a failure.
const WARM: Duration = Duration::from_millis(500);
/// Between two tries to reach a server that is just coming up.
const INITIAL_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_millis(400);

/// A cheap handle; clones share the connections.
#[derive(Clone)]
pub struct LookUps {
    login: LookUpLogin,
    pool: Pool<Opened>,
    plans: Plans,
}

/// How PostgreSQL plans the statements that are prepared.
#[derive(Clone, Copy)]
enum Plans {
    /// As it finds best, for catalogs of any size.
    Chosen,
    /// Once, and without JIT. One that takes arrays is otherwise planned each time, and planning costs more than running it.
    Generic,
}

/// A connection for one look-up. Dropped without [`Acquired::done`] it is closed.
pub struct Acquired {
    connection: PgConnection,
    slot: Slot<Opened>,
    lasts: bool,
}

/// A connection, and when it answered last.
struct Opened(PgConnection, Instant);

impl Warm for Opened {
    fn knows(&self, _: StatementHash) -> bool {
        false
    }
}

impl LookUps {
    /// At most `size` connections as `login`, among those of `share`.
    #[must_use]
    pub fn new(login: impl Into<LookUpLogin>, size: usize, share: &Share) -> LookUps {
        let pool = Pool::new(size, QUEUE, share, Purpose::LookUp);
        LookUps { login: login.into(), pool, plans: Plans::Chosen }
    }

    /// For statements that read and write a few rows by their keys, again and again.
    #[must_use]
    pub fn for_short_statements(self) -> LookUps {
        LookUps { plans: Plans::Generic, ..self }
    }

    /// A connection that answers: it was asked.
    pub async fn acquire(&self) -> Result<Acquired, PgError> {
        self.within_wait(Duration::ZERO).await
    }

    /// As [`LookUps::acquire`], but one that answered within the last half second is not asked, which costs as much as many a look-up
    /// does. For a caller that bears a failure: the connection may have been ended since.
    pub async fn acquire_warm(&self) -> Result<Acquired, PgError> {
        self.within_wait(WARM).await
    }

    async fn within_wait(&self, trusted: Duration) -> Result<Acquired, PgError> {
        let late =
            |_| PgError::Unavailable { reason: "no connection became free in time".to_owned(), source: None };
        let mut last = None;
        match timeout(WAIT, self.answering(trusted, &mut last)).await {
            Ok(acquired) => acquired,
            Err(elapsed) => Err(last.unwrap_or_else(|| late(elapsed))),
        }
    }

    async fn answering(&self, trusted: Duration, last: &mut Option<PgError>) -> Result<Acquired, PgError> {
        let slot = self.pool.take(Who::default(), WAIT).await;
        let refused = |why| PgError::Unavailable {
            reason: format!("there is no free connection: {why:?}"),
            source: None,
        };
        let mut slot = slot.map_err(refused)?;
        if let Some(Opened(mut connection, answered)) = slot.connection()
            && (answered.elapsed() < trusted || connection.ping().await.is_ok())
        {
            return Ok(Acquired { connection, slot, lasts: true });
        }
        let mut backoff = Backoff::new(INITIAL_BACKOFF);
        loop {
            match self.open().await {
                Ok(Connected { connection, lasts }) => return Ok(Acquired { connection, slot, lasts }),
                Err(error) if !is_passing(&error) => return Err(error),
                Err(error) => *last = Some(error),
            }
            sleep(backoff.pause(MAX_BACKOFF, rand::random())).await;
        }
    }

    async fn open(&self) -> Result<Connected, PgError> {
        let mut connected = self.login.connect().await?;
        if let Plans::Generic = self.plans {
            session::script(
                &mut connected.connection,
                "set plan_cache_mode = force_generic_plan; set jit = off",
            )
            .await?;
        }
        Ok(connected)
    }

    /// Closes the connections that nobody has used for `age`; to be called now and then.
    pub fn trim(&self, age: Duration) {
        self.pool.trim(age);
    }

    /// Nobody gets a connection any more.
    pub fn close(&self) {
        self.pool.close();
    }
}

impl Acquired {
    /// Gives the connection back after what was asked of it, unless that may have left it half-way.
    pub fn done<T>(self, result: Result<T, PgError>) -> Result<T, PgError> {
        // The connection is closed before its place is free.
        let Acquired { slot, connection, lasts } = self;
        // a login whose rights were taken away is asked for them again when it comes in
        let is_denied = result.as_ref().is_err_and(|error| error.code() == Some(DENIED));
        if lasts && !is_denied && matches!(result, Ok(_) | Err(PgError::Sqlstate { .. })) {
            slot.give_back(Opened(connection, Instant::now()));
        }
        result
    }
}

impl Deref for Acquired {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Acquired {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// Whether the server may let us in in a moment: it starts, has no place, or is not there yet.
fn is_passing(error: &PgError) -> bool {
    match error {
        PgError::Unavailable { source: Some(sqlx::Error::Io(error)), .. } => {
            error.kind() == std::io::ErrorKind::ConnectionRefused
        }
        PgError::Unavailable { source: Some(sqlx::Error::Database(said)), .. } => {
            said.code().is_some_and(|code| code == "53300" || code == "57P03")
        }
        _ => false,
    }
}
