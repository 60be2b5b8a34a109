//! Documents that were parsed and validated against one schema, so that the next request of one begins behind both.

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::parser::types::ExecutableDocument;
use async_graphql::{Request, Response, ServerError};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::Schema;
use crate::api::graphql::document::{self, Operation};
use crate::api::graphql::error::GraphQlError;

/// Bytes of the texts of all documents of a schema.
const MAX_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Documents(Mutex<CachedDocuments>);

#[derive(Default)]
struct CachedDocuments {
    by_hash: HashMap<[u8; 32], Arc<ExecutableDocument>>,
    n_bytes: usize,
}

impl Schema {
    /// The operation that a request means, valid in this schema.
    pub(crate) async fn operation(
        &self,
        text: &str,
        name: Option<&str>,
    ) -> Result<Operation, Vec<GraphQlError>> {
        let hash: [u8; 32] = Sha256::digest(text).into();
        if let Some(document) = self.documents.0.lock().by_hash.get(&hash).cloned() {
            return Operation::of(document, name).map_err(|error| vec![error]);
        }
        let document = Arc::new(document::parse(text).map_err(|error| vec![error])?);
        let operation = Operation::of(document.clone(), name).map_err(|error| vec![error])?;
        let mut request = Request::new("");
        request.set_parsed_query((*document).clone());
        request.operation_name.clone_from(&operation.name);
        let Response { errors, .. } = self.executable.execute(request).await;
        if !errors.is_empty() {
            return Err(in_order(errors));
        }
        let mut kept = self.documents.0.lock();
        if MAX_BYTES < kept.n_bytes + text.len() {
            *kept = CachedDocuments::default();
        }
        kept.n_bytes += text.len();
        kept.by_hash.insert(hash, document);
        Ok(operation)
    }
}

/// Errors as they stand in the document. async-graphql looks through fragments in the order of a hash, which differs from request to request:
/// a name that a key may not use would get another answer than one that does not exist.
fn in_order(mut errors: Vec<ServerError>) -> Vec<GraphQlError> {
    let place = |error: &ServerError| -> Vec<(usize, usize)> {
        error.locations.iter().map(|at| (at.line, at.column)).collect()
    };
    // those of one place stay as the rules found them, whatever names they hold
    errors.sort_by_key(place);
    errors.into_iter().map(GraphQlError::from).collect()
}
