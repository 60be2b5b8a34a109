//! What became of a request, as it is kept and as the state machine takes it.

use rowgate_core::webhook::step::Failure;

use crate::delivery::sender::{Posted, SendFailure};

/// Of what was sent and of what was answered, this much is kept to be looked at.
const EXCERPT: usize = 4096;

/// The failure, its words, the status and the beginning of an answer.
pub(super) fn judged(sent: &Posted) -> (Option<Failure>, Option<String>, Option<i32>, Option<String>) {
    match &sent.result {
        Ok(answer) => {
            let status = answer.status;
            let response = Some(excerpt(&answer.body));
            let is_delivered = (200..300).contains(&status);
            let failure = Failure::Answered { status, retry_after: answer.retry_after };
            let error = format!("the receiver answered {status}");
            match is_delivered {
                true => (None, None, Some(status.into()), response),
                false => (Some(failure), Some(error), Some(status.into()), response),
            }
        }
        Err(SendFailure::Refused(why)) => (Some(Failure::Refused), Some(why.clone()), None, None),
        Err(SendFailure::TimedOut) => {
            let error = "the receiver did not answer within 15 s".to_owned();
            (Some(Failure::TimedOut), Some(error), None, None)
        }
        Err(SendFailure::Unreachable(why)) => (Some(Failure::Unreachable), Some(why.clone()), None, None),
    }
}

/// The beginning, as text that PostgreSQL stores.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT)]);
    text.replace('\0', "\u{fffd}")
}
