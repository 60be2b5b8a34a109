//! `/auth/{tenant}/graphql`: GraphQL over HTTP. async-graphql parses, validates and answers introspection; what rows are asked for
//! becomes one batch of statements.

mod document;
mod error;
mod lower;
mod mutation;
pub(crate) mod persisted;
mod query;
mod request;
pub(crate) mod schema;
mod stream;
mod subscription;
pub(crate) mod websocket;
mod wording;

use std::sync::Arc;

use async_graphql::parser::types::OperationType;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use rowgate_core::problem::{Code, Problem};

use crate::api::rest::write_request::{Head, UnreadBody};
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::server::respond::{MediaType as Label, Refusal};
use error::GraphQlError;
use query::{Carries, Prepared};
use request::{GraphQlRequest, MediaType};

/// What a request came to.
struct Answer {
    /// A JSON value; `None`: nothing was executed.
    data: Option<Vec<u8>>,
    errors: Vec<GraphQlError>,
}

/// What a request asked for.
enum Outcome {
    Answered(Answer),
    Subscribes(Prepared),
}

/// `GET /auth/{tenant}/graphql`: a query, a subscription as server-sent events, or a WebSocket.
pub(crate) async fn get(State(app): State<Arc<App>>, mut parts: Parts) -> Result<Response, Refusal> {
    if websocket::is_asked_for(&parts.headers) {
        return websocket::accept(app, parts).await;
    }
    let caller = Caller::from_request_parts(&mut parts, &app).await?;
    let media_type = MediaType::of(&parts.headers);
    let context = caller.authenticate().await?;
    let request = GraphQlRequest::of_query(parts.uri.query().unwrap_or_default());
    match run(&caller, &app, context, request, None, media_type).await? {
        Outcome::Answered(answer) => Ok(answer.into_response(media_type)),
        Outcome::Subscribes(prepared) => stream::respond(caller, app, &prepared).await,
    }
}

/// `POST /auth/{tenant}/graphql`: any operation, a subscription as server-sent events.
pub(crate) async fn post(
    caller: Caller,
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let media_type = MediaType::of(&headers);
    let body = unread
        .receive(&caller, |_: &KeyContext, head: &Head| head.fits())
        .await
        .map_err(Problem::of_nothing_written)?;
    let context = caller.reauthenticate().await?;
    let request = body.body().and_then(GraphQlRequest::of_body);
    let reserve = |n| body.reserve(n);
    match run(&caller, &app, context, request, Some(&reserve), media_type).await? {
        Outcome::Answered(answer) => Ok(answer.into_response(media_type)),
        Outcome::Subscribes(prepared) => {
            drop(body);
            stream::respond(caller, app, &prepared).await
        }
    }
}

/// Takes memory for a statement of so many bytes; `None`: the method is one that reads.
type Writes<'a> = Option<&'a crate::execute::write::Reserve<'a>>;

async fn run(
    caller: &Caller,
    app: &App,
    context: KeyContext,
    request: Result<GraphQlRequest, Problem>,
    writes: Writes<'_>,
    media_type: MediaType,
) -> Result<Outcome, Problem> {
    let subscriptions = media_type == MediaType::EventStream;
    let carries = Carries { mutations: writes.is_some(), subscriptions };
    let prepared = match query::run(caller, app, context, request, carries).await? {
        query::Outcome::Answered(answer) => return Ok(Outcome::Answered(answer)),
        query::Outcome::Subscribes(prepared) => return Ok(Outcome::Subscribes(prepared)),
        query::Outcome::Mutates(prepared) => prepared,
    };
    match writes {
        Some(reserve) => mutation::run(caller, app, prepared, reserve).await.map(Outcome::Answered),
        None => Err(Problem::internal()),
    }
}

impl Answer {
    fn refused(errors: Vec<GraphQlError>) -> Answer {
        Answer { data: None, errors }
    }

    fn into_response(self, media_type: MediaType) -> Response {
        if media_type == MediaType::EventStream {
            return stream::respond_once(&self);
        }
        let status = match (&self.data, media_type) {
            (None, MediaType::GraphQlResponse) => StatusCode::BAD_REQUEST,
            (None, MediaType::Json) if self.errors.iter().any(|error| error.is_of_request) => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        };
        let mut response = Response::new(Body::from(error::body(self.data.as_deref(), &self.errors)));
        *response.status_mut() = status;
        if media_type == MediaType::GraphQlResponse {
            let label = HeaderValue::from_static("application/graphql-response+json; charset=utf-8");
            response.extensions_mut().insert(Label(label));
        }
        response
    }
}

/// Whether the problem is one of the request as a whole, whose status tells proxies and clients when to try again.
fn is_of_http(code: Code) -> bool {
    matches!(
        code,
        Code::Unauthorized
            | Code::RoleMismatch
            | Code::RateLimited
            | Code::BodyShareExceeded
            | Code::BodyBudgetExceeded
            | Code::Unavailable
            | Code::Internal
            | Code::MethodNotAllowed
    )
}

/// Why a kind of operation is not run here; `None`: it is.
fn not_run(ty: OperationType, carries: Carries) -> Option<GraphQlError> {
    match ty {
        OperationType::Query => None,
        OperationType::Mutation if carries.mutations => None,
        OperationType::Mutation => {
            let problem = Problem::new(Code::MethodNotAllowed, "a mutation is sent with POST");
            Some(GraphQlError::from(Problem { allow: Some("POST, OPTIONS"), ..problem }))
        }
        OperationType::Subscription if carries.subscriptions => None,
        OperationType::Subscription => Some(GraphQlError::new(
            Code::BadRequest,
            "a subscription is sent with Accept: text/event-stream, or over WebSocket with the subprotocol graphql-transport-ws",
        )),
    }
}
