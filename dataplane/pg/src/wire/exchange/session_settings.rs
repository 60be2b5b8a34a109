//! The settings that show in answers. Tenant code may have left anything in a session, and none of it may reach the next
//! caller.

use std::fmt::Write as _;
use std::io;
use std::sync::LazyLock;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::wire::connection::frames::Fields;
use crate::wire::failure::Malformed;

/// Settings that PostgreSQL tells us of whenever they change: a session of our own is opened with them, and closed once it
/// has reported another value. To set them in each transaction took 4 of PostgreSQL's 62 µs for a row.
pub(crate) const REPORTED: [(&str, &str); 5] = [
    ("client_encoding", "UTF8"),
    ("TimeZone", "UTC"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "iso_8601"),
    ("standard_conforming_strings", "on"),
];

/// A statement whose replica is gone ends within this, though it neither writes nor is cancelled.
pub(crate) const LOOKED_AFTER: (&str, &str) = ("client_connection_check_interval", "1s");

/// A statement that waits for a table sees it as it is then. The owner of a database may set another level for all sessions in it.
pub(crate) const ISOLATION: (&str, &str) = ("default_transaction_isolation", "read committed");

/// What a batch begins with behind a pooler, which refuses most settings when a session is opened and does not say whose
/// reports it passes on: there they are set for each transaction. Tenant code may have left the session as another role,
/// which may not ask for keys; and nobody but the pooler knows which server this is, so it says whether it is a standby.
static POOLED: LazyLock<String> = LazyLock::new(|| {
    let mut text = "select pg_catalog.pg_is_in_recovery(), \
        pg_catalog.num_nonnulls(pg_catalog.set_config('role', 'none', true)"
        .to_owned();
    for (name, value) in REPORTED.into_iter().chain([LOOKED_AFTER]) {
        write!(text, ", pg_catalog.set_config('{name}', '{value}', true)").expect("a String takes it");
    }
    text + ")"
});

/// Writes the statement for a session behind a pooler, where nothing has a name.
pub(crate) fn write(out: &mut BytesMut) -> io::Result<()> {
    frontend::parse("", &POOLED, [], out)?;
    super::batch::bind("", [], [0], out)?;
    frontend::execute("", 0, out)
}

/// Reads the row that a pooler's server gives.
pub(crate) fn is_standby(body: &[u8]) -> Result<bool, Malformed> {
    Ok(Fields::of_row(body)?.value()? != Some(b"f"))
}

/// Whether a ParameterStatus says that a session is no longer as it was opened.
pub(crate) fn deviates(body: &[u8]) -> bool {
    let mut parts = body.split(|byte| *byte == 0);
    let (name, value) = (parts.next(), parts.next());
    REPORTED.iter().any(|(ours, wanted)| name == Some(ours.as_bytes()) && value != Some(wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_of_a_setting_of_ours_is_seen() {
        assert!(!deviates(b"TimeZone\0UTC\0") && !deviates(b"application_name\0other\0") && !deviates(b""));
        assert!(deviates(b"TimeZone\0Asia/Tokyo\0") && deviates(b"DateStyle\0ISO, DMY\0"));
    }
}
