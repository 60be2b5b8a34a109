//! The task of one exchange and what it holds: a slot of the pool, and a connection that is never left half-way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::ask::{Answer, Asked, KeyRow, ReadPage, WriteOutcome};
use super::connection::connect::cancel;
use super::connection::transport::Socket;
use super::connection::{Broken, Connection, Exchanged, Went};
use super::exchange::row_stream::{End, RowStream};
use super::exchange::rows::Rows;
use super::failure::{Cause, Failure, WriteFailure};
use super::pool::{Slot, Stopped};
use super::request_pool::Shared;

pub(crate) mod batch;
pub(crate) mod fingerprint_check;
pub(crate) mod key_statement;
pub(crate) mod row_stream;
pub(crate) mod rows;
pub(crate) mod session_settings;

/// Chunks between an exchange and its caller. The socket is not read while they wait.
const PIECES: usize = 2;
/// How long an exchange that nobody waits for may take to end by itself. Most do, and their connection stays good; the
/// others would keep the database busy up to the statement timeout.
const LINGER: Duration = Duration::from_secs(1);

/// One slot of the pool. However it is dropped in the middle of an exchange, by whatever error or end of its task, the
/// statement is cancelled and the connection closed.
pub(super) struct Exchange {
    pool: Arc<Shared>,
    /// `None` once it was given back.
    slot: Option<Slot<Connection<Socket>>>,
    /// `None` between exchanges.
    connection: Option<Connection<Socket>>,
    stop: Option<oneshot::Receiver<Stopped>>,
}

/// The caller's end of an exchange that runs in its own task.
pub(super) struct ExchangeHandle<T: Send + 'static, F: Send + 'static> {
    pool: Arc<Shared>,
    task: Option<JoinHandle<Result<T, F>>>,
}

impl<T: Send + 'static, F: From<Failure> + Send + 'static> ExchangeHandle<T, F> {
    /// Starts the exchange that `run` makes with the slot.
    pub(super) fn start<R: Future<Output = Result<T, F>> + Send + 'static>(
        pool: &Arc<Shared>,
        mut slot: Slot<Connection<Socket>>,
        run: impl FnOnce(Exchange) -> R,
    ) -> ExchangeHandle<T, F> {
        let stop = slot.stop();
        let exchange = Exchange { pool: pool.clone(), slot: Some(slot), connection: None, stop };
        ExchangeHandle { pool: pool.clone(), task: Some(pool.exchanges.spawn(run(exchange))) }
    }

    pub(super) async fn answer(mut self) -> Result<T, F> {
        let task = self.task.as_mut().expect("only a drop takes it");
        task.await.unwrap_or_else(|error| Err(Failure::ended(&error).into()))
    }
}

impl<T: Send + 'static, F: Send + 'static> Drop for ExchangeHandle<T, F> {
    /// Who goes away before the answer leaves the exchange some time to end, so that its connection stays good.
    fn drop(&mut self) {
        let Some(mut task) = self.task.take().filter(|task| !task.is_finished()) else {
            return;
        };
        self.pool.counters.note_abandoned();
        if Handle::try_current().is_ok() {
            self.pool.exchanges.spawn(async move {
                if timeout(LINGER, &mut task).await.is_err() {
                    task.abort();
                }
            });
        }
    }
}

impl Exchange {
    /// A read, up to its end or to its first chunk.
    pub(super) async fn read(mut self, ask: Asked) -> Result<ReadPage, Failure> {
        match self.run(&ask).await? {
            (Exchanged::Begun(key, rows), deadline) => Ok(self.begun(ask, key, rows, deadline)),
            (Exchanged::Whole(answer), _) => {
                self.put_back();
                match answer? {
                    Answer::Read(page) => Ok(page),
                    Answer::Write(_) => Err(other_operation()),
                }
            }
        }
    }

    /// A write, up to its end.
    pub(super) async fn write(mut self, ask: Asked) -> Result<WriteOutcome, WriteFailure> {
        match self.run(&ask).await? {
            (Exchanged::Begun(..), _) => Err(other_operation().into()),
            (Exchanged::Whole(answer), _) => {
                self.put_back();
                match answer? {
                    Answer::Write(outcome) => Ok(outcome),
                    Answer::Read(_) => Err(other_operation().into()),
                }
            }
        }
    }

