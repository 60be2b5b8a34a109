//! The last statement of a batch, behind its transaction: whether the key still lives, and which file each table has that was read.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::catalog::fingerprint;
use crate::wire::ask::{Asked, KeyRow};
use crate::wire::connection::frames::Fields;
use crate::wire::exchange::batch;
use crate::wire::exchange::key_statement::{self, Form, TEXT};
use crate::wire::failure::Malformed;

/// Nothing runs behind it, so that it sets nothing; a key that is dead has no role. `$1` its id, then its secret, then the oids of the
/// relations. One that has others below it gives NULL: its rows stand in several files.
macro_rules! text {
    ($role:literal, $condition:literal, $oids:literal) => {
        concat!(
            "\
select id, ",
            $role,
            ", set_role, generation,
    array(select case when c.relhassubclass then null else c.relfilenode end from pg_catalog.pg_class c
        where c.oid operator(pg_catalog.=) any(",
            $oids,
            ") order by c.oid)
from dl.state left join dl.live on ",
            $condition
        )
    };
}

static FORMS: [Form; 2] = [
    Form {
        number: 3,
        name: "still",
        text: text!(
            "case when id operator(pg_catalog.=) $1 then role end",
            "secret operator(pg_catalog.=) $2",
            "$3"
        ),
        types: &[TEXT, TEXT, fingerprint::OIDS],
    },
    Form {
        number: 4,
        name: "owner_still",
        text: text!("role", "id operator(pg_catalog.=) $1 limit 1", "$2"),
        types: &[TEXT, fingerprint::OIDS],
    },
];

/// What the statement says.
pub(crate) struct KeyAgain<'r> {
    /// `None`: the key is dead.
    pub(crate) key: Option<KeyRow>,
    /// The files as an array. `None`: that does not say whether a table was rewritten.
    pub(crate) files: Option<&'r [u8]>,
}

/// The form that asks again for the key of `ask`, which reads.
pub(crate) fn form(ask: &Asked) -> &'static Form {
    &FORMS[usize::from(ask.by_any_secret)]
}

/// Writes Bind and Execute of [`form`], prepared as `name`.
pub(crate) fn write(name: &str, ask: &Asked, relations: &[u32], out: &mut BytesMut) -> std::io::Result<()> {
    let relations = fingerprint::binary(relations.iter().copied());
    let secret = (!ask.by_any_secret).then_some(ask.key.secret.as_str());
    let texts = [Some(ask.key.id.as_str()), secret].into_iter().flatten();
    let values = texts.map(|text| (0, Some(text.as_bytes()))).chain([(1, Some(&relations[..]))]);
    batch::bind(name, values, [0, 0, 0, 0, 1], out)?;
    frontend::execute("", 0, out)
}

/// Reads its one row.
pub(crate) fn row(body: &[u8]) -> Result<KeyAgain<'_>, Malformed> {
    let mut fields = Fields::of_row(body)?;
    let (_id, role) = (fields.value()?, fields.value()?);
    let (_set_role, _generation) = (fields.value()?, fields.value()?);
    let files = fields.value()?.ok_or(Malformed("the files of relations are NULL"))?;
    // the number of dimensions, and whether an element is NULL
    let mut array = Fields::new(files);
    let (_dimensions, nulls) = (array.bytes::<4>()?, array.bytes::<4>()?);
    let key = role.map(|_| key_statement::row(body)).transpose()?;
    Ok(KeyAgain { key, files: (nulls == [0; 4]).then_some(files) })
}
