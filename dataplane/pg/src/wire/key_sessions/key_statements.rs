//! Statements of one kind, each in a task of its own: its turn, its session, the check of its key, the statement itself, its answer,
//! and what becomes of the session.

use std::sync::Arc;
use std::time::Duration;

use rowgate_core::name::Ulid;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::bounded::{Bounded, GRACE, LONG, Running};
use super::key_queue::{KeyPermit, KeyQueue};
use super::session_cache::{Of, Session};
use super::{Doubt, KeySessions, Shared, Unopened};
use crate::wire::ask::{Ask, KeyRow};
use crate::wire::connection::Connection;
use crate::wire::connection::transport::Socket;
use crate::wire::failure::{Cause, Failure};
use crate::wire::pool::NoSlot;
use crate::wire::request_pool::Load;

/// A statement that is not ours, of one kind.
pub(super) trait Work: Send + Sync + 'static {
    type Outcome: Send + 'static;
    type Failure: From<Failure> + From<Unopened> + Send + 'static;

    /// In messages: one of the kind, and several.
    const WORDS: (&'static str, &'static str);

    fn key(&self) -> &Ulid;
    /// What the key is in the database: `datalake_user`, or its own role.
    fn role(&self) -> &str;
    fn statement_timeout_ms(&self) -> u32;

    /// Whether it is what a key that lives may have done.
    fn may(&self, key: &KeyRow) -> Result<(), Failure>;

    /// Runs it. False: the session must go.
    fn run(&self, connection: &mut Connection<Socket>) -> impl Future<Output = Ran<Self>> + Send;

    /// What the answer is worth. True: it may be so for the key's death.
    fn judged(answer: Answer<Self>) -> (Answer<Self>, bool);

    /// There is no answer; the text is for the log.
    fn lost(cause: String) -> Self::Failure;

    /// What keeps the right to run one for as long as the answer is in memory.
    fn keep(_: &mut Self::Outcome, permit: KeyPermit) {
        drop(permit);
    }
}

pub(super) type Answer<W> = Result<<W as Work>::Outcome, <W as Work>::Failure>;
pub(super) type Ran<W> = (Answer<W>, bool);

/// A cheap handle; clones share the queue.
#[derive(Clone)]
pub(super) struct KeyStatements {
    inner: Arc<Inner>,
}

struct Inner {
    sessions: KeySessions,
    size: usize,
    n_waiting_max: usize,
    wait: Duration,
    queue: KeyQueue,
    tasks: TaskTracker,
}

impl KeyStatements {
    /// `size` at once and `n_waiting_max` that wait, each for `wait`, in sessions that other kinds may use too.
    pub(super) fn new(
        sessions: KeySessions,
        size: usize,
        n_waiting_max: usize,
        wait: Duration,
    ) -> KeyStatements {
        let (queue, tasks) = (KeyQueue::new(size, n_waiting_max), TaskTracker::new());
        KeyStatements { inner: Arc::new(Inner { sessions, size, n_waiting_max, wait, queue, tasks }) }
    }

    /// `check` asks the request pool for the key alone, right before. A statement whose caller goes has a second to end.
    pub(super) async fn run<W: Work>(&self, check: Ask, work: W, limit: Duration) -> Answer<W> {
        let Inner { n_waiting_max, wait, .. } = *self.inner;
        let (one, many) = W::WORDS;
        let permit = self.inner.queue.take(work.key(), wait).await.map_err(|why| match why {
            NoSlot::Full => Failure::Busy(format!(
                "{n_waiting_max} {many} are waiting already, or half as many of this key"
            )),
            NoSlot::Late | NoSlot::Closed => Failure::Busy(format!("no running {one} ended in time")),
        })?;
        let (sender, receiver) = oneshot::channel();
        self.inner.tasks.spawn(run(self.inner.clone(), permit, check, work, limit, sender));
        let ended = |_| Failure::Internal(Cause::ours(format!("the task of a {one} ended"))).into();
        receiver.await.map_err(ended).and_then(|answer| answer)
    }

    /// Whether a session is open, or was a moment ago.
    pub(super) fn is_in_use(&self) -> bool {
        0 < self.inner.queue.load().0 || 0 < self.inner.sessions.n_idle()
    }

