//! Subscriptions are made, read, changed and deleted.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::events::Position;
use rowgate_pg::tenant::subscriptions::change::{self, Audit, New};
use rowgate_pg::tenant::subscriptions::{self, Subscription};
use rowgate_program::entropy;
use serde_json::json;

use super::answer::{Shown, json as answered, secret_json};
use super::draft::Draft;
use super::{asked, asking, check, found, id, is_served, managed, no_options, not_found, received, secret};
use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::UnreadBody;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::server::respond::Refusal;

/// `POST /api/ddl/events/webhooks`
pub(crate) async fn create(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let (request, _) = received(&caller, &target, unread, false).await?;
    let draft = Draft::parse(request.body()?)?;
    let spec = draft.made()?;
    let (context, rels) = check::tables(&caller, spec.tables.as_deref()).await?;
    check::url(&spec.url, &check::policy(&app, &context)).await?;
    check::payload_query(&caller, &context, &spec, &rels).await?;
    let (made, owner) = (entropy::ulid(), context.key.id.clone());
    let (secret, stored) = secret::new(&app, &made);
    let tick = caller.tenant.make_tick().await?;
    let start = Position { tick: tick.number + 1, seq: 0 };
    let most = context.snapshot.catalog.limits.subscriptions;
    let (new_id, key) = (made.clone(), owner.clone());
    let create = asking(move |conn| {
        Box::pin(async move {
            let new = New { id: &new_id, owner: &key, spec: &spec, rels: &rels, start, secret: stored };
            change::create(conn, &new, most).await
        })
    });
    if !caller.tenant.on_deliveries(create).await? {
        return Err(Problem::subscriptions_exceeded(most).into());
    }
    caller.tenant.note_subscriptions_changed();
    app.subscription_facts.announce(&caller.tenant.id, &made, &app.tenants.wake).await;
    tracing::info!(tenant = %caller.tenant.slug, key = %owner, subscription = %made, "a webhook subscription was created");
    let subscription = found(&caller, &context, made.as_str()).await?;
    let mut response = secret_json(StatusCode::CREATED, &Shown::of(&subscription, Some(&secret.reveal())));
    let location = HeaderValue::try_from(format!("/api/ddl/events/webhooks/{made}"));
    response.headers_mut().insert(LOCATION, location.expect("an id is letters and digits"));
    Ok(response)
}

/// `GET /api/ddl/events/webhooks`
pub(crate) async fn list(caller: Caller, target: RequestTarget) -> Result<Response, Refusal> {
    let context = asked(&caller).await?;
    no_options(&target)?;
    let subscriptions = match is_served(&context) {
        false => Vec::new(),
        true => {
            let newest = caller.tenant.make_tick().await?.number;
            let owner = context.key.id.clone();
            let list = asking(move |conn| {
                Box::pin(async move { subscriptions::list(conn, owner.as_str(), newest).await })
            });
            caller.tenant.on_deliveries(list).await?
        }
    };
    let shown: Vec<Shown<'_>> = subscriptions.iter().map(|it| Shown::of(it, None)).collect();
    Ok(answered(StatusCode::OK, &json!({"subscriptions": shown})))
}

/// `GET /api/ddl/events/webhooks/{id}`
pub(crate) async fn get(caller: Caller, target: RequestTarget) -> Result<Response, Refusal> {
    let context = asked(&caller).await?;
    no_options(&target)?;
    let subscription = found(&caller, &context, &id(&target)?).await?;
    Ok(answered(StatusCode::OK, &Shown::of(&subscription, None)))
}

/// `PATCH /api/ddl/events/webhooks/{id}`
pub(crate) async fn patch(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let (request, context) = received(&caller, &target, unread, false).await?;
    let id = id(&target)?;
    let Subscription { origin, spec: old, version, state, .. } = found(&caller, &context, &id).await?;
    if origin != "api" {
        return Err(managed().into());
    }
    let draft = Draft::parse(request.body()?)?;
    let spec = draft.changed(old)?;
    let mut rels = None;
    if draft.names_events() || draft.payload_query.is_some() {
        let (context, tables) = check::tables(&caller, spec.tables.as_deref()).await?;
        check::payload_query(&caller, &context, &spec, &tables).await?;
        rels = draft.names_events().then_some(tables);
    }
    if draft.url.is_some() {
        check::url(&spec.url, &check::policy(&app, &context)).await?;
    }
    let enables = draft.suspend == Some(false) && state == "disabled";
    let (owner, subject) = (context.key.id.clone(), id.clone());
    let update = asking(move |conn| {
        Box::pin(async move {
            let action = if enables { "enable" } else { "update" };
            let of = Audit { key: &owner, action, subject: &subject, n: None };
            change::update(conn, &subject, version, &spec, rels.as_deref(), enables, of).await
        })
    });
    if !caller.tenant.on_deliveries(update).await? {
        let what = "the subscription was changed or deleted by another request at the same time; read it again, and retry";
        return Err(Problem::new(Code::SerializationFailure, what).into());
    }
    caller.tenant.note_subscriptions_changed();
    tracing::info!(tenant = %caller.tenant.slug, key = %context.key.id, subscription = id, enables, "a webhook subscription was changed");
    let subscription = found(&caller, &context, &id).await?;
    Ok(answered(StatusCode::OK, &Shown::of(&subscription, None)))
}

/// `DELETE /api/ddl/events/webhooks/{id}`
pub(crate) async fn delete(caller: Caller, target: RequestTarget) -> Result<Response, Refusal> {
    let context = asked(&caller).await?;
    no_options(&target)?;
    let id = id(&target)?;
    if found(&caller, &context, &id).await?.origin != "api" {
        return Err(managed().into());
    }
    let (owner, subject) = (context.key.id.clone(), id.clone());
    let delete = asking(move |conn| {
        Box::pin(async move {
            let of = Audit { key: &owner, action: "delete", subject: &subject, n: None };
            change::delete(conn, &subject, of).await
        })
    });
    if !caller.tenant.on_deliveries(delete).await? {
        return Err(not_found().into());
    }
    caller.tenant.note_subscriptions_changed();
    tracing::info!(tenant = %caller.tenant.slug, key = %context.key.id, subscription = id, "a webhook subscription was deleted");
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
