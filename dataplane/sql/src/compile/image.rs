//! Stored rows of events, as one role may have them.

use std::sync::Arc;

use super::{column, operator, shown};
use crate::catalog::Entity;
use crate::shape::{Column, Encoding, Shape, label};
use crate::text::{Bind, Sql};

/// `oid` of json, oid and bigint[].
const JSON: u32 = 114;
const OID: u32 = 26;
const INT8_ARRAY: u32 = 1016;

/// The label of the number of a row, which is its first member.
pub const NUMBER: &str = "#";

/// Which of the rows that `images` holds, a JSON array, the role may have, with their numbers from 1 on, and `fields` of them: those that
/// the policies of the table allow, and that it sees there now, unless their number is one of `deleted`. PostgreSQL refuses it where
/// the role may not read one of the fields.
#[must_use]
pub fn images(entity: &Entity, fields: &[usize], images: String, deleted: &[usize]) -> (Sql, Arc<Shape>) {
    let mut sql = Sql::new();
    sql.lit("select e.n::pg_catalog.int4");
    let mut columns = vec![Column { label: Some(label(NUMBER)), encoding: Encoding::Int4 }];
    columns.extend(shown(&mut sql, entity, ", ", fields));
    sql.lit(" from pg_catalog.json_array_elements(").bind(Bind::text(JSON, images));
    sql.lit(") with ordinality e(image, n) cross join lateral pg_catalog.json_populate_record(null::");
    sql.ident(&entity.schema).lit(".").ident(&entity.object).lit(", e.image) t");
    let oid = entity.relations.first().copied().unwrap_or_default();
    sql.lit(" where e.n in (select dl.permitted(").bind(Bind::text(OID, oid.to_string())).lit(", $1))");
    if let Some(flag) = entity.hidden_by() {
        sql.lit(" and ");
        column(&mut sql, entity, flag);
        sql.lit(" is not true");
    }
    let deleted = deleted.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    sql.lit(" and (e.n = any (").bind(Bind::text(INT8_ARRAY, format!("{{{deleted}}}")));
    // the fields are named, so that the rights on them are those of the table
    sql.lit(") or exists (select ");
    for (n, &field) in fields.iter().enumerate() {
        sql.lit(if n == 0 { "l." } else { ", l." }).ident(&entity.fields[field].column);
    }
    sql.lit(" from ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" l where ");
    for (n, &field) in entity.key.iter().enumerate() {
        sql.lit(if n == 0 { "l." } else { " and l." }).ident(&entity.fields[field].column);
        operator(&mut sql, Some(&entity.fields[field].ty), "=");
        column(&mut sql, entity, field);
    }
    if let Some(flag) = entity.hidden_by() {
        sql.lit(" and l.").ident(&entity.fields[flag].column).lit(" is not true");
    }
    sql.lit("))");
    (sql, Arc::new(Shape { columns, position: Vec::new(), count: None }))
}
