//! What became of deliveries, and dead letters that are to be sent again.

use axum::http::StatusCode;
use axum::response::Response;
use rowgate_core::problem::Problem;
use rowgate_pg::tenant::subscriptions::change::{self, Audit};
use rowgate_pg::tenant::subscriptions::past::{self, DeadLetter, Given};
use serde_json::{Value, json};

use super::answer::{ShownDeadLetter, ShownDelivery, json as answered};
use super::body::{Members, bad};
use super::{asked, asking, dead_letter_id, id, no_dead_letter, no_options, owned, page, received};
use crate::api::events::request::op_name;
use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::UnreadBody;
use crate::auth::credential::Caller;
use crate::server::respond::Refusal;

/// `GET /api/ddl/events/webhooks/{id}/deliveries?limit=&before=`
pub(crate) async fn deliveries(caller: Caller, target: RequestTarget) -> Result<Response, Refusal> {
    let context = asked(&caller).await?;
    let ((limit, before), id) = (page(&target)?, id(&target)?);
    owned(&caller, &context, &id).await?;
    let wrong = || bad("before takes the id of a delivery");
    let before: Option<i64> = before.map(|text| text.parse().map_err(|_| wrong())).transpose()?;
    let look =
        asking(move |conn| Box::pin(async move { past::deliveries(conn, &id, before, limit + 1).await }));
    let mut found = caller.tenant.on_deliveries(look).await?;
    let has_more = has_more(&mut found, limit);
    let shown: Vec<ShownDelivery<'_>> = found.iter().map(ShownDelivery::of).collect();
    Ok(answered(StatusCode::OK, &json!({"deliveries": shown, "hasMore": has_more})))
}

/// `GET /api/ddl/events/webhooks/{id}/dead-letters?limit=&before=`
pub(crate) async fn dead_letters(caller: Caller, target: RequestTarget) -> Result<Response, Refusal> {
    let context = asked(&caller).await?;
    let ((limit, before), id) = (page(&target)?, id(&target)?);
    owned(&caller, &context, &id).await?;
    let look = asking(move |conn| {
        Box::pin(async move { past::dead_letters(conn, &id, None, before.as_deref(), limit + 1).await })
    });
    let mut found = caller.tenant.on_deliveries(look).await?;
    let has_more = has_more(&mut found, limit);
    let shown: Vec<ShownDeadLetter<'_>> = found.iter().map(|it| ShownDeadLetter::of(it, None)).collect();
    Ok(answered(StatusCode::OK, &json!({"deadLetters": shown, "hasMore": has_more})))
}

/// `GET /api/ddl/events/webhooks/{id}/dead-letters/{dl}`. Of its changes it says which they are and not what stands in the rows, which
/// the key may not read any more.
pub(crate) async fn dead_letter(caller: Caller, target: RequestTarget) -> Result<Response, Refusal> {
    let context = asked(&caller).await?;
    no_options(&target)?;
    let (id, one) = (id(&target)?, dead_letter_id(&target)?);
    owned(&caller, &context, &id).await?;
    let look = asking(move |conn| {
        Box::pin(async move {
            let found = past::dead_letters(conn, &id, Some(&one), None, 1).await?.pop();
            let changes = match &found {
                Some(found) => past::changes(conn, &found.id).await?,
                None => Vec::new(),
            };
            Ok((found, changes))
        })
    });
    let (found, changes): (Option<DeadLetter>, Vec<Given>) = caller.tenant.on_deliveries(look).await?;
    let found = found.ok_or_else(no_dead_letter)?;
    let generation = found.first_event.split('.').next().unwrap_or_default();
    let catalog = &context.snapshot.catalog;
    let scope = context.snapshot.scope(&context.key);
    let shown: Vec<Value> = changes
        .iter()
        .map(|change| {
            let mut entities = catalog.entities.values().filter(|entity| {
                entity.relations.first().is_some_and(|table| i64::from(*table) == change.rel)
                    && scope.entities.contains_key(&entity.name)
            });
            json!({
                "EventId": format!("{generation}.{}.{}", change.tick, change.seq),
                "op": op_name(&change.op),
                "occurredAt": change.at,
                "entity": entities.next().map(|entity| entity.name.as_str()),
            })
        })
        .collect();
    Ok(answered(StatusCode::OK, &ShownDeadLetter::of(&found, Some(Value::Array(shown)))))
}

/// `POST /api/ddl/events/webhooks/{id}/dead-letters/{dl}/redrive`
pub(crate) async fn redrive(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let one = dead_letter_id(&target);
    send_again(caller, target, unread, one.map(Some)).await
}

/// `POST /api/ddl/events/webhooks/{id}/dead-letters/redrive`
pub(crate) async fn redrive_all(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    send_again(caller, target, unread, Ok(None)).await
}

async fn send_again(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
    one: Result<Option<String>, Problem>,
) -> Result<Response, Refusal> {
    let (request, context) = received(&caller, &target, unread, true).await?;
    let (id, one) = (id(&target)?, one?);
    owned(&caller, &context, &id).await?;
    Members::read(request.body_if_any()?, &[])?;
    let (owner, subject) = (context.key.id.clone(), id.clone());
    let redrive = asking(move |conn| {
        Box::pin(async move {
            if let Some(one) = &one {
                let found = past::dead_letters(conn, &subject, Some(one), None, 1).await?.pop();
                match found.map(|found| found.delivered_at.is_some()) {
                    None => return Ok(Err(no_dead_letter())),
                    Some(true) => {
                        return Ok(Err(bad(
                            "this dead letter was delivered; to send its events once more, replay from its first event",
                        )));
                    }
                    Some(false) => {}
                }
            }
            let of = Audit { key: &owner, action: "redrive", subject: &subject, n: None };
            change::redrive(conn, &subject, one.as_deref(), of).await.map(Ok)
        })
    });
    let n = caller.tenant.on_deliveries(redrive).await??;
    caller.tenant.note_subscriptions_changed();
    tracing::info!(tenant = %caller.tenant.slug, key = %context.key.id, subscription = id, n, "dead letters are to be sent again");
    Ok(answered(StatusCode::ACCEPTED, &json!({"deadLetters": n})))
}

/// Whether more is there than asked for, which is dropped.
fn has_more<T>(found: &mut Vec<T>, limit: i64) -> bool {
    let limit = usize::try_from(limit).unwrap_or_default();
    let has_more = limit < found.len();
    found.truncate(limit);
    has_more
}
