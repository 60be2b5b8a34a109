//! Ctrl-C.

use crate::failure::Failure;

/// Completes at Ctrl-C.
pub(crate) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // then the signal ends the process as it always does
        std::future::pending::<()>().await;
    }
}

/// The work, or its end by Ctrl-C where nothing is left behind that must be told.
pub(crate) async fn or_interrupted(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::select! {
        done = work => done,
        () = interrupted() => Err(Failure::Interrupted(None)),
    }
}
