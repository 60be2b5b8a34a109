//! The watch statement: whether the tables are those that the catalog was read from. Once a second, between the key
//! statement and the data statement, as the key's role; so a warm read otherwise is key and data and nothing else.

use std::io;
use std::sync::LazyLock;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::catalog::fingerprint::{self, OIDS, Watched};
use crate::wire::ask::Operation;
use crate::wire::connection::frames::Fields;
use crate::wire::failure::Malformed;

const NAME: &str = "watch";
const GUARD_NAME: &str = "guard";
const TEXTS: u32 = 1009;
const INT8: u32 = 20;
/// Of [`Watched::arguments`].
const TYPES: [u32; 5] = [OIDS, OIDS, OIDS, OIDS, TEXTS];

/// What the watch statement is before a write, which must not happen where it finds other tables: it raises then, and
/// PostgreSQL skips the write. `$6` is the fingerprint.
static GUARD: LazyLock<String> = LazyLock::new(|| {
    let text = fingerprint::TEXT;
    format!("select 1 operator(pg_catalog./) case when ({text}) operator(pg_catalog.=) $6 then 1 else 0 end")
});

/// SQLSTATE of a guard that found other tables.
pub(crate) const OTHER_TABLES: &str = "22012";

/// Writes Bind and Execute, and Parse where the connection has not prepared it. `named` is what a name is there.
pub(crate) fn write(
    watched: &Watched,
    operation: Operation,
    named: impl Fn(&'static str) -> &'static str,
    parses: bool,
    out: &mut BytesMut,
) -> io::Result<()> {
    let arguments = watched.arguments.iter().map(|argument| (1, Some(&argument[..])));
    match operation {
        Operation::Read { .. } => {
            let name = named(NAME);
            if parses {
                frontend::parse(name, fingerprint::TEXT, TYPES, out)?;
            }
            super::batch::bind(name, arguments, [1], out)?;
        }
        Operation::Write => {
            let name = named(GUARD_NAME);
            if parses {
                frontend::parse(name, &GUARD, TYPES.into_iter().chain([INT8]), out)?;
            }
            let fingerprint = watched.fingerprint.to_be_bytes();
            super::batch::bind(name, arguments.chain([(1, Some(&fingerprint[..]))]), [1], out)?;
        }
    }
    frontend::execute("", 0, out)
}

/// Reads the one row: whether the fingerprint is still that of `watched`.
pub(crate) fn fits(watched: &Watched, body: &[u8]) -> Result<bool, Malformed> {
    let value = Fields::of_row(body)?.value()?.and_then(|value| value.try_into().ok());
    let value = value.ok_or(Malformed("a fingerprint that is not a bigint"))?;
    Ok(i64::from_be_bytes(value) == watched.fingerprint)
}
