//! Whose a view is: PostgreSQL reads what is under it with the rights of that role, and under the policies for it.

use crate::text::{Ident, Sql};

/// `alter view ... owner to`. PostgreSQL asks that `owner` may create in the schema, and that who says it may become `owner`.
#[must_use]
pub fn give(schema: &Ident, view: &Ident, owner: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter view ").ident(schema).lit(".").ident(view).lit(" owner to ").ident(owner);
    sql
}
