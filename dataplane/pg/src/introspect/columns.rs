//! Columns and primary keys, by the oid of their relation.

use std::collections::{BTreeMap, HashMap};

use sqlx::PgConnection;
use sqlx::types::Json;

use super::{acl, oid};
use crate::failure::PgError;
use crate::introspect::actual::{Acl, Column, TenantDb};

#[derive(sqlx::FromRow)]
struct Row {
    relation: i64,
    name: String,
    type_oid: i64,
    type_name: String,
    domain_over: Option<String>,
    collation: Option<i64>,
    not_null: bool,
    generated: bool,
    is_virtual: bool,
    identity_always: bool,
    default_value: Option<String>,
    needed_by: Option<String>,
    acl: Json<Acl>,
}

/// Of everything but sequences, in `attnum` order. Here and below: what has a lower oid than 16384 came with PostgreSQL, and is
/// most of what there is.
pub(super) async fn columns(conn: &mut PgConnection) -> Result<HashMap<i64, Vec<Column>>, PgError> {
    let rows: Vec<Row> = sqlx::query_as(concat!(
        "select a.attrelid::int8 as relation, a.attname::text as name, a.atttypid::int8 as type_oid, \
                format_type(a.atttypid, a.atttypmod) as type_name, \
                case y.typtype when 'd' then format_type(y.typbasetype, null) end as domain_over, \
                nullif(nullif(a.attcollation, 0), 'pg_catalog.\"default\"'::regcollation)::int8 as collation, a.attnotnull as not_null, \
                a.attgenerated <> '' as generated, a.attgenerated = 'v' as is_virtual, a.attidentity = 'a' as identity_always, \
                v.default_value, v.needed_by, \
                case when a.attacl is null then '{}' else ",
        acl!("a.attacl", "'c'", "c.relowner"),
        " end as acl from pg_attribute a join pg_class c on c.oid = a.attrelid \
          join pg_type y on y.oid = a.atttypid \
          join pg_namespace n on n.oid = c.relnamespace \
          left join lateral ( \
              select (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d \
                      where d.adrelid = a.attrelid and d.adnum = a.attnum) as default_value, \
                     (select string_agg(distinct pg_describe_object(d.classid, d.objid, d.objsubid), ', ') \
                      from pg_depend d left join pg_trigger t on d.classid = 'pg_trigger'::regclass and t.oid = d.objid \
                      where d.refclassid = 'pg_class'::regclass and d.refobjid = a.attrelid \
                        and d.refobjsubid = a.attnum and d.deptype = 'n' \
                        and coalesce(t.tgname !~ '^~dl', true)) as needed_by \
          ) v on a.attname = 'dl_expected_ts' \
          where a.attrelid >= 16384 and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p', 'v', 'm', 'f') \
            and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' \
          order by a.attrelid, a.attnum"
    ))
    .fetch_all(conn)
    .await?;
    let mut by_relation: HashMap<i64, Vec<Column>> = HashMap::new();
    for row in rows {
        by_relation.entry(row.relation).or_default().push(Column {
            name: row.name,
            type_oid: oid(row.type_oid)?,
            type_name: row.type_name,
            domain_over: row.domain_over,
            collation: row.collation.map(oid).transpose()?,
            not_null: row.not_null,
            generated: row.generated,
            is_virtual: row.is_virtual,
            identity_always: row.identity_always,
            acl: row.acl.0,
            default: row.default_value,
            needed_by: row.needed_by,
        });
    }
    Ok(by_relation)
}

/// Notes what needs the columns that Rowgate added to tables of an application to mark rows as deleted (`flag` in `dl.applied`). Policies of
/// Rowgate's own go before the columns do.
pub(super) async fn needed_flags(conn: &mut PgConnection, db: &mut TenantDb) -> Result<(), PgError> {
    let rows: Vec<(i64, String, String)> = sqlx::query_as(
        "select c.oid::int8, a.attname::text, string_agg(distinct pg_describe_object(d.classid, d.objid, d.objsubid), ', ') \
         from (select (recorded::jsonb ->> 'oid')::oid as relation, recorded::jsonb ->> 'column' as name \
               from dl.applied where kind = 'flag') f \
         join pg_class c on c.oid = f.relation join pg_namespace n on n.oid = c.relnamespace \
         join pg_attribute a on a.attrelid = c.oid and a.attname = f.name and not a.attisdropped \
         join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid \
                         and d.refobjsubid = a.attnum and d.deptype = 'n' \
         left join pg_policy y on d.classid = 'pg_policy'::regclass and y.oid = d.objid \
         where not exists (select from dl.applied p \
                           where p.kind = 'policy' and p.name = concat_ws('.', n.nspname, c.relname, y.polname)) \
         group by 1, 2",
    )
    .fetch_all(conn)
    .await?;
    for (relation, column, needed_by) in rows {
        let relation = oid(relation)?;
        let tables = db.relations.values_mut().filter(|it| it.oid == relation);
        let columns = tables.flat_map(|it| it.columns.iter_mut()).filter(|it| it.name == column);
        columns.for_each(|it| it.needed_by = Some(needed_by.clone()));
    }
    Ok(())
}

/// Column names in key order.
pub(super) async fn primary_keys(conn: &mut PgConnection) -> Result<HashMap<i64, Vec<String>>, PgError> {
    let rows: Vec<(i64, Vec<String>)> = sqlx::query_as(
        "select i.indrelid::int8, array_agg(a.attname::text order by k.position) from pg_index i \
         cross join unnest(i.indkey) with ordinality k(attnum, position) \
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum \
         where i.indrelid >= 16384 and i.indisprimary and k.position <= i.indnkeyatts group by i.indrelid",
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().collect())
}

/// By relation and column that leads an index: the comparisons that no such index of it serves under a policy. Which
/// operators an index has and whether they are leakproof is PostgreSQL's to say.
pub(super) async fn leaky(
    conn: &mut PgConnection,
) -> Result<HashMap<i64, BTreeMap<String, String>>, PgError> {
    let rows: Vec<(i64, String, String)> = sqlx::query_as(
        // each kind of index is looked up once, however many there are of it
        "with headed as materialized ( \
             select i.indrelid as relation, i.indkey[0] as attnum, s.opcfamily as family, s.opcintype as type \
             from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace \
             join pg_opclass s on s.oid = i.indclass[0] \
             where i.indrelid >= 16384 and i.indisvalid and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' \
         ), compared as materialized ( \
             select k.family, k.type, o.oprname, bool_or(p.proleakproof) as is_leakproof \
             from (select distinct family, type from headed) k \
             join pg_amop m on m.amopfamily = k.family and m.amoppurpose = 's' \
                           and m.amoplefttype = k.type and m.amoprighttype = k.type \
             join pg_operator o on o.oid = m.amopopr join pg_proc p on p.oid = o.oprcode \
             where o.oprname in ('=', '<', '<=', '>', '>=') group by 1, 2, 3 \
         ) \
         select relation, name, string_agg(operator, ' ' order by operator) from ( \
             select l.relation::int8 as relation, a.attname::text as name, c.oprname::text as operator \
             from headed l join compared c using (family, type) \
             join pg_attribute a on a.attrelid = l.relation and a.attnum = l.attnum \
             group by 1, 2, 3 having not bool_or(c.is_leakproof) \
         ) operators group by 1, 2",
    )
    .fetch_all(conn)
    .await?;
    let mut by_relation: HashMap<i64, BTreeMap<String, String>> = HashMap::new();
    for (relation, column, operators) in rows {
        by_relation.entry(relation).or_default().insert(column, operators);
    }
    Ok(by_relation)
}
