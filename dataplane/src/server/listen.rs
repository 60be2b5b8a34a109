//! Accepting connections and serving HTTP/1.1 on them, within bounds that strangers cannot move.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::app::Tasks;
use crate::server::connection::lingering_close::LingeringClose;
use crate::server::connection::malformed_requests::ExplainMalformed;
use crate::server::connection::write_timeout::WriteTimeout;
use crate::server::limits;
use crate::server::metrics::UnparsedRequests;

/// A client that takes longer for its headers is cut off; so is one that stays silent between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Beyond these, clients wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 10_000;
/// After a failed accept, which is mostly a lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// When to stop: `drain` ends accepting and idle connections, `cut` what is still in flight.
#[derive(Debug, Clone)]
pub struct ShutdownSignals {
    pub drain: CancellationToken,
    pub cut: CancellationToken,
}

/// Accepts until `signals.drain`, each connection in a task of `tasks`, with what `service` makes for its peer. A client that
/// takes nothing of its answer for `timeout` is cut off. What is no request is counted in `unparsed`.
pub async fn serve<S>(
    listener: TcpListener,
    service: impl Fn(IpAddr) -> S + Send,
    tasks: Tasks,
    timeout: Duration,
    unparsed: Arc<UnparsedRequests>,
    signals: ShutdownSignals,
) where
    S: Send + 'static,
    S: hyper::service::Service<hyper::Request<Incoming>, Response = Response, Error = Infallible>,
    S::Future: Send,
{
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let slot = slots.clone().acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            () = signals.drain.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            tracing::warn!(cause = ?accepted.err(), "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        // Without it small answers may wait for a delayed ACK; where it fails the connection is dead anyway.
        let _small_answers_at_once = stream.set_nodelay(true);
        let stream = ExplainMalformed::new(LingeringClose::new(WriteTimeout::new(stream, timeout)));
        let connection = connection(stream, service(peer.ip()), signals.clone());
        let unparsed = unparsed.clone();
        tasks.start(async move {
            if let Err(error) = connection.await {
                note(&unparsed, &error);
            }
            drop(slot);
        });
    }
}

/// A client that goes away is its own affair.
fn note(unparsed: &UnparsedRequests, error: &hyper::Error) {
    if error.is_parse_too_large() {
        unparsed.too_large.add_one();
    } else if error.is_parse() {
        unparsed.malformed.add_one();
    }
}

async fn connection<S>(
    stream: ExplainMalformed<LingeringClose<WriteTimeout<TcpStream>>>,
    service: S,
    signals: ShutdownSignals,
) -> Result<(), hyper::Error>
where
    S: HttpService<Incoming, ResBody = axum::body::Body, Error = Infallible> + Send,
{
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(limits::MAX_READ_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    tokio::select! {
        ended = serving.as_mut() => return ended,
        () = signals.drain.cancelled() => {}
    }
    serving.as_mut().graceful_shutdown();
    tokio::select! {
        ended = serving => ended,
        () = signals.cut.cancelled() => Ok(()),
    }
}
