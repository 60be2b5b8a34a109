//! Types that no catalog of entities names: those of the values and the columns of a statement that an API key wrote.

use rowgate_sql::catalog::{FieldType, Operators};
use sqlx::postgres::types::Oid;
use sqlx::{Connection as _, PgConnection};

use super::structure;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    oid: i64,
    name: String,
    base_oid: i64,
    base_kind: String,
}

/// The types of these oids and modifiers, in their order; -1 is no modifier. Names are spelled with only `pg_catalog` in the search
/// path, and the operators are not looked for. Read as any role.
///
/// # Errors
/// [`PgError::Unexpected`] where one of them does not exist any more.
pub async fn load(conn: &mut PgConnection, types: &[(u32, i32)]) -> Result<Vec<FieldType>, PgError> {
    let oids: Vec<Oid> = types.iter().map(|(oid, _)| Oid(*oid)).collect();
    let modifiers: Vec<i32> = types.iter().map(|(_, modifier)| *modifier).collect();
    let mut open = conn.begin_with("begin isolation level repeatable read, read only").await?;
    let settings =
        "select pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('jit', 'off', true)";
    sqlx::query(settings).execute(&mut *open).await?;
    let structures = structure::reached_from(&mut open, &oids).await?;
    let rows: Vec<Row> = sqlx::query_as(
        "with recursive asked as (
             select a.oid, a.modifier, a.at
             from rows from (pg_catalog.unnest($1::oid[]), pg_catalog.unnest($2::int4[])) with ordinality a (oid, modifier, at)
         ), base as (
             select a.at, t.oid, t.typtype, t.typbasetype, t.typsubscript
             from asked a join pg_catalog.pg_type t on t.oid = a.oid
             union all
             select base.at, t.oid, t.typtype, t.typbasetype, t.typsubscript
             from base join pg_catalog.pg_type t on t.oid = base.typbasetype
             where base.typtype = 'd'
         )
         select a.oid::int8 as oid, pg_catalog.format_type(a.oid, a.modifier) as name, base.oid::int8 as base_oid,
                case when base.typsubscript::oid = 'pg_catalog.array_subscript_handler'::regproc::oid then 'a'
                     else base.typtype::text end as base_kind
         from asked a
         join base on base.at = a.at and base.typtype <> 'd'
         order by a.at",
    )
    .bind(&oids)
    .bind(&modifiers)
    .fetch_all(&mut *open)
    .await?;
    open.rollback().await?;
    if rows.len() != types.len() {
        return Err(PgError::unexpected("a type of a statement that does not exist any more"));
    }
    let field_type = |row: Row| {
        let oid = structure::oid(row.oid)?;
        Ok(FieldType {
            oid,
            name: row.name,
            kind: structure::kind(&row.base_kind),
            base_oid: structure::oid(row.base_oid)?,
            operators: Operators::Nowhere,
            nested: structures.nested(oid),
        })
    };
    rows.into_iter().map(field_type).collect()
}
