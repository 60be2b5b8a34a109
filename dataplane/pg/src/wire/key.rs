//! The key statement: who asks, whether the key lives, and everything that the answer depends on.

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rowgate_core::secret::Credential;

use super::ask::KeyRow;
use super::failure::Malformed;
use super::frames::Fields;

/// One form of the key statement: by what it finds the key. They differ in one condition.
pub(super) struct Form {
    /// Its name on every connection; data statements are called `s<number>`.
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    /// Types of the parameters.
    pub(super) types: &'static [u32],
}

/// Which of the statements that every caller shares a connection has prepared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Prepared {
    pub(super) reset: bool,
    secret: bool,
    token: bool,
    pub(super) watch: bool,
}

const BYTEA: u32 = 17;
const TEXT: u32 = 25;

/// SQLSTATE of a refused setting: before the end of the key statement it can only be the role of a dead key.
pub(super) const NO_SUCH_ROLE: &str = "22023";

/// `$1` the statement timeout in milliseconds, then what `$condition` compares. `t<id>_auth` needs SELECT on both.
///
/// Every name is qualified: a search path with other operators must not matter. A dead key gives the role `''`, which no
/// role can be called: the statement raises, and PostgreSQL skips everything up to the Sync. (An empty result would not
/// do: the next statement would run as the login.) The role is the last argument, because `dl` is closed to the roles of
/// keys.
///
/// The text is short because PostgreSQL copies it several times for each request.
macro_rules! text {
    ($condition:literal) => {
        concat!(
            "\
select id, role, set_role, generation, pg_catalog.num_nonnulls(
pg_catalog.set_config('transaction_read_only', 'on', true),
pg_catalog.set_config('statement_timeout', $1, true),
pg_catalog.set_config('role', coalesce(role::pg_catalog.text, ''), true))
from dl.state left join dl.live on ",
            $condition
        )
    };
}

static BY_SECRET: Form =
    Form { name: "key", text: text!("digest operator(pg_catalog.=) $2"), types: &[TEXT, BYTEA] };

static BY_TOKEN: Form = Form {
    name: "token",
    text: text!("id operator(pg_catalog.=) $2 and secret operator(pg_catalog.=) $3"),
    types: &[TEXT, TEXT, TEXT],
};

/// The form that finds `credential`.
pub(super) fn form(credential: &Credential) -> &'static Form {
    match credential {
        Credential::Secret(_) => &BY_SECRET,
        Credential::Token { .. } => &BY_TOKEN,
    }
}

impl Prepared {
    pub(super) fn has(self, credential: &Credential) -> bool {
        match credential {
            Credential::Secret(_) => self.secret,
            Credential::Token { .. } => self.token,
        }
    }

    /// ParseComplete came for it.
    pub(super) fn note(&mut self, credential: &Credential) {
        match credential {
            Credential::Secret(_) => self.secret = true,
            Credential::Token { .. } => self.token = true,
        }
    }
}

/// Writes Bind and Execute of the form that is prepared as `name`.
pub(super) fn execute(
    name: &str,
    credential: &Credential,
    timeout_ms: u32,
    out: &mut BytesMut,
) -> std::io::Result<()> {
    let mut number = itoa::Buffer::new();
    // No timeout at all (0) or a number beyond the setting's range would look like a dead key.
    let timeout = number.format(timeout_ms.clamp(1, i32::MAX as u32));
    let timeout = (0, Some(timeout.as_bytes()));
    match credential {
        Credential::Secret(digest) => {
            super::batch::bind(name, [timeout, (1, Some(&digest.0[..]))], [0], out)?;
        }
        Credential::Token { key, secret } => {
            let (key, secret) = (key.as_str().as_bytes(), secret.as_str().as_bytes());
            super::batch::bind(name, [timeout, (0, Some(key)), (0, Some(secret))], [0], out)?;
        }
    }
    frontend::execute("", 0, out)
}

/// Reads the one row of the key statement.
pub(super) fn row(body: &[u8]) -> Result<KeyRow, Malformed> {
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
