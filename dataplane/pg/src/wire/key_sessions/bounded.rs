//! The end of a statement that takes too long, or that nobody waits for: it is asked to end, and then it is ended.

use std::time::Duration;

use rowgate_core::backoff;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{CONNECT_TIMEOUT, Shared};
use crate::connect::login::Login;
use crate::failure::PgError;
use crate::tenant::backends::{self, Backend};
use crate::wire::connection::Session;
use crate::wire::connection::connect::cancel;

/// How long a statement that nobody waits for, or whose cancellation was asked for, may take to end by itself.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// The answer of a statement that took longer is given only to a key that still lives then.
pub(super) const LONG: Duration = Duration::from_secs(1);

/// Between two looks for a session that was ended.
const MIN_LOOK: Duration = Duration::from_millis(100);
const MAX_LOOK: Duration = Duration::from_secs(5);

/// How a statement came to its end.
pub(super) enum Bounded<T> {
    /// By itself.
    Through(T),
    /// It was asked to.
    Canceled(T),
    /// Its session was ended.
    Terminated,
}

/// Where a statement runs, as the server calls it.
pub(super) struct Running<'a> {
    pub(super) login: Login,
    pub(super) session: Session,
    pub(super) backend: &'a Backend,
}

impl Shared {
    /// Runs the exchange to its end or to ours: at the deadline, or a little after its caller has gone.
    pub(super) async fn bounded<T, A>(
        &self,
        running: Running<'_>,
        exchange: impl Future<Output = T>,
        caller: &mut oneshot::Sender<A>,
        deadline: Instant,
    ) -> Bounded<T> {
        let Running { login, session, backend } = running;
        tokio::pin!(exchange);
        let gone = async {
            caller.closed().await;
            self.counters.note_abandoned();
            sleep(GRACE).await;
        };
        tokio::select! {
            biased;
            ended = &mut exchange => return Bounded::Through(ended),
            () = gone => {}
            () = sleep_until(deadline) => {}
        }
        // A function can trap the first, and go on without its client.
        let asked = timeout(CONNECT_TIMEOUT, cancel(&login, session)).await;
        tracing::debug!(?asked, ?login, "a statement takes too long, or its client disconnected");
        if let Ok(ended) = timeout(GRACE, &mut exchange).await {
            return Bounded::Canceled(ended);
        }
        match timeout(CONNECT_TIMEOUT, self.end(backend)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) | Err(_) => {
                tracing::warn!(?login, "a statement that ignores its cancellation could not be terminated")
            }
            Ok(Err(error)) => {
                tracing::warn!(?login, %error, "a statement that ignores its cancellation could not be terminated")
            }
        }
        Bounded::Terminated
    }

    /// Waits until a session that was ended is gone, or `is_over`: a loop in PostgreSQL that looks for no interrupt, such as that of
    /// strpos, goes on with a core until it is through, and so long it counts as what it is.
    pub(super) async fn until_gone(&self, backend: &Backend, is_over: impl Fn() -> bool) {
        let mut n_looks = 0;
        while !is_over() {
            sleep(backoff::nth(MIN_LOOK, MAX_LOOK, n_looks)).await;
            n_looks += 1;
            let look = async {
                let mut registry = self.registry.acquire().await?;
                let is_there = backends::is_there(&mut registry, backend).await;
                registry.done(is_there)
            };
            // a server that does not answer is asked again
            if let Ok(Ok(false)) = timeout(CONNECT_TIMEOUT, look).await {
                return;
            }
        }
    }

    async fn end(&self, backend: &Backend) -> Result<bool, PgError> {
        let mut auth = self.auth.acquire().await?;
        let ended = backends::end(&mut auth, backend, 0).await;
        auth.done(ended)
    }
}
