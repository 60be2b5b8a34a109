//! Operations that clients name by the SHA-256 of their text, as Apollo's clients do: the first request sends the text beside it.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Code;
use sha2::{Digest as _, Sha256};

use super::error::GraphQlError;
use super::request::GraphQlRequest;

/// Bytes of the texts of one tenant.
const MAX_BYTES: usize = 1 << 20;

/// The operations of all tenants of a replica.
#[derive(Default)]
pub struct PersistedOperations(Mutex<HashMap<Ulid, Operations>>);

#[derive(Default)]
struct Operations {
    by_hash: HashMap<String, String>,
    /// In the order in which they came: the oldest goes first.
    order: VecDeque<String>,
    n_bytes: usize,
}

impl PersistedOperations {
    /// The text of a request's document, which is kept where its hash stands beside it.
    pub(crate) fn text(&self, tenant: &Ulid, request: &GraphQlRequest) -> Result<String, GraphQlError> {
        match (&request.query, &request.hash) {
            (Some(text), None) => Ok(text.clone()),
            (Some(text), Some(hash)) => {
                if hex(&Sha256::digest(text)) != *hash {
                    let what = "sha256Hash is not the SHA-256 of query in hexadecimal";
                    return Err(GraphQlError::new(Code::BadRequest, what));
                }
                self.0.lock().entry(tenant.clone()).or_default().keep(hash, text);
                Ok(text.clone())
            }
            (None, Some(hash)) => {
                let operations = self.0.lock();
                let found =
                    operations.get(tenant).and_then(|operations| operations.by_hash.get(hash)).cloned();
                found.ok_or_else(|| {
                    // the words by which Apollo's clients know that they have to send the text
                    let error = GraphQlError::new(Code::NotFound, "PersistedQueryNotFound");
                    error.with_word("PERSISTED_QUERY_NOT_FOUND")
                })
            }
            (None, None) => Err(GraphQlError::new(Code::BadRequest, "the request has no query")),
        }
    }
}

impl Operations {
    fn keep(&mut self, hash: &str, text: &str) {
        if MAX_BYTES < text.len() || self.by_hash.contains_key(hash) {
            return;
        }
        while MAX_BYTES < self.n_bytes + text.len() {
            let Some(oldest) = self.order.pop_front() else { break };
            self.n_bytes -= self.by_hash.remove(&oldest).map_or(0, |text| text.len());
        }
        self.n_bytes += text.len();
        self.order.push_back(hash.to_owned());
        self.by_hash.insert(hash.to_owned(), text.to_owned());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_where_there_is_no_more_room() {
        let mut operations = Operations::default();
        let text = "x".repeat(MAX_BYTES / 4);
        for hash in ["a", "b", "c", "d", "e", "e"] {
            operations.keep(hash, &text);
        }
        assert_eq!(operations.order, ["b", "c", "d", "e"]);
        assert_eq!(operations.n_bytes, 4 * text.len());
        operations.keep("f", &"x".repeat(MAX_BYTES + 1));
        assert_eq!(operations.order.len(), 4);
    }
}
