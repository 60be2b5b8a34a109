//! The last statement inside the transaction, where it is sent at all: whether a table that the others read was rewritten behind their
//! snapshot. Such a table reads as empty, without an error: TRUNCATE and ALTER TABLE leave nothing for older snapshots. It is not sent where
//! the connection can see that from the files that it noted before (`relation_files`).

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::catalog::fingerprint;
use crate::wire::connection::frames::Fields;
use crate::wire::exchange::batch;
use crate::wire::failure::Malformed;

/// `$1`: oids of relations. `pg_class` and `pg_inherits` are read by the snapshot, and the function looks at what is committed now: another
/// file, or none where the relation is gone. Whatever stands below a table counts with it; few tables have any, so that it is asked for
/// only there.
const TEXT: &str = "\
select exists (select from pg_catalog.pg_class c
    where c.oid = any($1)
      and (c.relfilenode <> coalesce(pg_catalog.pg_relation_filenode(c.oid), 0)
        or c.relhassubclass and exists (
            with recursive below (relation) as (
                select i.inhrelid from pg_catalog.pg_inherits i where i.inhparent = c.oid
                union select i.inhrelid from below b join pg_catalog.pg_inherits i on i.inhparent = b.relation)
            select from below b join pg_catalog.pg_class l on l.oid = b.relation
            where l.relfilenode <> coalesce(pg_catalog.pg_relation_filenode(l.oid), 0))))";

pub(crate) const NAME: &str = "rewritten";

/// Writes Bind and Execute, and Parse where the connection has not prepared it as `name`.
pub(crate) fn write(relations: &[u32], name: &str, parses: bool, out: &mut BytesMut) -> io::Result<()> {
    if parses {
        frontend::parse(name, TEXT, [fingerprint::OIDS], out)?;
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
