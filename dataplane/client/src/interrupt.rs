//! Ctrl-C, and SIGTERM, which schedulers send: both end a command in the same way.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Completes when the command is to stop.
pub(crate) async fn interrupted() {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        // then a signal ends the process as it always does
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// The work, or its end by a signal where nothing is left behind that must be said.
pub(crate) async fn or_interrupted(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::select! {
        done = work => done,
        () = interrupted() => Err(Failure::Interrupted(None)),
    }
}