    pub(super) fn load(&self) -> Load {
        let (in_use, waiting) = self.inner.queue.load();
        Load { size: self.inner.size, in_use, idle: self.inner.sessions.n_idle(), waiting }
    }

    pub(super) fn sessions(&self) -> &KeySessions {
        &self.inner.sessions
    }

    /// Waits for what is under way and closes all sessions.
    pub(super) async fn close(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.sessions.trim(Duration::ZERO);
    }
}

type Caller<W> = oneshot::Sender<Answer<W>>;

/// Everything up to the answer and the session's next use. The caller may go at any time.
async fn run<W: Work>(
    inner: Arc<Inner>,
    permit: KeyPermit,
    check: Ask,
    work: W,
    limit: Duration,
    mut caller: Caller<W>,
) {
    let of = Of {
        key: work.key().clone(),
        role: work.role().to_owned(),
        statement_timeout_ms: work.statement_timeout_ms().clamp(1, i32::MAX as u32),
    };
    // Those that are open beside what is under way, this one among them.
    let n_idle = inner.size.saturating_sub(inner.queue.load().0);
    let sessions = inner.sessions.shared.clone();
    let mut session = match sessions.session(of, n_idle, inner.wait).await {
        Ok(session) => session,
        Err(failure) => return answer::<W>(caller, Err(failure.into())),
    };
    let may = sessions.check(check.clone()).await.and_then(|key| work.may(&key));
    if let Err(failure) = may {
        sessions.put_unused(session, &failure);
        return answer::<W>(caller, Err(failure.into()));
    }
    if caller.is_closed() {
        return sessions.sessions.put(session);
    }
    let began = Instant::now();
    let (given, fate) = bounded(&sessions, &mut session, &work, &mut caller, began + limit).await;
    let (given, is_doubtful) = W::judged(given);
    let given = match is_doubtful || LONG <= began.elapsed() {
        true => still::<W>(&sessions, check, given).await,
        false => given,
    };
    // Before the answer, so that a caller who asks again at once finds the session.
    let (_, role) = sessions.login(work.role());
    if fate == Fate::Kept && matches!(timeout(GRACE, session.connection.renew(role)).await, Ok(true)) {
        sessions.sessions.put(session);
    } else if fate == Fate::Terminated {
        answer::<W>(caller, given);
        return sessions.until_gone(&session.backend, || inner.tasks.is_closed()).await;
    }
    let mut given = given;
    match &mut given {
        Ok(outcome) => W::keep(outcome, permit),
        Err(_) => drop(permit),
    }
    answer::<W>(caller, given);
}

fn answer<W: Work>(caller: Caller<W>, answer: Answer<W>) {
    // The caller may have gone.
    let _taken = caller.send(answer);
}

/// The answer, for a key that has not died meanwhile. A database that cannot be asked lets nothing through: this
/// replica may be cut off.
async fn still<W: Work>(sessions: &Shared, check: Ask, answer: Answer<W>) -> Answer<W> {
    match sessions.check_again(check).await {
        Err(Doubt::Dead) => Err(Failure::Ended.into()),
        Err(Doubt::Unknown(failure)) if answer.is_ok() => {
            Err(W::lost(format!("whether the key is still valid is unknown: {failure}")))
        }
        Ok(()) | Err(Doubt::Unknown(_)) => answer,
    }
}

/// What becomes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Closed,
    /// It was ended; its statement may still run.
    Terminated,
}

/// The statement, up to its end or to ours.
async fn bounded<W: Work>(
    sessions: &Shared,
    session: &mut Session,
    work: &W,
    caller: &mut Caller<W>,
    deadline: Instant,
) -> (Answer<W>, Fate) {
    let (login, _) = sessions.login(work.role());
    let running = Running { login, session: session.connection.session(), backend: &session.backend };
    match sessions.bounded(running, work.run(&mut session.connection), caller, deadline).await {
        Bounded::Through((answer, true)) => (answer, Fate::Kept),
        Bounded::Through((answer, false)) | Bounded::Canceled((answer, _)) => (answer, Fate::Closed),
        Bounded::Terminated => (Err(Failure::Timeout.into()), Fate::Terminated),
    }
}