    /// The exchange, up to its end or to the first chunk, and when all of it must be over. A connection that broke before its
    /// key statement was through may have been stale, or tenant code spoilt its session: nothing of the question has run, so it
    /// is asked once more on a new one.
    async fn run(&mut self, ask: &Asked) -> Result<(Exchanged, Instant), WriteFailure> {
        let warm = self.slot.as_mut().and_then(Slot::connection);
        self.connection = warm.and_then(|mut it| (!ask.is_write() || it.is_fresh()).then_some(it));
        loop {
            let is_warm = self.connection.is_some();
            if !is_warm {
                let opened = self.pool.open(false).await;
                self.connection = Some(opened.map_err(|failure| Failure::NoConnection(failure.detail))?);
            }
            let allowed = Duration::from_millis(ask.statement_timeout_ms.into()) + self.pool.limits.grace;
            let deadline = Instant::now() + allowed;
            let connection = self.connection.as_mut().expect("it was warm or opened");
            let exchange = async {
                match connection.exchange(ask).await? {
                    // The statement is one of before and fits the same catalog more often than not when it is parsed again, or a table
                    // was rewritten.
                    (Exchanged::Whole(Err(WriteFailure::Any(Failure::Changed(_)))), true) => {
                        connection.exchange(ask).await.map(|(exchanged, _)| exchanged)
                    }
                    (exchanged, _) => Ok(exchanged),
                }
            };
            let exchanged = tokio::select! {
                biased;
                exchanged = timeout_at(deadline, exchange) => exchanged,
                why = stopped(&mut self.stop) => {
                    self.pool.counters.note_stopped(why);
                    return Err(failure(why).into());
                }
            };
            match exchanged {
                Ok(Ok(exchanged)) => return Ok((exchanged, deadline)),
                // A write whose answer was lost may have been done.
                Ok(Err(Broken { failure, before_key: true, is_refused }))
                    if is_warm && (!ask.is_write() || is_refused) =>
                {
                    self.connection = None;
                    tracing::debug!(?failure, pool = ?self.pool.login, "retrying on a new connection");
                }
                Ok(Err(Broken { failure, .. })) => {
                    self.connection = None;
                    return Err(failure);
                }
                Err(_) => return Err(Failure::Timeout.into()),
            }
        }
    }

    /// The beginning of a long answer; the rest is read in a task that owns the exchange.
    fn begun(self, ask: Asked, key: KeyRow, mut rows: Rows, deadline: Instant) -> ReadPage {
        let (sender, receiver) = mpsc::channel(PIECES);
        let (pool, is_stopped) = (self.pool.clone(), Arc::new(AtomicBool::new(false)));
        if let Some(slot) = &self.slot {
            slot.delivers();
        }
        let mut page = ReadPage::begun(key, rows.cut(), &rows);
        let end = pool.exchanges.spawn(self.go_on(ask, rows, sender, deadline, is_stopped.clone()));
        page.rest = Some(RowStream::new(receiver, end, is_stopped));
        page
    }

    async fn go_on(
        mut self,
        ask: Asked,
        mut rows: Rows,
        pieces: mpsc::Sender<Vec<u8>>,
        deadline: Instant,
        is_stopped: Arc<AtomicBool>,
    ) -> Result<End, Failure> {
        let connection = self.connection.as_mut().expect("its exchange has begun");
        let went = tokio::select! {
            biased;
            () = pieces.closed() => Ok(Ok(Went::Unheard)),
            why = stopped(&mut self.stop) => {
                is_stopped.store(true, Ordering::Release);
                self.pool.counters.note_stopped(why);
                return Err(failure(why));
            }
            went = timeout_at(deadline, connection.go_on(&ask.shape, &mut rows, &pieces)) => went,
        };
        match went {
            Ok(Ok(Went::Through(end))) => {
                self.put_back();
                end
            }
            // What is left may be any number of rows: dropping the exchange cancels the statement.
            Ok(Ok(Went::Full(end))) => Ok(end),
            Ok(Ok(Went::Unheard)) => {
                self.pool.counters.note_abandoned();
                if matches!(timeout(LINGER, connection.drain()).await, Ok(true)) {
                    self.put_back();
                }
                Err(Failure::Unavailable("the client disconnected before the answer".to_owned()))
            }
            Ok(Err(broken)) => {
                self.connection = None;
                Err(broken.failure.into())
            }
            Err(_) => Err(Failure::Timeout),
        }
    }

    /// Its exchange came to the proper end.
    fn put_back(&mut self) {
        let (slot, connection) = (self.slot.take(), self.connection.take());
        let mut connection = connection.expect("it has just been used");
        // Else both are dropped: the connection is closed, and the slot is free for another one.
        if connection.is_as_opened() {
            slot.expect("it ends with its exchange").give_back(connection);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let (pool, slot) = (self.pool.clone(), self.slot.take());
        if Handle::try_current().is_err() {
            return;
        }
        // The connection stays ours until the request to cancel was heard, and is closed after it: such a request names
        // a session and not a statement, so it must not reach one that has somebody else's.
        self.pool.exchanges.spawn(async move {
            let heard = timeout(pool.limits.connect, cancel(&pool.login, connection.session())).await;
            if !matches!(heard, Ok(Ok(()))) {
                tracing::debug!(?heard, pool = ?pool.login, "a statement could not be canceled");
            }
            drop(connection);
            drop(slot);
        });
    }
}

/// Waits until the exchange is told to end.
async fn stopped(stop: &mut Option<oneshot::Receiver<Stopped>>) -> Stopped {
    if let Some(Ok(why)) = match stop {
        Some(stop) => Some(stop.await),
        None => None,
    } {
        return why;
    }
    // It is not to be asked again.
    *stop = None;
    std::future::pending().await
}

fn failure(why: Stopped) -> Failure {
    match why {
        Stopped::Dead => Failure::Ended,
        Stopped::Outshared => {
            Failure::Busy("another key with fewer connections waited for this one".to_owned())
        }
    }
}

/// No exchange gives it: each builds what its operation says.
fn other_operation() -> Failure {
    Failure::Internal(Cause::ours("an exchange gave the answer of another operation"))
}
