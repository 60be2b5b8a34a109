//! Statements of schema `dl` in a transaction of the tenant's owner. Policies, grants and records change together; the owner's session may
//! run code of the tenant's, and may write no records. So `t<id>_dl` stages them first, under a token that nobody can guess, and
//! where they belong the owner's transaction says `dl.publish(token)`.

use rowgate_sql::ddl::records;
use rowgate_sql::text::Sql;
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::connect::session;
use crate::failure::PgError;

/// A statement of the owner's transaction.
#[derive(Debug)]
pub struct Step {
    pub sql: Sql,
    /// The position among the statements that were given of the one that it is, or of the first that it publishes.
    pub first: usize,
}

/// The steps of a transaction of the owner's that do what `statements` say in their order. `conn` is of `t<id>_dl`; each token is 32
/// random bytes.
///
/// # Errors
/// As PostgreSQL gives them; what was staged is never published, and goes after an hour.
pub async fn stage(
    conn: &mut PgConnection,
    statements: Vec<Sql>,
    token: &mut (dyn FnMut() -> [u8; 32] + Send),
) -> Result<Vec<Step>, PgError> {
    let mut steps = Vec::new();
    let mut statements = statements.into_iter().enumerate().peekable();
    while let Some((first, sql)) = statements.next() {
        if !sql.is_of_records() {
            steps.push(Step { sql, first });
            continue;
        }
        let mut staged = vec![as_json(&sql)?];
        while let Some((_, next)) = statements.next_if(|(_, next)| next.is_of_records()) {
            staged.push(as_json(&next)?);
        }
        let token: String = token().iter().map(|byte| format!("{byte:02x}")).collect();
        session::execute(conn, &records::stage(&token, &Value::Array(staged).to_string())).await?;
        steps.push(Step { sql: records::publish(&token), first });
    }
    Ok(steps)
}

/// Which of the statements that were published together failed, where `error` came from `dl.publish`.
#[must_use]
pub fn failed(error: &PgError) -> usize {
    let PgError::Sqlstate { source, .. } = error else { return 0 };
    let database = source.as_database_error();
    let postgres = database.and_then(|error| error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>());
    postgres.and_then(|error| error.detail()?.parse().ok()).unwrap_or(0)
}

/// As `dl.staged` has it: `EXECUTE` takes the values as one array.
fn as_json(sql: &Sql) -> Result<Value, PgError> {
    let values = sql.binds().iter().map(|bind| {
        let text = bind.value.as_deref().map(std::str::from_utf8).transpose();
        text.map(Value::from).map_err(|_| PgError::unexpected("a value of a record is not text"))
    });
    let values = values.collect::<Result<Vec<Value>, PgError>>()?;
    let mut text = sql.as_str().to_owned();
    // from the last on, so that $1 is not found in $10, nor in what stands in place of another
    for n in (1..=values.len()).rev() {
        text = text.replace(&format!("${n}"), &format!("(\0)[{n}]"));
    }
    Ok(json!({"sql": text.replace('\0', "$1"), "values": values}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_elements_of_one_array() {
        let sql = records::insert_key("a", "b", "c", "d", "e");
        let staged = as_json(&sql).expect("text");
        assert_eq!(
            staged["sql"],
            "insert into dl.keys (id, uid, namespace, name, role) values (($1)[1], ($1)[2], ($1)[3], ($1)[4], ($1)[5]::name) on conflict do nothing"
        );
        assert_eq!(staged["values"], json!(["a", "b", "c", "d", "e"]));
        let none = as_json(&records::set_key_expiry("a", None)).expect("text");
        assert_eq!(none["values"], json!(["a", null]));
    }
}
