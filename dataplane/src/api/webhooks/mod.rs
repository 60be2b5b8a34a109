//! `/api/ddl/events/webhooks`: webhook subscriptions. Each belongs to the key that made it, and is there for that key alone.

mod answer;
mod body;
mod check;
mod draft;
pub(crate) mod manage;
pub(crate) mod past;
pub(crate) mod replay;
pub(crate) mod secret;
pub(crate) mod trial;

use futures_util::future::BoxFuture;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::lookups::PgConnection;
use rowgate_pg::tenant::subscriptions::{self, Subscription};
use rowgate_sql::rest::query_string;

use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::{UnreadBody, WriteRequest};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::server::path;
use body::bad;

const MAX_PAGE: i64 = 100;
const DEFAULT_PAGE: i64 = 20;

/// The subscription that the path names.
fn id(target: &RequestTarget) -> Result<String, Problem> {
    path::decode(target.path().split('/').nth(5).unwrap_or_default())
}

/// The dead letter that the path names.
fn dead_letter_id(target: &RequestTarget) -> Result<String, Problem> {
    path::decode(target.path().split('/').nth(7).unwrap_or_default())
}

/// One answer for a subscription that is absent and for one of another key.
fn not_found() -> Problem {
    let what =
        "this API key has no such webhook subscription; GET /api/ddl/events/webhooks lists those that it has";
    Problem::new(Code::NotFound, what)
}

fn no_dead_letter() -> Problem {
    Problem::new(
        Code::NotFound,
        "the subscription has no such dead letter; GET its dead-letters lists those that it has",
    )
}

/// Of one that Kubernetes declares.
fn managed() -> Problem {
    let what = "a WebhookSubscription in Kubernetes declares this subscription; change or delete it there";
    Problem::new(Code::ManagedByKubernetes, what)
}

fn no_options(target: &RequestTarget) -> Result<(), Problem> {
    match target.query().is_empty() {
        true => Ok(()),
        false => Err(bad("this URL takes no options; leave out everything after the ?")),
    }
}

/// Whether the tenant's database has what subscriptions need: some table's changes are captured.
fn is_served(context: &KeyContext) -> bool {
    let is_away = || context.snapshot.scope(&context.key).lacks_events(|_, _, _| true);
    context.snapshot.catalog.entities.values().any(|entity| entity.events) || is_away()
}

/// Passes a question on as it is, with the lifetimes that `Tenant::on_deliveries` wants.
fn asking<T, F>(ask: F) -> F
where
    F: for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, PgError>>,
{
    ask
}

/// The key of now, which may ask.
async fn asked(caller: &Caller) -> Result<KeyContext, Problem> {
    caller.authenticate_fresh().await
}

/// The body of a request without options, and the key that lives now.
async fn received(
    caller: &Caller,
    target: &RequestTarget,
    unread: UnreadBody,
    may_be_none: bool,
) -> Result<(WriteRequest, KeyContext), Problem> {
    let may = |_: &KeyContext, head: &crate::api::rest::write_request::Head| {
        no_options(target)?;
        if may_be_none { head.fits_if_any() } else { head.fits() }
    };
    let request = unread.receive(caller, may).await?;
    // the body may have been waited for
    let context = caller.tenant.authenticate_fresh(&caller.credential).await?;
    Ok((request, context))
}

/// The subscription as it is now, if it is the key's.
async fn found(caller: &Caller, context: &KeyContext, id: &str) -> Result<Subscription, Problem> {
    if !is_served(context) {
        return Err(not_found());
    }
    let newest = caller.tenant.make_tick().await?.number;
    let (owner, id) = (context.key.id.clone(), id.to_owned());
    let find = asking(move |conn| {
        Box::pin(async move { subscriptions::find(conn, owner.as_str(), &id, newest).await })
    });
    caller.tenant.on_deliveries(find).await?.ok_or_else(not_found)
}

/// Refuses what is not the key's.
async fn owned(caller: &Caller, context: &KeyContext, id: &str) -> Result<(), Problem> {
    if !is_served(context) {
        return Err(not_found());
    }
    let (owner, id) = (context.key.id.clone(), id.to_owned());
    let exists =
        asking(move |conn| Box::pin(async move { subscriptions::exists(conn, owner.as_str(), &id).await }));
    match caller.tenant.on_deliveries(exists).await? {
        true => Ok(()),
        false => Err(not_found()),
    }
}

/// `?limit=&before=`
fn page(target: &RequestTarget) -> Result<(i64, Option<String>), Problem> {
    let (mut limit, mut before) = (None, None);
    for parameter in query_string::parameters(target.query()) {
        let (name, value) = parameter?;
        let place = match name.as_str() {
            "limit" => &mut limit,
            "before" => &mut before,
            other => return Err(bad(format!("{other:?} is not a parameter here; use limit, before"))),
        };
        if place.replace(value).is_some() {
            return Err(bad(format!("{name} is given twice; give it once")));
        }
    }
    let limit = match limit {
        None => DEFAULT_PAGE,
        Some(text) => {
            let number = text.parse().ok().filter(|number| (1..=MAX_PAGE).contains(number));
            number.ok_or_else(|| bad(format!("limit takes a whole number from 1 to {MAX_PAGE}")))?
        }
    };
    Ok((limit, before))
}
