//! What leads from table to table: indexes and foreign keys.

use std::collections::{BTreeSet, HashMap};

use sqlx::PgConnection;

use crate::failure::PgError;
use crate::introspect::actual::ForeignKey;

/// The indexes of one relation over columns alone that hold for all its rows.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pub(super) unique: BTreeSet<Vec<String>>,
    pub(super) all: BTreeSet<Vec<String>>,
}

/// By the oid of the relation.
pub(super) async fn indexes(conn: &mut PgConnection) -> Result<HashMap<i64, Indexes>, PgError> {
    let rows: Vec<(i64, bool, Vec<String>)> = sqlx::query_as(
        "select i.indrelid::int8, i.indisunique and i.indimmediate, array_agg(a.attname::text order by k.position) \
         from pg_index i cross join unnest(i.indkey) with ordinality k(attnum, position) \
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum \
         where i.indrelid >= 16384 and i.indisvalid and i.indpred is null and i.indexprs is null \
           and k.position <= i.indnkeyatts group by i.indexrelid, i.indrelid, i.indisunique, i.indimmediate",
    )
    .fetch_all(conn)
    .await?;
    let mut by_relation: HashMap<i64, Indexes> = HashMap::new();
    for (relation, is_unique, columns) in rows {
        let indexes = by_relation.entry(relation).or_default();
        if is_unique {
            indexes.unique.insert(columns.clone());
        }
        indexes.all.insert(columns);
    }
    Ok(by_relation)
}

#[derive(sqlx::FromRow)]
struct Row {
    relation: i64,
    columns: Vec<String>,
    schema: String,
    name: String,
    table_columns: Vec<String>,
}

/// By the oid of the relation that has them.
pub(super) async fn foreign_keys(
    conn: &mut PgConnection,
) -> Result<HashMap<i64, BTreeSet<ForeignKey>>, PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "select f.conrelid::int8 as relation, \
                array(select a.attname::text from unnest(f.conkey) with ordinality k(attnum, position) \
                      join pg_attribute a on a.attrelid = f.conrelid and a.attnum = k.attnum order by k.position) as columns, \
                n.nspname::text as schema, c.relname::text as name, \
                array(select a.attname::text from unnest(f.confkey) with ordinality k(attnum, position) \
                      join pg_attribute a on a.attrelid = f.confrelid and a.attnum = k.attnum order by k.position) as table_columns \
         from pg_constraint f join pg_class c on c.oid = f.confrelid join pg_namespace n on n.oid = c.relnamespace \
         where f.contype = 'f' and f.conrelid >= 16384",
    )
    .fetch_all(conn)
    .await?;
    let mut by_relation: HashMap<i64, BTreeSet<ForeignKey>> = HashMap::new();
    for Row { relation, columns, schema, name, table_columns } in rows {
        let key = ForeignKey { columns, table: (schema, name), table_columns };
        by_relation.entry(relation).or_default().insert(key);
    }
    Ok(by_relation)
}
