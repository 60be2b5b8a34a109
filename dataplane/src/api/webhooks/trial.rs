//! A signed message without events, sent at once, so that a receiver can be tried out.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use rowgate_core::problem::Problem;
use rowgate_core::webhook::destination::Destination;
use rowgate_core::webhook::secret::WebhookSecret;
use rowgate_pg::tenant::subscriptions;
use rowgate_pg::tenant::subscriptions::change::{self, Audit};
use rowgate_program::entropy;
use serde_json::{Value, json};

use super::answer::json as answered;
use super::body::Members;
use super::{asking, check, found, id, received};
use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::UnreadBody;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::delivery::message::Message;
use crate::delivery::sender::SendFailure;
use crate::server::respond::Refusal;

/// `POST /api/ddl/events/webhooks/{id}/test`
pub(crate) async fn send(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let (request, context) = received(&caller, &target, unread, true).await?;
    let id = id(&target)?;
    let subscription = found(&caller, &context, &id).await?;
    Members::read(request.body_if_any()?, &[])?;
    let (owner, subject) = (context.key.id.clone(), id.clone());
    let look = asking(move |conn| {
        Box::pin(async move {
            let of = Audit { key: &owner, action: "test", subject: &subject, n: None };
            change::audit(conn, of).await?;
            subscriptions::secrets(conn, &subject).await
        })
    });
    let sealed = caller.tenant.on_deliveries(look).await?;
    let secrets: Option<Vec<WebhookSecret>> =
        sealed.iter().map(|sealed| app.sealing_key.open(&id, sealed)).collect();
    let secrets = secrets.filter(|secrets| !secrets.is_empty()).ok_or_else(Problem::internal)?;
    let (message_id, now) = (entropy::ulid(), Timestamp::now());
    let message = Message {
        id: message_id.as_str(),
        kind: "test",
        subscription: &id,
        attempt: 1,
        replay: false,
        events: Vec::new(),
    };
    let policy = check::policy(&app, &context);
    let answer = match Destination::parse(&subscription.spec.url, &policy) {
        Err(refusal) => outcome(None, 0, Some(refusal.to_string())),
        Ok(destination) => {
            let _place = app.sender.place(&subscription.spec.url, &caller.tenant.id).await;
            let body = message.body(now);
            let headers = message.headers(&subscription.spec.headers, &secrets, now, &body);
            let sent = app.sender.post(&destination, &policy, headers, body).await;
            let took = sent.took.as_millis();
            match sent.result {
                Ok(answer) if (200..300).contains(&answer.status) => outcome(Some(answer.status), took, None),
                Ok(answer) => {
                    let error = format!("the receiver answered {}", answer.status);
                    outcome(Some(answer.status), took, Some(error))
                }
                Err(SendFailure::TimedOut) => {
                    outcome(None, took, Some("the receiver did not answer within 15 s".to_owned()))
                }
                Err(SendFailure::Refused(why) | SendFailure::Unreachable(why)) => {
                    outcome(None, took, Some(why))
                }
            }
        }
    };
    tracing::info!(tenant = %caller.tenant.slug, key = %context.key.id, subscription = id, "a test message was sent to a webhook");
    Ok(answered(StatusCode::OK, &answer))
}

fn outcome(status: Option<u16>, took_ms: u128, error: Option<String>) -> Value {
    let took_ms = u64::try_from(took_ms).unwrap_or(u64::MAX);
    json!({"delivered": error.is_none(), "status": status, "durationMs": took_ms, "error": error})
}
