//! The bytes of a batch of several statements: BEGIN, key statement, now and then the fingerprint check, the data statements, now and then
//! the check for rewritten tables, COMMIT, whether the key still lives and which files the tables have, Sync. Where all rows come in one
//! data statement of a session of our own, it is as a batch of one statement: no BEGIN, and nothing behind the data.

use std::io;
use std::time::Instant;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::relation_files::RelationFiles;
use super::{Nested, key_again, rewritten};
use crate::wire::ask::Asked;
use crate::wire::connection::statements::{self, Number, Statements};
use crate::wire::exchange::batch as exchange;
use crate::wire::exchange::key_statement::Prepared;
use crate::wire::request_pool::Sessions;

/// What was sent, which says what must come back.
#[derive(Debug)]
pub(crate) struct NestedBatch {
    /// BEGIN stands before the key statement, and COMMIT and the second look at the key behind the data.
    pub(crate) is_block: bool,
    pub(crate) parses_key: bool,
    pub(crate) parses_watch: bool,
    /// Whether tables were rewritten is a statement of the batch.
    pub(crate) asks_rewritten: bool,
    pub(crate) parses_rewritten: bool,
    /// Of BEGIN and COMMIT.
    pub(crate) parses_begin: bool,
    pub(crate) parses_commit: bool,
    /// In the order in which they are sent, from the last level to the first: rows within others come first. A level whose rows come
    /// with those around it has none.
    pub(crate) statements: Vec<LevelStatement>,
    pub(crate) n_closed: usize,
    /// Of the statement that asks for the key again.
    pub(crate) parses_key_again: bool,
}

/// The statement of a level.
#[derive(Debug)]
pub(crate) struct LevelStatement {
    pub(crate) level: usize,
    pub(crate) number: Number,
    pub(crate) parses: bool,
}

/// Writes the batch to `out`. Several data statements see one snapshot, which the key statement takes; one takes its own, when it has
/// locked what it reads. As in a batch of one statement nothing of the caller's is parsed before the key is found to live. What is evicted
/// is closed last, because it may be one of the batch.
///
/// The snapshot of several does not show a key that dies between two levels, so the key is looked up again behind COMMIT, and no row leaves before
/// that is answered. Behind a pooler nothing is prepared: a name that it had is another statement's by then.
pub(crate) fn write(
    (ask, nested): (&Asked, &Nested),
    (sessions, prepared): (Sessions, Prepared),
    files: &RelationFiles,
    statements: &mut Statements,
    out: &mut BytesMut,
) -> io::Result<NestedBatch> {
    // a session of a pooler may begin its transactions with another isolation level
    let is_block =
        sessions == Sessions::Pooled || 1 < nested.levels.iter().filter(|level| level.sql.is_some()).count();
    let (parses_begin, parses_commit) = (is_block && !prepared.begin, is_block && !prepared.commit);
    let named = |name| exchange::named(sessions, name);
    if is_block {
        command((named("begin"), parses_begin), "begin isolation level repeatable read, read only", out)?;
    }
    let (parses_key, parses_watch) = exchange::check(ask, sessions, prepared, out)?;
    let mut sent = Vec::with_capacity(nested.levels.len());
    for (at, level) in nested.levels.iter().enumerate().rev() {
        let Some(sql) = &level.sql else { continue };
        let hash = statements::hash(&ask.role, sql);
        let found = statements.find(hash, &ask.role, sql);
        let number = found.unwrap_or_else(|| statements.reserve(sql));
        let name = number.name();
        if found.is_none() {
            frontend::parse(&name, sql.as_str(), sql.binds().iter().map(|bind| bind.oid), out)?;
            frontend::describe(b'S', &name, out)?;
        }
        exchange::bind_data(&name, sql, level.statement_shape(), out)?;
        frontend::execute("", 0, out)?;
        sent.push(LevelStatement { level: at, number, parses: found.is_none() });
    }
    let asks_rewritten = is_block && !files.are_known(&nested.relations, Instant::now());
    let parses_rewritten = asks_rewritten && !prepared.rewritten;
    if asks_rewritten {
        rewritten::write(&nested.relations, named(rewritten::NAME), parses_rewritten, out)?;
    }
    for closing in statements.closing() {
        frontend::close(b'S', &closing.name(), out)?;
    }
    let again = key_again::form(ask);
    let parses_key_again = is_block && !prepared.has(again);
    if is_block {
        command((named("commit"), parses_commit), "commit", out)?;
        if parses_key_again {
            frontend::parse(named(again.name), again.text, again.types.iter().copied(), out)?;
        }
        key_again::write(named(again.name), ask, &nested.relations, out)?;
    }
    frontend::sync(out);
    let n_closed = statements.closing().len();
    Ok(NestedBatch {
        is_block,
        parses_key,
        parses_watch,
        asks_rewritten,
        parses_rewritten,
        parses_begin,
        parses_commit,
        statements: sent,
        n_closed,
        parses_key_again,
    })
}

/// Writes a command without parameters and rows, and its Parse where it is not prepared yet.
fn command((name, parses): (&str, bool), text: &str, out: &mut BytesMut) -> io::Result<()> {
    if parses {
        frontend::parse(name, text, [], out)?;
    }
    exchange::bind(name, [], [], out)?;
    frontend::execute("", 0, out)
}
