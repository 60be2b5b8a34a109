//! `/auth/{tenant}/openapi.json`: what the calling key may do, as OpenAPI 3.1.
//!
//! A new surface is a file in [`surfaces`].

pub(crate) mod access;
pub mod cache;
mod document;
mod errors;
mod examples;
mod operation;
mod parameters;
mod schemas;
mod sections;
mod surfaces;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use bytes::Bytes;
use rowgate_core::entity_tag::Basis;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::request::ReadRequest;
use rowgate_sql::rest::query_string;

use crate::api::rest::rows::Chunks;
use crate::api::rest::target::RequestTarget;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::server::respond::Refusal;

/// `GET /auth/{tenant}/openapi.json`
pub(crate) async fn document(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
) -> Result<Response, Refusal> {
    let context = caller.authenticate_fresh().await?;
    refuse_options(target.query())?;
    let beginning = document::beginning(target.origin()?);
    let (tenant, scope) = (&caller.tenant, context.snapshot.scope(&context.key));
    let set_role = context.key.set_role.as_ref();
    let document = app.documents.get((&tenant.id, &tenant.slug), &context.snapshot, set_role, scope).await?;
    let basis = Basis::new([beginning.as_bytes(), document.basis.as_bytes()]);
    let chunks = VecDeque::from([Bytes::from(beginning), document.rest.clone()]);
    let mut response = Response::new(Body::new(Chunks(chunks)));
    // Clients may keep it, but must revalidate it each time.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response.extensions_mut().insert(basis);
    Ok(response)
}

fn refuse_options(query: &str) -> Result<(), Problem> {
    let given = ReadRequest { others: Vec::new(), ..query_string::parse(query)? };
    match given == ReadRequest::default() {
        true => Ok(()),
        false => Err(Problem::new(
            Code::BadRequest,
            "this document takes no options; leave out everything after the ?",
        )),
    }
}
