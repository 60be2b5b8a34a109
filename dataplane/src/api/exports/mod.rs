//! `/api/ddl/exports`: jobs that write rows into files. Each belongs to the key that asked for it, and is there for that key alone; its
//! file is given to whoever has a link to it, which lives for minutes.

mod answer;
pub(crate) mod download;
mod range;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use rowgate_core::name::Ulid;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::control::exports::{self as jobs, Full, NewJob};
use rowgate_program::entropy;
use rowgate_sql::export_request;
use serde_json::json;

use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::{Head, UnreadBody};
use crate::api::sql::Statements;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::export_jobs::{Exports, LIFE, QUEUE, rows};
use crate::server::path;
use crate::server::respond::Refusal;
use answer::{Shown, json as answered};

/// What is kept of each job is no longer.
const MAX_BODY: usize = 256 << 10;
const BASE: &str = "/api/ddl/exports";

/// `POST /api/ddl/exports`
pub(crate) async fn create(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let may = |_: &KeyContext, head: &Head| {
        on(&app)?;
        no_options(&target)?;
        head.fits()
    };
    let statements = Statements::admit(&caller).await?;
    let received = unread.receive(&caller, may).await?;
    let (exports, body) = (on(&app)?, received.body()?);
    if MAX_BODY < body.len() {
        let what = "the body of an export is longer than 256 KiB; send a shorter query, or fewer values in parameters";
        return Err(Problem::new(Code::TooLarge, what).into());
    }
    let checked = async {
        let request = export_request::parse(body)?;
        rows::check(&caller, &app.cursor_key, &request).await?;
        Ok(request)
    };
    let request = statements.counted(checked.await, body.len())?;
    let context = caller.reauthenticate().await?;
    let (id, tenant, key) = (entropy::ulid(), caller.tenant.id.clone(), context.key.id.clone());
    let text = String::from_utf8(body.to_vec()).map_err(|_| Problem::internal())?;
    let (new_id, of, owner, name) = (id.clone(), tenant.clone(), key.clone(), request.file_name());
    let create = exports.ask(move |conn| {
        Box::pin(async move {
            let new = NewJob { id: &new_id, tenant: &of, key: &owner, request: &text, name: &name };
            jobs::create(conn, new, QUEUE).await
        })
    });
    create.await?.map_err(too_many)?;
    exports.changed.notify_one();
    let job = found(exports, &tenant, &context, id.as_str()).await?;
    let mut response = answered(StatusCode::ACCEPTED, &Shown::of(&job, None));
    let location = HeaderValue::try_from(format!("{BASE}/{id}"));
    response.headers_mut().insert(LOCATION, location.expect("an id is letters and digits"));
    Ok(response)
}

/// `GET /api/ddl/exports`
pub(crate) async fn list(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
) -> Result<Response, Refusal> {
    let context = caller.authenticate_fresh().await?;
    let exports = on(&app)?;
    no_options(&target)?;
    let (tenant, key) = (caller.tenant.id.clone(), context.key.id.clone());
    let list = exports.ask(move |conn| Box::pin(async move { jobs::list(conn, &tenant, &key).await }));
    let all = list.await?;
    let links = answer::Links { exports, tenant: &caller.tenant.id, key: &context.key.id, target: &target };
    let shown: Result<Vec<Shown<'_>>, Problem> =
        all.iter().map(|job| Ok(Shown::of(job, links.link(job)?))).collect();
    Ok(answered(StatusCode::OK, &json!({ "value": shown? })))
}

/// `GET /api/ddl/exports/{id}`
pub(crate) async fn get(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
) -> Result<Response, Refusal> {
    let context = caller.authenticate_fresh().await?;
    let exports = on(&app)?;
    no_options(&target)?;
    let job = found(exports, &caller.tenant.id, &context, &id(&target)?).await?;
    let links = answer::Links { exports, tenant: &caller.tenant.id, key: &context.key.id, target: &target };
    let link = links.link(&job)?;
    Ok(answered(StatusCode::OK, &Shown::of(&job, link)))
}

/// `DELETE /api/ddl/exports/{id}`
pub(crate) async fn delete(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
) -> Result<Response, Refusal> {
    let context = caller.authenticate_fresh().await?;
    let exports = on(&app)?;
    no_options(&target)?;
    let id = id(&target)?;
    let (tenant, key, removed) = (caller.tenant.id.clone(), context.key.id.clone(), id.clone());
    let remove = exports
        .ask(move |conn| Box::pin(async move { jobs::remove(conn, &tenant, &key, &removed, LIFE).await }));
    if !remove.await? {
        return Err(not_found().into());
    }
    exports.forget(&id);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// The surface, where it is on.
fn on(app: &App) -> Result<&Arc<Exports>, Problem> {
    app.exports.as_ref().ok_or_else(|| {
        let what = "exports are off at this server; its operator turns them on with --exports-dir, the folder for their files";
        Problem::new(Code::NotFound, what)
    })
}

/// The export that the path names. A text that cannot be an id is an export that does not exist.
fn id(target: &RequestTarget) -> Result<String, Problem> {
    let id = path::decode(target.path().split('/').nth(4).unwrap_or_default())?;
    if id.parse::<Ulid>().is_ok() { Ok(id) } else { Err(not_found()) }
}

/// One answer for an export that is absent and for one of another key.
fn not_found() -> Problem {
    let what = "this API key has no such export; GET /api/ddl/exports lists those that it has";
    Problem::new(Code::NotFound, what)
}

fn no_options(target: &RequestTarget) -> Result<(), Problem> {
    match target.query().is_empty() {
        true => Ok(()),
        false => {
            let what = "this URL takes no options; leave out everything after the ?";
            Err(Problem::new(Code::BadRequest, what))
        }
    }
}

fn too_many(full: Full) -> Problem {
    let (what, seconds) = match full {
        Full::Waiting => (
            format!(
                "this API key has {} exports that wait; cancel some, or wait until some are done",
                QUEUE.waiting
            ),
            30,
        ),
        Full::Kept => (
            format!("this API key has {} exports; delete those that are not needed any more", QUEUE.kept),
            60,
        ),
    };
    Problem { retry_after: Some(seconds), ..Problem::new(Code::RateLimited, what) }
}

/// The job as it is now, if it is the key's.
async fn found(
    exports: &Exports,
    tenant: &Ulid,
    context: &KeyContext,
    id: &str,
) -> Result<jobs::Job, Problem> {
    let (tenant, key, id) = (tenant.clone(), context.key.id.clone(), id.to_owned());
    let find = exports.ask(move |conn| Box::pin(async move { jobs::find(conn, &tenant, &key, &id).await }));
    find.await?.ok_or_else(not_found)
}
