//! A subscription is set back, so that events are sent to it again.

use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::replay::{self, From, ReplayError, Replayed};
use rowgate_pg::tenant::subscriptions::change::{self, Audit};
use serde_json::json;

use super::answer::json as answered;
use super::body::{Members, bad};
use super::{asking, id, not_found, owned, received};
use crate::api::events::request::{After, position};
use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::UnreadBody;
use crate::auth::credential::Caller;
use crate::server::respond::Refusal;

const MEMBERS: [&str; 4] = ["fromRetentionStart", "fromEventId", "fromUtc", "dryRun"];

/// `POST /api/ddl/events/webhooks/{id}/replay`
pub(crate) async fn replay(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let (request, context) = received(&caller, &target, unread, false).await?;
    let id = id(&target)?;
    owned(&caller, &context, &id).await?;
    let (from, dry_run) = parse(request.body()?)?;
    // what was changed up to now is counted
    caller.tenant.make_tick().await?;
    let (owner, subject) = (context.key.id.clone(), id.clone());
    let set_back = asking(move |conn| {
        Box::pin(async move {
            let replayed = match replay::replay(conn, &subject, &from, dry_run).await {
                Ok(replayed) => replayed,
                Err(ReplayError::Pg(error)) => return Err(error),
                Err(refusal) => return Ok(Err(refusal)),
            };
            if !dry_run {
                let of =
                    Audit { key: &owner, action: "replay", subject: &subject, n: Some(replayed.n_events) };
                change::audit(conn, of).await?;
            }
            Ok(Ok(replayed))
        })
    });
    let replayed: Replayed = caller.tenant.on_deliveries(set_back).await?.map_err(|error| refused(&error))?;
    if !dry_run {
        caller.tenant.note_subscriptions_changed();
        let n = replayed.n_events;
        tracing::info!(tenant = %caller.tenant.slug, key = %context.key.id, subscription = id, n, "a webhook subscription is replayed");
    }
    let answer = json!({"from": replayed.cursor(), "events": replayed.n_events, "dryRun": dry_run});
    Ok(answered(StatusCode::ACCEPTED, &answer))
}

fn parse(bytes: &[u8]) -> Result<(From, bool), Problem> {
    let mut body = Members::read(Some(bytes), &MEMBERS)?;
    let start = body.flag("fromRetentionStart")?;
    let (event, utc) = (body.text("fromEventId")?, body.text("fromUtc")?);
    let dry_run = body.flag("dryRun")?.unwrap_or_default();
    let from = match (start, event, utc) {
        (Some(true), None, None) => From::RetentionStart,
        (None | Some(false), Some(event), None) => event_id(&event)?,
        (None | Some(false), None, Some(utc)) => From::Utc(time(&utc)?),
        _ => {
            return Err(bad(
                "a replay begins at exactly one place; send one of \"fromRetentionStart\": true, fromEventId and fromUtc",
            ));
        }
    };
    Ok((from, dry_run))
}

fn event_id(text: &str) -> Result<From, Problem> {
    match position(Some(text)) {
        Ok(After::Position { generation, at }) => {
            Ok(From::EventId { generation, tick: at.tick, seq: at.seq })
        }
        _ => Err(Problem::new(
            Code::InvalidCursor,
            "fromEventId takes the EventId of an event, such as 1.42.1007",
        )),
    }
}

fn time(text: &str) -> Result<Timestamp, Problem> {
    let wrong = || {
        let what = "fromUtc takes a time of RFC 3339 with its zone, such as 2026-11-25T08:30:00Z";
        Problem::new(Code::InvalidValue, what)
    };
    text.parse().map_err(|_| wrong())
}

fn refused(error: &ReplayError) -> Problem {
    match error {
        ReplayError::NoSubscription => not_found(),
        ReplayError::UnknownEvent => {
            let what = "fromEventId is not the EventId of an event of the subscription's tables; send one that it was given";
            Problem::new(Code::InvalidCursor, what)
        }
        ReplayError::ExpiredEvent => {
            let what = "the event that fromEventId names is no longer kept; send \"fromRetentionStart\": true for the oldest that is";
            Problem::new(Code::InvalidCursor, what)
        }
        ReplayError::Pg(_) => Problem::internal(),
    }
}
