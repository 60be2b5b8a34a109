//! The watch statement: whether the tables are those that the catalog was read from. Once a second, between the key
//! statement and the data statement, as the key's role; so a warm read otherwise is key and data and nothing else.

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::failure::Malformed;
use super::frames::Fields;
use crate::fingerprint::{self, Watched};

pub(super) const NAME: &str = "watch";
const OIDS: u32 = 1028;

/// Writes Bind and Execute, and Parse where the connection has not prepared it as `name`.
pub(super) fn write(watched: &Watched, name: &str, parses: bool, out: &mut BytesMut) -> io::Result<()> {
    if parses {
        frontend::parse(name, fingerprint::TEXT, [OIDS; 3], out)?;
    }
    let arguments = watched.arguments.each_ref().map(|oids| (1, Some(&oids[..])));
    super::batch::bind(name, arguments, [1], out)?;
    frontend::execute("", 0, out)
}

/// Reads the one row: whether the fingerprint is still that of `watched`.
pub(super) fn fits(watched: &Watched, body: &[u8]) -> Result<bool, Malformed> {
    let value = Fields::of_row(body)?.value()?.and_then(|value| value.try_into().ok());
    let value = value.ok_or(Malformed("a fingerprint that is no bigint"))?;
    Ok(i64::from_be_bytes(value) == watched.fingerprint)
}
