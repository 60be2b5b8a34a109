//! The last statement of a batch in one snapshot: whether a table that the others read was rewritten behind it. Such a table reads
//! as empty, without an error: TRUNCATE and ALTER TABLE leave nothing for older snapshots.

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::catalog::fingerprint;
use crate::wire::connection::frames::Fields;
use crate::wire::exchange::batch;
use crate::wire::failure::Malformed;

/// One form of the statement. `$1`: oids of relations. `pg_class` is read by the snapshot, and the function looks at what is
/// committed now.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    text: &'static str,
}

/// Takes a table that has partitions, or had some, for one that was rewritten. PostgreSQL needs half as long for it.
const WHOLE: Form = Form {
    name: "rewritten",
    text: "\
select exists (select from pg_catalog.pg_class c
    where c.oid = any($1) and (c.relfilenode <> pg_catalog.pg_relation_filenode(c.oid) or c.relhassubclass))",
};

/// Partitions count with their table.
const PARTITIONED: Form = Form {
    name: "rewritten_partitions",
    text: "\
select exists (select from pg_catalog.pg_class c
    where c.oid = any($1)
      and (c.relfilenode <> pg_catalog.pg_relation_filenode(c.oid)
        or c.relhassubclass and exists (select from pg_catalog.pg_inherits i
            join pg_catalog.pg_class l on l.oid = i.inhrelid
            where i.inhparent = c.oid and l.relfilenode <> pg_catalog.pg_relation_filenode(l.oid))))",
};

/// What a connection knows of both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Forms {
    /// Whether they are prepared: [`WHOLE`], [`PARTITIONED`].
    prepared: [bool; 2],
    /// A table may have partitions: the first form said so once.
    has_partitions: bool,
}

impl Forms {
    /// The form to be sent, and whether it is parsed. `is_kept`: what is prepared stays.
    pub(crate) fn form(self, is_kept: bool) -> (&'static Form, bool) {
        let is_partitioned = self.has_partitions || !is_kept;
        (if is_partitioned { &PARTITIONED } else { &WHOLE }, !self.prepared[usize::from(is_partitioned)])
    }

    /// The form that [`Forms::form`] gave is prepared.
    pub(crate) fn parsed(&mut self) {
        self.prepared[usize::from(self.has_partitions)] = true;
    }

    /// It said that a table was rewritten.
    pub(crate) fn doubts(&mut self) {
        self.has_partitions = true;
    }
}

const OIDS: u32 = 1028;

/// Writes Bind and Execute of a form, which is prepared as `name` or `parses` first.
pub(crate) fn write(
    relations: &[u32],
    (form, name): (&Form, &str),
    parses: bool,
    out: &mut BytesMut,
) -> io::Result<()> {
    if parses {
        frontend::parse(name, form.text, [OIDS], out)?;
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
