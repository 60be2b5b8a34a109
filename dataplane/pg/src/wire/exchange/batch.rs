//! The bytes of one exchange: key statement, now and then the watch statement, data statement, Sync.

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend::{self, BindError};
use rowgate_sql::shape::Shape;
use rowgate_sql::text::{Format, Sql};

use super::fingerprint_check;
use super::key_statement::{self, Prepared};
use super::session_settings;
use crate::wire::ask::Asked;
use crate::wire::connection::statements::{Number, Statements};
use crate::wire::request_pool::Sessions;

/// What was sent, which says what must come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) parses_key: bool,
    pub(crate) parses_watch: bool,
    pub(crate) n_closed: usize,
    pub(crate) statement: Number,
    pub(crate) parses_data: bool,
    /// The batch ends with the description of the data statement: [`run`] or a Sync must follow.
    pub(crate) waits: bool,
}

/// Writes the batch to `out`. The data statement is parsed after the key's Execute, so that nobody without a live key
/// makes PostgreSQL look at it; evicted statements are closed there too. Behind a pooler nothing has a name, and all
/// of it is parsed in this one transaction, which a pooler leaves in one session.
///
/// A write whose statement is parsed runs only once its description has been read: what it gives back may be of other
/// types by now. PostgreSQL reads the values, however many, with nothing left to say.
pub(crate) fn write(
    ask: &Asked,
    sessions: Sessions,
    prepared: Prepared,
    statements: &mut Statements,
    out: &mut BytesMut,
) -> io::Result<Batch> {
    let (parses_key, parses_watch) = check(ask, sessions, prepared, out)?;
    let found = statements.find(ask.hash, &ask.role, &ask.sql);
    let statement = found.unwrap_or_else(|| statements.reserve(&ask.sql));
    for closing in statements.closing() {
        frontend::close(b'S', &closing.name(), out)?;
    }
    let name = statement.name();
    if found.is_none() {
        frontend::parse(&name, ask.sql.as_str(), ask.sql.binds().iter().map(|bind| bind.oid), out)?;
        frontend::describe(b'S', &name, out)?;
    }
    let parses_data = found.is_none();
    let waits = parses_data && ask.is_write();
    if waits {
        frontend::flush(out);
    } else {
        run(ask, statement, out)?;
    }
    let n_closed = statements.closing().len();
    Ok(Batch { parses_key, parses_watch, n_closed, statement, parses_data, waits })
}

/// What `name` is on the connection: behind a pooler nothing has one.
pub(crate) fn named(sessions: Sessions, name: &'static str) -> &'static str {
    if sessions == Sessions::Pooled { "" } else { name }
}

/// Writes what comes before the data statements: the key statement, and whether the catalog stands where that is asked. Says which of
/// both are parsed.
pub(crate) fn check(
    ask: &Asked,
    sessions: Sessions,
    prepared: Prepared,
    out: &mut BytesMut,
) -> io::Result<(bool, bool)> {
    let named = |name| named(sessions, name);
    if sessions == Sessions::Pooled {
        session_settings::write(out)?;
    }
    let parses_key = !prepared.has(key_statement::form(ask));
    key(ask, sessions, parses_key, out)?;
    let is_watched = if ask.is_write() { prepared.guard } else { prepared.watch };
    let parses_watch = ask.watched.is_some() && !is_watched;
    if let Some(watched) = &ask.watched {
        fingerprint_check::write(watched, ask.operation, named, parses_watch, out)?;
    }
    Ok((parses_key, parses_watch))
}

/// Writes the key statement.
pub(crate) fn key(ask: &Asked, sessions: Sessions, parses: bool, out: &mut BytesMut) -> io::Result<()> {
    let form = key_statement::form(ask);
    let name = named(sessions, form.name);
    if parses {
        frontend::parse(name, form.text, form.types.iter().copied(), out)?;
    }
    key_statement::execute(name, ask, out)
}

/// Writes what runs the data statement and ends the exchange.
pub(crate) fn run(ask: &Asked, statement: Number, out: &mut BytesMut) -> io::Result<()> {
    bind_data(&statement.name(), &ask.sql, &ask.shape, out)?;
    frontend::execute("", 0, out)?;
    frontend::sync(out);
    Ok(())
}

/// Writes a Bind of a data statement that is prepared as `name`.
pub(crate) fn bind_data(name: &str, sql: &Sql, shape: &Shape, out: &mut BytesMut) -> io::Result<()> {
    let values = sql.binds().iter().map(|bind| (code(bind.format), bind.value.as_deref()));
    bind(name, values, shape.columns.iter().map(|column| code(column.encoding.format())), out)
}

/// Writes a Bind of the unnamed portal; the values come with their format codes.
pub(crate) fn bind<'a, V, F>(name: &str, values: V, formats: F, out: &mut BytesMut) -> io::Result<()>
where
    V: IntoIterator<Item = (i16, Option<&'a [u8]>)> + Clone,
    F: IntoIterator<Item = i16>,
{
    let codes = values.clone().into_iter().map(|(code, _)| code);
    let write = |(_, value): (i16, Option<&[u8]>), out: &mut BytesMut| match value {
        None => Ok(IsNull::Yes),
        Some(bytes) => {
            out.extend_from_slice(bytes);
            Ok(IsNull::No)
        }
    };
    frontend::bind("", name, codes, values, write, formats, out).map_err(|error| match error {
        BindError::Conversion(error) => io::Error::other(error),
        BindError::Serialization(error) => error,
    })
}

fn code(format: Format) -> i16 {
    match format {
        Format::Text => 0,
        Format::Binary => 1,
    }
}
