//! The key statement: who asks, whether the key lives, and everything that the answer depends on.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::wire::ask::{Asked, KeyRow};
use crate::wire::connection::frames::Fields;
use crate::wire::failure::Malformed;

/// One form of the key statement: what of the key must live, and for what.
pub(crate) struct Form {
    /// No other form has it; 3 and 4 stand in `nested::key_again`.
    pub(crate) number: usize,
    /// Its name on every connection; data statements are called `s<number>`.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// Types of the parameters.
    pub(crate) types: &'static [u32],
}

/// Which of the statements that every caller shares a connection has prepared.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Prepared {
    /// By [`Form::number`].
    forms: [bool; 5],
    pub(crate) watch: bool,
    pub(crate) guard: bool,
    pub(crate) rewritten: bool,
    /// The commands around a batch of several statements.
    pub(crate) begin: bool,
    pub(crate) commit: bool,
}

const NAME: u32 = 19;
pub(crate) const TEXT: u32 = 25;

/// SQLSTATE of a refused setting: before the end of the key statement it can only be the role of a dead key.
pub(crate) const NO_SUCH_ROLE: &str = "22023";

/// `$1` the statement timeout in milliseconds, then what `$condition` compares. `t<id>_auth` needs SELECT on the columns that are named, and
/// has it on no others. A digest is looked for by `t<id>_lookups` alone, and is that of one secret for good.
///
/// Every name is qualified: a search path with other operators must not matter. Settings that show in an answer, and that
/// PostgreSQL does not report, are set for this transaction (`opening` has the others). A dead key gives the role `''`, which no
/// role can be called: the statement raises, and PostgreSQL skips everything up to the Sync. (An empty result would not
/// do: the next statement would run as the login.) The role is the last argument, because `dl` is closed to the roles of
/// keys.
///
/// The text is short because PostgreSQL copies it several times for each request.
macro_rules! text {
    ($settings:literal, $role:literal, $condition:literal) => {
        concat!(
            "\
select id, role, set_role, generation, pg_catalog.num_nonnulls(",
            $settings,
            "
pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
pg_catalog.set_config('statement_timeout', $1, true),
pg_catalog.set_config('bytea_output', 'hex', true),
pg_catalog.set_config('lc_monetary', 'C', true),
pg_catalog.set_config('extra_float_digits', '1', true),
pg_catalog.set_config('quote_all_identifiers', 'off', true),
pg_catalog.set_config('transform_null_equals', 'off', true),
pg_catalog.set_config('row_security', 'on', true),
pg_catalog.set_config('role', coalesce(",
            $role,
            ", ''), true))
from dl.state left join dl.live on ",
            $condition
        )
    };
}

macro_rules! read {
    ($role:literal, $condition:literal) => {
        text!(
            "
pg_catalog.set_config('transaction_read_only', 'on', true),",
            $role,
            $condition
        )
    };
}

// A secret belongs to one key for good. That it is this one stands beside the role: as a condition PostgreSQL would look through all keys
// where they are a few hundred (48 in place of 20 µs).
static FORMS: [Form; 3] = [
    Form {
        number: 0,
        name: "key",
        text: read!(
            "case when id operator(pg_catalog.=) $2 then role::pg_catalog.text end",
            "secret operator(pg_catalog.=) $3"
        ),
        types: &[TEXT, TEXT, TEXT],
    },
    // A write was made for the role `$2`; a key that has another one by now is as good as dead to it, so that nothing is written as
    // somebody else.
    Form {
        number: 1,
        name: "write_key",
        text: text!(
            "",
            "case when role operator(pg_catalog.=) $2 and id operator(pg_catalog.=) $3 then role::pg_catalog.text end",
            "secret operator(pg_catalog.=) $4"
        ),
        types: &[TEXT, NAME, TEXT, TEXT],
    },
    // any secret of a key will do, and one row
    Form {
        number: 2,
        name: "owner",
        text: read!("role::pg_catalog.text", "id operator(pg_catalog.=) $2 limit 1"),
        types: &[TEXT, TEXT],
    },
];

/// The form that finds the key of `ask` for what it does.
pub(crate) fn form(ask: &Asked) -> &'static Form {
    match (ask.is_write(), ask.by_any_secret) {
        (false, false) => &FORMS[0],
        (true, _) => &FORMS[1],
        (false, true) => &FORMS[2],
    }
}

impl Prepared {
    pub(crate) fn has(self, form: &Form) -> bool {
        self.forms[form.number]
    }

    /// ParseComplete came for it.
    pub(crate) fn note(&mut self, form: &Form) {
        self.forms[form.number] = true;
    }
}

/// Writes Bind and Execute of the form that is prepared as `name`.
pub(crate) fn execute(name: &str, ask: &Asked, out: &mut BytesMut) -> std::io::Result<()> {
    let mut number = itoa::Buffer::new();
    // No timeout at all (0) or a number beyond the setting's range would look like a dead key.
    let timeout = number.format(ask.statement_timeout_ms.clamp(1, i32::MAX as u32));
    let timeout = (0, Some(timeout.as_bytes()));
    let role = ask.is_write().then_some((0, Some(ask.role.as_bytes())));
    let secret = match (ask.by_any_secret, ask.is_write()) {
        (false, _) => Some(ask.key.secret.as_str()),
        (true, false) => None,
        // a delivery writes nothing: without a secret its key is never found
        (true, true) => Some(""),
    };
    let rest = [Some(ask.key.id.as_str()), secret].map(|text| text.map(|text| (0, Some(text.as_bytes()))));
    let values = [Some(timeout), role].into_iter().chain(rest).flatten();
    super::batch::bind(name, values, [0], out)?;
    frontend::execute("", 0, out)
}

/// Reads the one row of the key statement.
pub(crate) fn row(body: &[u8]) -> Result<KeyRow, Malformed> {
    let mut fields = Fields::of_row(body)?;
    let text = |value: Option<&[u8]>| match value {
        Some(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| Malformed("the key row is not UTF-8")),
        None => Err(Malformed("the key row holds a NULL")),
    };
    let id = text(fields.value()?)?.parse().map_err(|_| Malformed("the key's id is not a ULID"))?;
    let role = text(fields.value()?)?;
    let set_role = fields.value()?.map(|value| text(Some(value))).transpose()?;
    let generation =
        text(fields.value()?)?.parse().map_err(|_| Malformed("the generation is not a number"))?;
    Ok(KeyRow { id, role, set_role, generation })
}
