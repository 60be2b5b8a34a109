//! The triggers that Concurrency Protection is about, and what tables inherit from, by the oid of their relation.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::PgConnection;

use super::relations::by_relation;
use crate::failure::PgError;
use crate::introspect::actual::{QName, Trigger};

#[derive(sqlx::FromRow)]
struct Row {
    relation: i64,
    name: String,
    kind: i16,
    columns: Vec<String>,
    function: String,
    arguments: String,
    conditional: bool,
    enabled: String,
    cloned: bool,
}

/// Those with names from [`LAST`](rowgate_sql::ddl::protection::LAST) on, and those that run a function of ours.
pub(super) async fn triggers(
    conn: &mut PgConnection,
) -> Result<HashMap<i64, BTreeMap<String, Trigger>>, PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "select t.tgrelid::int8 as relation, t.tgname::text as name, t.tgtype as kind, \
                array(select a.attname::text from pg_attribute a \
                      where a.attrelid = t.tgrelid and a.attnum = any(t.tgattr) order by 1) as columns, \
                t.tgfoid::regprocedure::text as function, encode(t.tgargs, 'hex') as arguments, \
                t.tgqual is not null as conditional, t.tgenabled::text as enabled, t.tgparentid <> 0 as cloned \
         from pg_trigger t join pg_proc p on p.oid = t.tgfoid join pg_namespace n on n.oid = p.pronamespace \
         where not t.tgisinternal and (t.tgname::text collate \"C\" >= '~dl' \
               or n.nspname = 'dl' and (p.proname like 'protect\\_%' or p.proname = 'capture'))",
    )
    .fetch_all(conn)
    .await?;
    let mut by_relation: HashMap<i64, BTreeMap<String, Trigger>> = HashMap::new();
    for row in rows {
        let trigger = Trigger {
            kind: row.kind,
            columns: row.columns,
            function: row.function,
            arguments: row.arguments,
            conditional: row.conditional,
            enabled: row.enabled,
            cloned: row.cloned,
        };
        by_relation.entry(row.relation).or_default().insert(row.name, trigger);
    }
    Ok(by_relation)
}

/// SECURITY DEFINER functions, none of ours.
pub(super) async fn definers(conn: &mut PgConnection) -> Result<HashMap<i64, BTreeSet<String>>, PgError> {
    let rows: Vec<(i64, String)> = sqlx::query_as(
        "select t.tgrelid::int8, t.tgfoid::regprocedure::text \
         from pg_trigger t join pg_proc p on p.oid = t.tgfoid join pg_namespace n on n.oid = p.pronamespace \
         where not t.tgisinternal and p.prosecdef and n.nspname <> 'dl'",
    )
    .fetch_all(conn)
    .await?;
    Ok(by_relation(rows))
}

/// Partitioned tables of partitions, and parents by `INHERITS`.
pub(super) async fn parents(conn: &mut PgConnection) -> Result<HashMap<i64, BTreeSet<QName>>, PgError> {
    let rows: Vec<(i64, String, String)> = sqlx::query_as(
        "select i.inhrelid::int8, n.nspname::text, c.relname::text from pg_inherits i \
         join pg_class c on c.oid = i.inhparent join pg_namespace n on n.oid = c.relnamespace \
         where c.relkind in ('r', 'p', 'f')",
    )
    .fetch_all(conn)
    .await?;
    Ok(by_relation(rows.into_iter().map(|(relation, schema, name)| (relation, (schema, name)))))
}
