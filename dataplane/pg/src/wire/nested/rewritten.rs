//! The last statement of a batch in one snapshot: whether a table that the others read was rewritten behind it. Such a table reads
//! as empty, without an error: TRUNCATE and ALTER TABLE leave nothing for older snapshots. It is asked only where the connection cannot
//! see that from the files of before (`relation_files`).

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::relation_files::OIDS;
use crate::catalog::fingerprint;
use crate::wire::connection::frames::Fields;
use crate::wire::exchange::batch;
use crate::wire::failure::Malformed;

/// `$1`: oids of relations. `pg_class` is read by the snapshot, and the function looks at what is committed now. Partitions count with
/// their table; few tables have any, so that they are asked for only there.
const TEXT: &str = "\
select exists (select from pg_catalog.pg_class c
    where c.oid = any($1)
      and (c.relfilenode <> pg_catalog.pg_relation_filenode(c.oid)
        or c.relhassubclass and exists (select from pg_catalog.pg_inherits i
            join pg_catalog.pg_class l on l.oid = i.inhrelid
            where i.inhparent = c.oid and l.relfilenode <> pg_catalog.pg_relation_filenode(l.oid))))";

pub(crate) const NAME: &str = "rewritten";

/// Writes Bind and Execute, and Parse where the connection has not prepared it as `name`.
pub(crate) fn write(relations: &[u32], name: &str, parses: bool, out: &mut BytesMut) -> io::Result<()> {
    if parses {
        frontend::parse(name, TEXT, [OIDS], out)?;
    }
    let relations = fingerprint::binary(relations.iter().copied());
    batch::bind(name, [(1, Some(&relations[..]))], [1], out)?;
    frontend::execute("", 0, out)
}

/// Reads its row.
pub(crate) fn is_rewritten(body: &[u8]) -> Result<bool, Malformed> {
    match Fields::of_row(body)?.value()? {
        Some([byte]) => Ok(*byte != 0),
        _ => Err(Malformed("a boolean that is not one byte")),
    }
}
