//! One call: its session, the check of its key, the call itself, its answer, and what becomes of the session.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::call_queue::CallPermit;
use super::session_cache::{Of, Session};
use super::{Call, CallOutcome, Shared};
use crate::failure::PgError;
use crate::tenant::backends::{self, Backend};
use crate::wire::ask::Ask;
use crate::wire::connection::called::Called;
use crate::wire::connection::connect::cancel;
use crate::wire::failure::{CallFailure, Cause, Failure};

/// How long a call that nobody waits for, or whose cancellation was asked for, may take to end by itself.
const LINGER: Duration = Duration::from_secs(1);
/// The answer of a call that took longer is told only to a key that still lives then.
const LONG: Duration = Duration::from_secs(1);

type Caller = oneshot::Sender<Result<CallOutcome, CallFailure>>;

/// Everything up to the answer and the session's next use. The caller may go at any time.
pub(super) async fn run(shared: Arc<Shared>, permit: CallPermit, check: Ask, call: Call, mut caller: Caller) {
    let of = Of {
        key: call.key.clone(),
        role: call.role.clone(),
        statement_timeout_ms: call.statement_timeout_ms.clamp(1, i32::MAX as u32),
    };
    let mut session = match shared.session(of).await {
        Ok(session) => session,
        Err(failure) => return tell(caller, Err(failure)),
    };
    // The session was noted before its key is asked for: from here on a revocation finds it.
    if let Err(failure) = shared.check(check.clone(), &call).await {
        if !matches!(failure, Failure::DeadKey | Failure::Ended) {
            shared.sessions.put(session);
        }
        return tell(caller, Err(failure.into()));
    }
    if caller.is_closed() {
        return shared.sessions.put(session);
    }
    let began = Instant::now();
    let (answer, is_whole) = shared.ran(&mut session, &call, &mut caller).await;
    let answer = answer.map_err(|failure| match failure {
        CallFailure::Any(Failure::Unavailable(cause)) => CallFailure::Lost(cause),
        failure => failure,
    });
    let is_doubtful = matches!(answer, Err(CallFailure::Lost(_) | CallFailure::Any(Failure::Timeout)));
    let answer = match is_doubtful || LONG <= began.elapsed() {
        true => shared.still(check, answer).await,
        false => answer,
    };
    // Before the answer: whoever calls again at once finds the session.
    let (_, role) = shared.login(&call.role);
    if is_whole && matches!(timeout(LINGER, session.connection.renew(role)).await, Ok(true)) {
        shared.sessions.put(session);
    }
    drop(permit);
    tell(caller, answer);
}

fn tell(caller: Caller, answer: Result<CallOutcome, CallFailure>) {
    // Nobody may be there to hear it.
    let _heard = caller.send(answer);
}

impl Shared {
    /// A session of the key's, one of before or a new one. While none can be made most are refused at once.
    async fn session(&self, of: Of) -> Result<Session, CallFailure> {
        if let Some(session) = self.sessions.take(&of) {
            return Ok(session);
        }
        // Those that are open beside the calls under way, this one among them.
        self.sessions.leave(self.limits.size.saturating_sub(self.queue.load().0));
        let permit = self.sessions.permit(self.limits.wait).await;
        let busy = || Failure::Busy("no server connection became free for the call in time".to_owned());
        let permit = permit.ok_or_else(busy)?;
        let attempt = self.outage.attempt(Instant::now()).map_err(Failure::Unavailable)?;
        let failure = match timeout(self.limits.connect, self.open(of, permit)).await {
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
            CallFailure::Any(Failure::Unavailable(cause)) => attempt.failed(Instant::now(), cause),
            // Who may not log in says nothing of others.
            _ => attempt.succeeded(),
        }
        Err(failure)
    }

    /// Whether the key lives and is what the call was made for.
    async fn check(&self, check: Ask, call: &Call) -> Result<(), Failure> {
        let key = self.pool.read(check, 0).await?.key;
        match key.id == call.key && key.generation <= call.generation {
            true => Ok(()),
            false => Err(Failure::Changed(Cause::ours("the call was compiled for an older catalog"))),
        }
    }

    /// The answer, for a key that has not died meanwhile. A database that cannot be asked lets nothing through: this
    /// replica may be cut off.
    async fn still(
        &self,
        check: Ask,
        answer: Result<CallOutcome, CallFailure>,
    ) -> Result<CallOutcome, CallFailure> {
        // The key is what matters here; the call is past whatever the catalog says.
        match self.pool.read(Ask { watched: None, ..check }, 0).await {
            Err(Failure::DeadKey | Failure::Ended) => Err(Failure::Ended.into()),
            Err(failure) if answer.is_ok() && !matches!(failure, Failure::WrongRole(_)) => {
                Err(CallFailure::Lost(format!("whether the key is still valid is unknown: {failure}")))
            }
            _ => answer,
        }
    }

    /// The call, up to its end or to ours: when it takes too long, or nobody waits for it. False: the session must go.
    async fn ran(
        &self,
        session: &mut Session,
        call: &Call,
        caller: &mut Caller,
    ) -> (Result<CallOutcome, CallFailure>, bool) {
        let allowed = Duration::from_millis(call.statement_timeout_ms.into()) + self.limits.grace;
        let deadline = Instant::now() + allowed;
        let name = session.connection.session();
        let exchange = session.connection.call(call);
        tokio::pin!(exchange);
        let gone = async {
            caller.closed().await;
            self.counters.note_abandoned();
            sleep(LINGER).await;
        };
        tokio::select! {
            biased;
            Called { answer, is_whole } = &mut exchange => return (answer, is_whole),
            () = gone => {}
            () = sleep_until(deadline) => {}
        }
        // It is asked to end, and then it is ended: a routine can trap the first, and go on without its client.
        let (login, _) = self.login(&call.role);
        let asked = timeout(self.limits.connect, cancel(&login, name)).await;
        tracing::debug!(?asked, ?login, "a call takes too long, or its client disconnected");
        if let Ok(Called { answer, .. }) = timeout(LINGER, &mut exchange).await {
            return (answer, false);
        }
        let ended = timeout(self.limits.connect, self.end(&session.backend)).await;
        match ended {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) | Err(_) => {
                tracing::warn!(?login, "a call that ignores its cancellation could not be terminated")
            }
            Ok(Err(error)) => {
                tracing::warn!(?login, %error, "a call that ignores its cancellation could not be terminated")
            }
        }
        (Err(Failure::Timeout.into()), false)
    }

    async fn end(&self, backend: &Backend) -> Result<bool, PgError> {
        let mut auth = self.registry.acquire().await?;
        let ended = backends::end(&mut auth, backend, 0).await;
        auth.done(ended)
    }
}
