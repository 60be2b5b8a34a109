//! Values of `Sql` as sqlx sends them: sqlx speaks binary only, `Sql` may hold text.

use rowgate_sql::text::{Bind, Format};
use sqlx::Postgres;
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};

/// A value in PostgreSQL's binary form with its type.
pub(super) struct Raw {
    oid: u32,
    value: Option<Vec<u8>>,
}

impl Raw {
    /// Fails, saying which type, where the text form has no binary one that we know.
    pub(super) fn new(bind: &Bind) -> Result<Raw, String> {
        let value = match (&bind.value, bind.format) {
            (Some(bytes), Format::Text) => Some(binary(bind.oid, bytes)?),
            (value, _) => value.clone(),
        };
        Ok(Raw { oid: bind.oid, value })
    }
}

/// The binary form of a value in text form, by the oids of `pg_type`.
fn binary(oid: u32, text: &[u8]) -> Result<Vec<u8>, String> {
    let utf8 = || std::str::from_utf8(text).map_err(|_| "a bind that is not UTF-8".to_owned());
    let wrong = |_| format!("a bind of type {oid} that does not read as one");
    Ok(match oid {
        16 => vec![u8::from(matches!(text, b"t" | b"true"))],
        20 => utf8()?.parse::<i64>().map_err(wrong)?.to_be_bytes().to_vec(),
        21 => utf8()?.parse::<i16>().map_err(wrong)?.to_be_bytes().to_vec(),
        23 => utf8()?.parse::<i32>().map_err(wrong)?.to_be_bytes().to_vec(),
        26 => utf8()?.parse::<u32>().map_err(wrong)?.to_be_bytes().to_vec(),
        // name, text, json, unknown, bpchar, varchar: the same in both forms
        19 | 25 | 114 | 705 | 1042 | 1043 => text.to_vec(),
        // jsonb: a version before the text
        3802 => [&[1], text].concat(),
        1184 => timestamptz(utf8()?)?,
        _ => {
            return Err(format!("a bind of type {oid} in text form; bind text and cast it in the statement"));
        }
    })
}

/// Microseconds since 2000, from RFC 3339.
fn timestamptz(text: &str) -> Result<Vec<u8>, String> {
    let at: jiff::Timestamp = text.parse().map_err(|_| "a timestamp that is not RFC 3339".to_owned())?;
    Ok((at.as_microsecond() - 946_684_800_000_000).to_be_bytes().to_vec())
}

impl sqlx::Type<Postgres> for Raw {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(25))
    }
}

impl Encode<'_, Postgres> for Raw {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let Some(bytes) = &self.value else { return Ok(IsNull::Yes) };
        buffer.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.oid)))
    }
}
