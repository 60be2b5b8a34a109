//! The types that the columns of entities have, and those that they are made of.

use rowgate_sql::catalog::{Structures, TypeKind, TypeRow};
use sqlx::PgConnection;
use sqlx::postgres::types::Oid;
use sqlx::types::Json;

use super::tables::Tables;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    oid: i64,
    kind: String,
    domain_over: Option<i64>,
    element: i64,
    delimiter: String,
    attributes: Json<Vec<(String, i64)>>,
}

/// Every type that is reached from a column of a relation that an entity stands for, or from what a routine takes and
/// gives.
pub(super) async fn structures(conn: &mut PgConnection, tables: &Tables) -> Result<Structures, PgError> {
    let types: Vec<Oid> = sqlx::query_scalar(
        "select a.atttypid
         from pg_catalog.pg_attribute a
         where a.attrelid = any ($1) and a.attnum > 0 and not a.attisdropped
         union
         select a.type
         from dl.entities e
         join pg_catalog.pg_namespace n on n.nspname = e.definition ->> 'schema'
         join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = e.definition ->> 'object'
         cross join pg_catalog.unnest(p.prorettype || coalesce(p.proallargtypes, p.proargtypes::oid[])) a (type)
         where e.definition ->> 'kind' = 'Procedure'",
    )
    .bind(tables.oids())
    .fetch_all(&mut *conn)
    .await?;
    reached_from(conn, &types).await
}

/// These types and all that they are made of.
pub(super) async fn reached_from(conn: &mut PgConnection, types: &[Oid]) -> Result<Structures, PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "with recursive reached (oid) as (
             select pg_catalog.unnest($1::oid[])
             union
             select part.oid
             from reached r
             join pg_catalog.pg_type t on t.oid = r.oid
             cross join lateral (
                 select t.typbasetype as oid where t.typtype = 'd'
                 union all
                 select t.typelem
                 where t.typsubscript::oid = 'pg_catalog.array_subscript_handler'::regproc::oid
                 union all
                 select a.atttypid from pg_catalog.pg_attribute a
                 where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
             ) part
         )
         select t.oid::int8 as oid,
                case when t.typsubscript::oid = 'pg_catalog.array_subscript_handler'::regproc::oid then 'a'
                     else t.typtype::text end as kind,
                case when t.typtype = 'd' then t.typbasetype::int8 end as domain_over,
                t.typelem::int8 as element, t.typdelim::text as delimiter,
                (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(a.attname, a.atttypid::int8)
                                                     order by a.attnum), '[]')
                 from pg_catalog.pg_attribute a
                 where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
                ) as attributes
         from reached r
         join pg_catalog.pg_type t on t.oid = r.oid",
    )
    .bind(types)
    .fetch_all(conn)
    .await?;
    Ok(Structures::new(rows.into_iter().map(row).collect::<Result<_, _>>()?))
}

fn row(row: Row) -> Result<TypeRow, PgError> {
    let attribute = |(name, ty)| Ok((name, oid(ty)?));
    Ok(TypeRow {
        oid: oid(row.oid)?,
        kind: kind(&row.kind),
        domain_over: row.domain_over.map(oid).transpose()?,
        element: oid(row.element)?,
        delimiter: row.delimiter.bytes().next().unwrap_or(b','),
        attributes: row.attributes.0.into_iter().map(attribute).collect::<Result<_, PgError>>()?,
    })
}

/// From `pg_type.typtype`, with `a` for arrays.
pub(crate) fn kind(letter: &str) -> TypeKind {
    match letter {
        "a" => TypeKind::Array,
        "b" => TypeKind::Base,
        "e" => TypeKind::Enum,
        "c" => TypeKind::Composite,
        "r" | "m" => TypeKind::Range,
        _ => TypeKind::Other,
    }
}

pub(super) fn oid(oid: i64) -> Result<u32, PgError> {
    u32::try_from(oid).map_err(|_| PgError::unexpected("an oid out of range"))
}
