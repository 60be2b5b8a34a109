//! What is asked of a pool, and what it answers: a read with rows, a write with its effect.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Deref;
use std::sync::Arc;

use rowgate_core::cursor::Position;
use rowgate_core::name::Ulid;
use rowgate_sql::shape::Shape;
use rowgate_sql::text::Sql;

use super::connection::statements;
use super::exchange::row_stream::RowStream;
use super::exchange::rows::Rows;
use super::nested::Nested;
use super::nested::lists::Page;
use super::pool::{StatementHash, Who};
use crate::catalog::fingerprint::Watched;
use crate::tenant::keys::Found;

/// One statement in the name of one API key, to be read or to write.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The key that asks, with the secret that it was found by: both must live. What it holds is shared with other keys, and ends
    /// with it.
    pub key: Arc<Found>,
    /// Another secret of the key may live in the place of that one: a delivery shows none.
    pub by_any_secret: bool,
    /// The role that the caller's cached key record names, for which `sql` was compiled. Another one in the database
    /// is [`Failure::WrongRole`](super::Failure::WrongRole).
    pub role: String,
    /// From 1 to `i32::MAX`; anything else is taken as the nearest of these.
    pub statement_timeout_ms: u32,
    /// Also asks whether the catalog still fits; where it does not, the answer is [`Failure::Changed`](super::Failure::Changed).
    pub watched: Option<Arc<Watched>>,
    pub sql: Sql,
    pub shape: Arc<Shape>,
    /// The statements to be read in place of the one above, which is the first of them. Never of a write.
    pub nested: Option<Arc<Nested>>,
}

/// What a statement does to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// In a read-only transaction. It may be asked twice. Of its rows as many as `take` are written; there may be more.
    Read { take: usize },
    /// At most once: PostgreSQL runs it only as the role, and with the tables, that it was made for, and where its answer was
    /// lost nobody asks again.
    Write,
}

/// A question and what tells its statement from others, which is worked out once.
#[derive(Debug)]
pub(super) struct Asked {
    ask: Ask,
    pub(super) hash: StatementHash,
    pub(super) operation: Operation,
}

/// What an exchange gives, by what it was asked.
#[derive(Debug)]
pub(super) enum Answer {
    Read(ReadPage),
    Write(WriteOutcome),
}

/// The rows of a read, or of a long one the beginning.
#[derive(Debug)]
pub struct ReadPage {
    pub key: KeyRow,
    /// JSON objects joined by commas, without brackets around them.
    pub json: Vec<u8>,
    pub n_rows: usize,
    /// `None`: this is all. Else `more` is not known yet, and `last` is the last row so far; [`End`](super::End) says both.
    pub rest: Option<RowStream>,
    /// The statement gave more rows than were taken.
    pub more: bool,
    /// Where the last written row stands in the order; `None` without rows, or where the shape has no position.
    pub last: Option<Position>,
    /// How many rows there are in all; `None` without rows, or where the shape has no count.
    pub count: Option<i64>,
}

/// What a write has done. It is committed.
#[derive(Debug)]
pub struct WriteOutcome {
    /// How many rows the command has made, changed or deleted.
    pub n_affected: u64,
    /// What stands in the count of the shape: which of several things the statement did. `None` where the shape has no
    /// count, or no row says it.
    pub effect: Option<i64>,
    /// The rows that it gives back: JSON objects joined by commas. Empty where they are more than 32 MiB: see `is_left_out`.
    pub json: Vec<u8>,
    pub n_rows: usize,
    /// The values of the shape's position in the last row; `None` without rows, or where the shape has no position.
    pub marks: Option<Position>,
    /// The rows were more than one answer holds, so that `json` is empty.
    pub is_left_out: bool,
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
    pub(super) fn new(ask: Ask, operation: Operation) -> Asked {
        let hash = statements::hash(&ask.role, &ask.sql);
        Asked { ask, hash, operation }
    }

    pub(super) fn is_write(&self) -> bool {
        self.operation == Operation::Write
    }

    pub(super) fn who(&self) -> Who {
        let mut hasher = DefaultHasher::new();
        self.ask.key.id.as_str().hash(&mut hasher);
        Who {
            hash: self.hash,
            sharer: hasher.finish(),
            key: Some(self.ask.key.clone()),
            is_read: !self.is_write(),
        }
    }
}

impl ReadPage {
    /// All of the rows.
    pub(super) fn whole(key: KeyRow, mut rows: Rows) -> ReadPage {
        let (n_rows, more, count, last) = (rows.n_rows, rows.more, rows.count, rows.last());
        ReadPage { key, json: rows.whole(), n_rows, rest: None, more, last, count }
    }

    /// All rows with what stands within them, or an object of several reads.
    pub(super) fn nested(key: KeyRow, page: Page) -> ReadPage {
        let Page { json, n_rows, more, last, count } = page;
        ReadPage { key, json, n_rows, rest: None, more, last, count }
    }

    /// The rows so far, of which `json` was cut off.
    pub(super) fn begun(key: KeyRow, json: Vec<u8>, rows: &Rows) -> ReadPage {
        let (n_rows, count, last) = (rows.n_rows, rows.count, rows.position());
        ReadPage { key, json, n_rows, rest: None, more: false, last, count }
    }
}

impl WriteOutcome {
    pub(super) fn new(mut rows: Rows, n_affected: u64) -> WriteOutcome {
        let (n_rows, effect, is_left_out, marks) = (rows.n_rows, rows.count, rows.is_left_out, rows.last());
        WriteOutcome { n_affected, effect, json: rows.whole(), n_rows, marks, is_left_out }
    }
}

impl Deref for Asked {
    type Target = Ask;

    fn deref(&self) -> &Ask {
        &self.ask
    }
}
