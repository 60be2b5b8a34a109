//! What a session is opened with, and the statement that every batch begins with so that it is so again: tenant code may
//! have left anything in the session.

use std::fmt::Write as _;
use std::io;
use std::sync::LazyLock;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::failure::Malformed;
use super::frames::Fields;
use super::lane::Sessions;

/// Every setting that shows in an answer, and `client_connection_check_interval`: a statement whose replica is gone ends
/// within it, though it neither writes nor is cancelled.
///
/// A session of our own gets them when it is opened: then `reset all` brings them back, for a fifth of the time that it
/// takes to set them, and does nothing where nothing was changed.
pub(super) const SETTINGS: [(&str, &str); 13] = [
    ("client_encoding", "UTF8"),
    ("search_path", "pg_catalog, pg_temp"),
    ("TimeZone", "UTC"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "iso_8601"),
    ("bytea_output", "hex"),
    ("lc_monetary", "C"),
    ("extra_float_digits", "1"),
    ("quote_all_identifiers", "off"),
    ("standard_conforming_strings", "on"),
    ("transform_null_equals", "off"),
    ("row_security", "on"),
    ("client_connection_check_interval", "1s"),
];

pub(super) const NAME: &str = "reset";

/// A pooler would refuse most settings when a session is opened, so they are set for each transaction. Tenant code may
/// have left the session as another role, which may not ask for keys; and nobody but the pooler knows which server this
/// is, so it says whether it is a standby.
static POOLED: LazyLock<String> = LazyLock::new(|| {
    let mut text = "select pg_catalog.pg_is_in_recovery(), \
        pg_catalog.num_nonnulls(pg_catalog.set_config('role', 'none', true)"
        .to_owned();
    for (name, value) in SETTINGS {
        write!(text, ", pg_catalog.set_config('{name}', '{value}', true)").expect("a String takes it");
    }
    text + ")"
});

/// Writes Bind and Execute of the statement that is prepared as `name`, and Parse where it is not.
pub(super) fn write(sessions: Sessions, name: &str, parses: bool, out: &mut BytesMut) -> io::Result<()> {
    if parses {
        let text = match sessions {
            Sessions::Own => "reset all",
            Sessions::Pooled => &POOLED,
        };
        frontend::parse(name, text, [], out)?;
    }
    super::batch::bind(name, [], [0], out)?;
    frontend::execute("", 0, out)
}

/// Reads the row that a pooler's server gives.
pub(super) fn is_standby(body: &[u8]) -> Result<bool, Malformed> {
    Ok(Fields::of_row(body)?.value()? != Some(b"f"))
}
