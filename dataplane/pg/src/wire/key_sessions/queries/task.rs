//! One query: its session, the check of its key, the statement, its answer, and what becomes of the session.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::{Query, QueryOutcome, Shared};
use crate::wire::ask::Ask;
use crate::wire::connection::queried::{Queried, Step};
use crate::wire::failure::{Cause, Failure, QueryFailure};
use crate::wire::key_sessions::bounded::{Bounded, GRACE, LONG, Running};
use crate::wire::key_sessions::key_queue::KeyPermit;
use crate::wire::key_sessions::session_cache::{Of, Session};
use crate::wire::key_sessions::{self, Doubt};

/// By how much the server lets a statement outlive our own limit.
pub(super) const SPARE: Duration = Duration::from_secs(5);

type Caller = oneshot::Sender<Result<QueryOutcome, QueryFailure>>;

/// Everything up to the answer and the session's next use. The caller may go at any time.
pub(super) async fn run(
    shared: Arc<Shared>,
    permit: KeyPermit,
    check: Ask,
    query: Query,
    step: Step,
    mut caller: Caller,
) {
    let of = Of {
        key: query.key.clone(),
        role: query.role.clone(),
        statement_timeout_ms: query.statement_timeout_ms.clamp(1, i32::MAX as u32),
    };
    // Those that are open beside the queries under way, this one among them.
    let n_idle = shared.limits.size.saturating_sub(shared.queue.load().0);
    let sessions = shared.sessions.shared.clone();
    let mut session = match sessions.session(of, n_idle, shared.limits.wait).await {
        Ok(session) => session,
        Err(failure) => return tell(caller, Err(failure.into())),
    };
    if let Err(failure) = may(&sessions, check.clone(), &query).await {
        sessions.put_unused(session, &failure);
        return tell(caller, Err(failure.into()));
    }
    if caller.is_closed() {
        return sessions.sessions.put(session);
    }
    let began = Instant::now();
    let (answer, is_whole) = ran(&sessions, &mut session, &query, step, &mut caller).await;
    let is_doubtful = matches!(answer, Err(QueryFailure::Any(Failure::Unavailable(_) | Failure::Timeout)));
    let answer = match is_doubtful || LONG <= began.elapsed() {
        true => still(&sessions, check, answer).await,
        false => answer,
    };
    // Before the answer: whoever asks again at once finds the session.
    let (_, role) = sessions.login(&query.role);
    if is_whole && matches!(timeout(GRACE, session.connection.renew(role)).await, Ok(true)) {
        sessions.sessions.put(session);
    }
    drop(permit);
    tell(caller, answer);
}

fn tell(caller: Caller, answer: Result<QueryOutcome, QueryFailure>) {
    // Nobody may be there to hear it.
    let _heard = caller.send(answer);
}

/// Whether the key lives and is the one that the query is of.
async fn may(sessions: &key_sessions::Shared, check: Ask, query: &Query) -> Result<(), Failure> {
    match sessions.check(check).await?.id == query.key {
        true => Ok(()),
        false => Err(Failure::Changed(Cause::ours("the credential is that of another key"))),
    }
}

/// The answer, for a key that has not died meanwhile. A database that cannot be asked lets nothing through: this
/// replica may be cut off.
async fn still(
    sessions: &key_sessions::Shared,
    check: Ask,
    answer: Result<QueryOutcome, QueryFailure>,
) -> Result<QueryOutcome, QueryFailure> {
    match sessions.check_again(check).await {
        Err(Doubt::Dead) => Err(Failure::Ended.into()),
        Err(Doubt::Unknown(failure)) if answer.is_ok() => {
            let cause = format!("whether the key is still valid is unknown: {failure}");
            Err(Failure::Unavailable(cause).into())
        }
        Ok(()) | Err(Doubt::Unknown(_)) => answer,
    }
}

/// The query, up to its end or to ours. False: the session must go.
async fn ran(
    sessions: &key_sessions::Shared,
    session: &mut Session,
    query: &Query,
    step: Step,
    caller: &mut Caller,
) -> (Result<QueryOutcome, QueryFailure>, bool) {
    let (login, _) = sessions.login(&query.role);
    let running = Running { login, session: session.connection.session(), backend: &session.backend };
    let deadline = Instant::now() + query.limit;
    match sessions.bounded(running, session.connection.query(query, step), caller, deadline).await {
        Bounded::Through(Queried { answer, is_whole }) => (answer, is_whole),
        Bounded::Canceled(Queried { answer, .. }) => (answer, false),
        Bounded::Terminated => (Err(Failure::Timeout.into()), false),
    }
}
