//! Secrets that sign: made here, shown once, stored sealed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rowgate_core::name::Ulid;
use rowgate_core::problem::{Code, Problem};
use rowgate_core::webhook::secret::WebhookSecret;
use rowgate_pg::tenant::subscriptions::change::{
    self, Audit, MAX_SECRETS, NewSecret, OVERLAP_HOURS, Rotated,
};
use rowgate_program::entropy;
use serde_json::json;

use super::answer::secret_json;
use super::body::Members;
use super::{asking, id, not_found, owned, received};
use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::UnreadBody;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::server::respond::Refusal;

/// A new secret of the subscription, and as it is stored.
pub(super) fn new(app: &App, subscription: &Ulid) -> (WebhookSecret, NewSecret) {
    of(app, subscription.as_str())
}

fn of(app: &App, subscription: &str) -> (WebhookSecret, NewSecret) {
    let secret = WebhookSecret::generate(&entropy::bytes());
    let sealed = app.sealing_key.seal(subscription, &secret, &entropy::bytes());
    (secret, NewSecret { id: entropy::ulid(), sealed })
}

/// `POST /api/ddl/events/webhooks/{id}/secret/rotate`
pub(crate) async fn rotate(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let (request, context) = received(&caller, &target, unread, true).await?;
    let id = id(&target)?;
    owned(&caller, &context, &id).await?;
    Members::read(request.body_if_any()?, &[])?;
    let (secret, stored) = of(&app, &id);
    let (owner, subject) = (context.key.id.clone(), id.clone());
    let rotate = asking(move |conn| {
        Box::pin(async move {
            let of = Audit { key: &owner, action: "rotate", subject: &subject, n: None };
            change::rotate(conn, &subject, &stored, of).await
        })
    });
    match caller.tenant.on_deliveries(rotate).await? {
        Rotated::Done => {}
        Rotated::Full => {
            let what = format!(
                "{MAX_SECRETS} secrets of this subscription sign already; each stops {OVERLAP_HOURS} hours after it was replaced, so rotate later"
            );
            return Err(Problem { retry_after: Some(3600), ..Problem::new(Code::RateLimited, what) }.into());
        }
        Rotated::Gone => return Err(not_found().into()),
    }
    caller.tenant.note_subscriptions_changed();
    tracing::info!(tenant = %caller.tenant.slug, key = %context.key.id, subscription = id, "the secret of a webhook subscription was rotated");
    let answer = json!({"secret": secret.reveal(), "previousSignsForHours": OVERLAP_HOURS});
    Ok(secret_json(StatusCode::OK, &answer))
}
