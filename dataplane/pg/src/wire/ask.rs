//! What is asked of a pool, and what it answers.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Deref;
use std::sync::Arc;

use rowgate_core::cursor::Position;
use rowgate_core::name::Ulid;
use rowgate_core::secret::Credential;
use rowgate_sql::shape::Shape;
use rowgate_sql::text::Sql;

use super::connection::statements;
use super::exchange::row_stream::Rest;
use super::pool::{StatementHash, Who};
use crate::catalog::fingerprint::Watched;
use crate::tenant::keys::Found;

/// One read in the name of one API key.
#[derive(Debug, Clone)]
pub struct Ask {
    pub credential: Credential,
    /// The key that the credential was found to be: what it holds is shared with other keys, and ends with it.
    pub key: Arc<Found>,
    /// The role that the caller's cached key record names, for which `sql` was compiled. Another one in the database
    /// is [`Failure::WrongRole`](super::Failure::WrongRole).
    pub role: String,
    /// From 1 to `i32::MAX`; anything else is taken as the nearest of these.
    pub statement_timeout_ms: u32,
    /// Also asks whether the catalog still fits; where it does not, the answer is [`Failure::Changed`](super::Failure::Changed).
    pub watched: Option<Arc<Watched>>,
    pub sql: Sql,
    pub shape: Arc<Shape>,
    /// How many rows are written; the statement may give more.
    pub take: usize,
    pub mode: Mode,
}

/// What a statement does to the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// In a read-only transaction. It may be asked twice.
    #[default]
    Read,
    /// At most once: PostgreSQL runs it only as the role, and with the tables, that it was made for, and where its answer was
    /// lost nobody asks again.
    Write,
}

/// A question and what tells its statement from others, which is worked out once.
#[derive(Debug)]
pub(super) struct Asked {
    ask: Ask,
    pub(super) hash: StatementHash,
}

/// The rows of one answer, or of a long one the beginning.
#[derive(Debug)]
pub struct Page {
    pub key: KeyRow,
    /// JSON objects joined by commas, without brackets around them.
    pub json: Vec<u8>,
    pub n_rows: usize,
    /// `None`: this is all. Else `more` is not known yet, and `last` is the last row so far; [`End`](super::End) says both.
    pub rest: Option<Rest>,
    /// The statement gave more rows than were taken.
    pub more: bool,
    /// Where the last written row stands in the order; `None` without rows, or where the shape has no position.
    pub last: Option<Position>,
    /// How many rows there are in all; `None` without rows, or where the shape has no count.
    pub count: Option<i64>,
    /// How many rows the command has read, made, changed or deleted; `None` while that is not known yet.
    pub n_affected: Option<u64>,
    /// What a write gave back was more than 32 MiB, so that `json` is empty.
    pub is_untold: bool,
}

/// The live key, as the database said in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub id: Ulid,
    pub role: String,
    pub set_role: Option<String>,
    /// `dl.state.generation`.
    pub generation: i64,
}

impl Asked {
    pub(super) fn new(ask: Ask) -> Asked {
        let hash = statements::hash(&ask.role, &ask.sql);
        Asked { ask, hash }
    }

    pub(super) fn who(&self) -> Who {
        let mut hasher = DefaultHasher::new();
        self.ask.key.id.as_str().hash(&mut hasher);
        Who {
            hash: self.hash,
            sharer: hasher.finish(),
            key: Some(self.ask.key.clone()),
            is_read: self.ask.mode == Mode::Read,
        }
    }
}

impl Deref for Asked {
    type Target = Ask;

    fn deref(&self) -> &Ask {
        &self.ask
    }
}
