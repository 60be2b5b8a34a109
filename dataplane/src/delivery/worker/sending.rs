//! One request to the receiver: signed, sent, and judged.

use std::time::Duration;

use jiff::Timestamp;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Code;
use rowgate_core::webhook::destination::{Destination, Policy};
use rowgate_core::webhook::step::Failure;
use rowgate_pg::tenant::delivery::commit::Attempted;
use tokio::time::sleep;

use super::outcome::{excerpt, judged};
use super::{Outcome, OwnerDied, Worker};
use crate::delivery::batch::range;
use crate::delivery::message::Message;
use crate::delivery::sender::{Posted, SendFailure};

/// Between two looks whether the owner key of a request under way still lives.
const CHECK: Duration = Duration::from_millis(750);

const NO_SECRET: &str = "no secret of the subscription can be opened to sign with; rotate its secret";

impl Worker {
    /// Sends events, as a batch of that id, and looks meanwhile whether the owner key lives.
    pub(in crate::delivery) async fn send(
        &self,
        id: &Ulid,
        attempt: u32,
        replay: bool,
        events: &[(String, String)],
    ) -> Result<Outcome, OwnerDied> {
        let now = Timestamp::now();
        let message = Message {
            id: id.as_str(),
            kind: "row.batch",
            subscription: &self.claimed.id,
            attempt,
            replay,
            events: events.iter().map(|(_, event)| event.as_str()).collect(),
        };
        let body = message.body(now);
        let headers = message.headers(&self.claimed.headers, &self.secrets, now, &body);
        let allow_http = self.allow_http();
        let policy = Policy { allow_http, ranges: self.app.sender.ranges().to_vec() };
        let refused = |why: String| Posted { took: Duration::ZERO, result: Err(SendFailure::Refused(why)) };
        let sent = match Destination::parse(&self.claimed.url, &policy) {
            Err(refusal) => refused(refusal.to_string()),
            // nothing leaves unsigned
            Ok(_) if self.secrets.is_empty() => refused(NO_SECRET.to_owned()),
            Ok(destination) => {
                let post = self.app.sender.post(&destination, &policy, headers, body.clone());
                tokio::select! {
                    sent = post => sent,
                    () = self.owner_died() => return Err(OwnerDied),
                }
            }
        };
        let (failure, error, status, response) = judged(&sent);
        let counts = &self.tenant.deliveries.counts;
        match failure {
            None => {
                counts.delivered.add_one();
                counts.events.add(events.len() as u64);
            }
            Some(_) => counts.failed.add_one(),
        }
        let attempted = Attempted {
            took_ms: i32::try_from(sent.took.as_millis()).unwrap_or(i32::MAX),
            n_bytes: i32::try_from(body.len()).unwrap_or(i32::MAX),
            status,
            request: failure.is_some().then(|| excerpt(&body)),
            error,
            response,
            ..attempted(id, attempt, events)
        };
        Ok(Outcome { attempted, failure })
    }

    /// An attempt that ended before there was something to send.
    pub(in crate::delivery) fn unsent(
        &self,
        id: &Ulid,
        attempt: u32,
        events: &[(String, String)],
        error: &str,
    ) -> Outcome {
        self.tenant.deliveries.counts.failed.add_one();
        let attempted = Attempted { error: Some(error.to_owned()), ..attempted(id, attempt, events) };
        Outcome { attempted, failure: Some(Failure::Payload) }
    }

    pub(in crate::delivery) fn allow_http(&self) -> bool {
        self.tenant.current().is_some_and(|now| now.catalog.limits.webhooks_allow_http)
    }

    /// Ends when the owner key is dead. While the database cannot be asked nothing is known, and what is under way has left already.
    async fn owner_died(&self) {
        loop {
            sleep(CHECK).await;
            let looked = self.tenant.authenticate_fresh(&self.caller.credential).await;
            if looked.is_err_and(|problem| problem.code == Code::Unauthorized) {
                return;
            }
        }
    }
}

/// Of these events, before any was sent.
fn attempted(batch: &Ulid, attempt: u32, events: &[(String, String)]) -> Attempted {
    let (first_event, last_event) = range(events);
    Attempted {
        batch: batch.clone(),
        attempt: i32::try_from(attempt).unwrap_or(i32::MAX),
        took_ms: 0,
        n_events: i32::try_from(events.len()).unwrap_or(i32::MAX),
        n_bytes: 0,
        first_event,
        last_event,
        status: None,
        request: None,
        error: None,
        response: None,
    }
}
