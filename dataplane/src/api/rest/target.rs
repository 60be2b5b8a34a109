//! What a request to REST is sent to: tenant, entity and key in its path, its options, and the origin.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use rowgate_core::name::EntityName;
use rowgate_core::problem::Problem;
use rowgate_sql::rest;

use crate::api::rest::next_link::{next_link, origin};
use crate::api::rest::rows::Link;
use crate::auth::key_context::KeyContext;
use crate::server::path;

/// The address of a request: its path, decoded when a live key asks, its options, and the origin it was sent to.
pub(crate) struct RequestTarget {
    uri: Uri,
    origin: Result<String, Problem>,
}

impl<S: Sync> FromRequestParts<S> for RequestTarget {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RequestTarget, Infallible> {
        Ok(RequestTarget::of(parts))
    }
}

impl RequestTarget {
    pub(crate) fn of(parts: &Parts) -> RequestTarget {
        RequestTarget { uri: parts.uri.clone(), origin: origin(parts) }
    }

    /// A text that cannot be an entity's name is an entity that does not exist.
    pub(crate) fn entity(&self, context: &KeyContext) -> Result<EntityName, Problem> {
        let name = path::decode(self.uri.path().split('/').nth(4).unwrap_or_default())?;
        name.parse().map_err(|_| {
            rest::not_found(&context.snapshot.catalog, &context.snapshot.scope(&context.key), &name)
        })
    }

    pub(crate) fn key(&self) -> Result<Vec<(String, String)>, Problem> {
        let parts: Result<Vec<_>, _> = self.uri.path().split('/').skip(5).map(path::decode).collect();
        path::key_pairs(parts?)
    }

    pub(crate) fn path(&self) -> &str {
        self.uri.path()
    }

    pub(crate) fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    pub(crate) fn origin(&self) -> Result<&str, Problem> {
        self.origin.as_deref().map_err(Problem::clone)
    }

    /// [`RequestTarget::next_link`] for later.
    pub(crate) fn link(self) -> Link {
        Box::new(move |token| {
            self.next_link(token).expect("a page that others follow was compiled with an origin")
        })
    }

    pub(crate) fn next_link(&self, token: &str) -> Result<String, Problem> {
        Ok(next_link(self.origin()?, self.uri.path(), self.uri.query(), token))
    }
}
