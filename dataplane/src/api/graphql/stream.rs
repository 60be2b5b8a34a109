//! Answers as server-sent events, as the protocol graphql-sse has them: `next` for each answer, and `complete` behind the last.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;

use super::error::{self, GraphQlError};
use super::query::Prepared;
use super::subscription::{self, Output};
use super::{Answer, is_of_http};
use crate::api::events::stream::{self, EVENT_STREAM, HEARTBEAT, Piece, block};
use crate::app::App;
use crate::auth::credential::Caller;
use crate::server::respond::Refusal;

/// The answers to a subscription, as long as the key lives.
pub(super) async fn respond(caller: Caller, app: Arc<App>, prepared: &Prepared) -> Result<Response, Refusal> {
    let context = caller.reauthenticate().await?;
    match subscription::open(caller, app, &context, prepared).await {
        Ok((follower, subscription)) => {
            let first = HEARTBEAT.to_owned();
            Ok(stream::respond(first, follower, move |step| piece(subscription.output(step))))
        }
        Err(error) if is_of_http(error.problem.code) => Err(error.into_problem().into()),
        Err(error) => Ok(respond_once(&Answer::refused(vec![error]))),
    }
}

/// One answer.
pub(super) fn respond_once(answer: &Answer) -> Response {
    let mut text = String::new();
    next(&mut text, &error::body(answer.data.as_deref(), &answer.errors));
    complete(&mut text);
    let mut response = Response::new(Body::from(text));
    response.extensions_mut().insert(EVENT_STREAM);
    response
}

fn piece(output: Output) -> Piece {
    let mut text = String::new();
    match output {
        Output::Next(answers) => answers.iter().for_each(|answer| next(&mut text, answer)),
        Output::Quiet => text.push_str(HEARTBEAT),
        // without complete, so that the client connects again
        Output::Draining => return Piece::Last(text),
        Output::Failed(error) => {
            failed(&mut text, &error);
            return Piece::Last(text);
        }
    }
    Piece::More(text)
}

fn failed(text: &mut String, error: &GraphQlError) {
    next(text, &error::body(None, std::slice::from_ref(error)));
    complete(text);
}

fn next(text: &mut String, answer: &[u8]) {
    block(text, None, "next", &String::from_utf8_lossy(answer));
}

fn complete(text: &mut String) {
    block(text, None, "complete", "");
}
