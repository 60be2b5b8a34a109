//! One call: its session, the check of its key, the call itself, its answer, and what becomes of the session.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::{Call, CallOutcome, Shared};
use crate::wire::ask::Ask;
use crate::wire::connection::called::Called;
use crate::wire::failure::{CallFailure, Cause, Failure};
use crate::wire::key_sessions::bounded::{Bounded, GRACE, LONG, Running};
use crate::wire::key_sessions::key_queue::KeyPermit;
use crate::wire::key_sessions::session_cache::{Of, Session};
use crate::wire::key_sessions::{self, Doubt};

type Caller = oneshot::Sender<Result<CallOutcome, CallFailure>>;

/// Everything up to the answer and the session's next use. The caller may go at any time.
pub(super) async fn run(shared: Arc<Shared>, permit: KeyPermit, check: Ask, call: Call, mut caller: Caller) {
    let of = Of {
        key: call.key.clone(),
        role: call.role.clone(),
        statement_timeout_ms: call.statement_timeout_ms.clamp(1, i32::MAX as u32),
    };
    // Those that are open beside the calls under way, this one among them.
    let n_idle = shared.limits.size.saturating_sub(shared.queue.load().0);
    let sessions = shared.sessions.shared.clone();
    let mut session = match sessions.session(of, n_idle, shared.limits.wait).await {
        Ok(session) => session,
        Err(failure) => return tell(caller, Err(failure.into())),
    };
    if let Err(failure) = may(&sessions, check.clone(), &call).await {
        sessions.put_unused(session, &failure);
        return tell(caller, Err(failure.into()));
    }
    if caller.is_closed() {
        return sessions.sessions.put(session);
    }
    let began = Instant::now();
    let allowed = Duration::from_millis(call.statement_timeout_ms.into()) + shared.limits.grace;
    let (answer, is_whole) = ran(&sessions, &mut session, &call, &mut caller, began + allowed).await;
    let answer = answer.map_err(|failure| match failure {
        CallFailure::Any(Failure::Unavailable(cause)) => CallFailure::Lost(cause),
        failure => failure,
    });
    let is_doubtful = matches!(answer, Err(CallFailure::Lost(_) | CallFailure::Any(Failure::Timeout)));
    let answer = match is_doubtful || LONG <= began.elapsed() {
        true => still(&sessions, check, answer).await,
        false => answer,
    };
    // Before the answer: whoever calls again at once finds the session.
    let (_, role) = sessions.login(&call.role);
    if is_whole && matches!(timeout(GRACE, session.connection.renew(role)).await, Ok(true)) {
        sessions.sessions.put(session);
    }
    drop(permit);
    tell(caller, answer);
}

fn tell(caller: Caller, answer: Result<CallOutcome, CallFailure>) {
    // Nobody may be there to hear it.
    let _heard = caller.send(answer);
}

/// Whether the key lives and is what the call was made for.
async fn may(sessions: &key_sessions::Shared, check: Ask, call: &Call) -> Result<(), Failure> {
    let key = sessions.check(check).await?;
    match key.id == call.key && key.generation <= call.generation {
        true => Ok(()),
        false => Err(Failure::Changed(Cause::ours("the call was compiled for an older catalog"))),
    }
}

/// The answer, for a key that has not died meanwhile. A database that cannot be asked lets nothing through: this
/// replica may be cut off.
async fn still(
    sessions: &key_sessions::Shared,
    check: Ask,
    answer: Result<CallOutcome, CallFailure>,
) -> Result<CallOutcome, CallFailure> {
    match sessions.check_again(check).await {
        Err(Doubt::Dead) => Err(Failure::Ended.into()),
        Err(Doubt::Unknown(failure)) if answer.is_ok() => {
            Err(CallFailure::Lost(format!("whether the key is still valid is unknown: {failure}")))
        }
        Ok(()) | Err(Doubt::Unknown(_)) => answer,
    }
}

/// The call, up to its end or to ours. False: the session must go.
async fn ran(
    sessions: &key_sessions::Shared,
    session: &mut Session,
    call: &Call,
    caller: &mut Caller,
    deadline: Instant,
) -> (Result<CallOutcome, CallFailure>, bool) {
    let (login, _) = sessions.login(&call.role);
    let running = Running { login, session: session.connection.session(), backend: &session.backend };
    match sessions.bounded(running, session.connection.call(call), caller, deadline).await {
        Bounded::Through(Called { answer, is_whole }) => (answer, is_whole),
        Bounded::Canceled(Called { answer, .. }) => (answer, false),
        Bounded::Terminated => (Err(Failure::Timeout.into()), false),
    }
}
