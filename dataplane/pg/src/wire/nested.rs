//! Answers whose rows stand within each other: one batch of one statement or several, one snapshot, one JSON.
//!
//! `batch` writes the messages, among them those of `rewritten` and `key_again`; `relation_files` remembers what the latter says of tables.
//! `lists` keeps the rows of each `level` until those around them come, and writes them into these.

use rowgate_core::derive::CursorKey;
use rowgate_sql::compile::{CompiledDocument, CompiledLevel, Member};

pub(super) mod batch;
mod key;
pub(super) mod key_again;
mod level;
pub(super) mod lists;
pub(super) mod relation_files;
pub(super) mod rewritten;

/// The statements of one answer, in place of the one of an [`Ask`](super::Ask).
#[derive(Clone)]
pub struct Nested {
    /// Never empty, each behind the one around it.
    pub(super) levels: Vec<CompiledLevel>,
    /// The members of the answer's object. Empty: the answer is the rows of the first level, joined by commas.
    pub(super) members: Vec<Member>,
    /// What makes the cursors of lists.
    pub(super) cursors: CursorKey,
    /// Oids of all relations that are read.
    pub(super) relations: Vec<u32>,
}

impl Nested {
    /// An object made of all reads of a document. `None` where it has no statement.
    #[must_use]
    pub fn document(document: CompiledDocument, cursors: CursorKey) -> Option<Nested> {
        let CompiledDocument { members, levels, relations } = document;
        (!levels.is_empty()).then_some(Nested { levels, members, cursors, relations })
    }

    /// The rows of the first read of a document, and what stands within them.
    #[must_use]
    pub fn rows(document: CompiledDocument, cursors: CursorKey) -> Option<Nested> {
        Nested::document(CompiledDocument { members: Vec::new(), ..document }, cursors)
    }

    /// The first level, by whose statement a pool finds a connection that knows it.
    #[must_use]
    pub fn first(&self) -> &CompiledLevel {
        &self.levels[0]
    }
}

impl std::fmt::Debug for Nested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nested").field("levels", &self.levels).finish_non_exhaustive()
    }
}
