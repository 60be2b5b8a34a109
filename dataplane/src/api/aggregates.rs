//! `/api/ddl/aggregates/{entity}`: what groups of rows come to. A POST, because its question is a body; it only reads.

mod answer;
mod wording;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::aggregates;
use rowgate_sql::resolve::Cursors;

use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::{Head, UnreadBody};
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::read;
use crate::server::respond::Refusal;
use wording::WORDING;

/// `POST /api/ddl/aggregates/{entity}`
pub(crate) async fn groups(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let asked = |context: &KeyContext| {
        let entity = target.entity(context)?;
        no_options(&target)?;
        Ok::<_, Problem>((entity, context.snapshot.scope(&context.key)))
    };
    let may = |context: &KeyContext, head: &Head| {
        let (entity, scope) = asked(context)?;
        aggregates::may_read(&context.snapshot.catalog, &scope, &entity)?;
        head.fits()
    };
    let request = unread.receive(&caller, may).await?;
    let answer = read::run_with_body(&caller, &app.cursor_key, &WORDING, |context| {
        let (entity, scope) = asked(context)?;
        let cursors = Cursors { key: &app.cursor_key, caller: context.key.id.as_str() };
        aggregates::groups(&context.snapshot.catalog, &scope, &entity, request.body(), cursors)
    });
    Ok(answer::response(answer.await?))
}

fn no_options(target: &RequestTarget) -> Result<(), Problem> {
    match target.query().is_empty() {
        true => Ok(()),
        false => {
            let what =
                "the options of aggregates stand in the body, without $; leave out everything after the ?";
            Err(Problem::new(Code::BadRequest, what))
        }
    }
}
