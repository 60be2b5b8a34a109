//! The columns of tables and views: their types, what fills them, and what they take.

use rowgate_sql::catalog::{ColumnInfo, FieldType, Filling, Operators, Structures, WITHOUT_EQUALITY};
use rowgate_sql::text::BuiltIn;
use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use super::tables::Tables;
use super::{ident, structure};
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    relation: Oid,
    column: String,
    type_oid: i64,
    type_name: String,
    base_oid: i64,
    base_kind: String,
    nullable: bool,
    takes_null: bool,
    built_in: bool,
    operators_in: Option<String>,
    granted: bool,
    has_default: bool,
    draws: bool,
    is_computed: bool,
    rounds_to: Option<String>,
    labels: Vec<String>,
    made_of: Vec<String>,
}

/// Adds its columns to each of `tables`, in `attnum` order. Type names are spelled with only
/// `pg_catalog` in the search path. Only a column's own NOT NULL, validated, promises a value: a domain that is NOT NULL
/// lets an empty subquery's NULL through, though nobody can write one.
pub(super) async fn note(
    conn: &mut PgConnection,
    tables: &mut Tables,
    structures: &Structures,
) -> Result<(), PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "with recursive attribute as (
             select a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attacl,
                    a.attgenerated <> '' or a.attidentity = 'a' as is_computed, a.atthasdef or a.attidentity <> '' or exists (
                        select from pg_catalog.pg_type d where d.oid = a.atttypid and d.typdefault is not null) as has_default,
                    a.attnotnull and not exists (
                        select from pg_catalog.pg_constraint c
                        where c.conrelid = a.attrelid and c.contype = 'n' and c.conkey = array[a.attnum]
                        and not c.convalidated) as is_filled,
                    -- by the sequence that the default names, or by its text, printed without the table's name: with it
                    -- PostgreSQL takes the table's lock, without it columns in it are an error. CASE keeps that from the
                    -- expressions of generated columns, which PostgreSQL reads too where it hashes this subquery
                    a.attidentity <> '' or exists (
                        select from pg_catalog.pg_attrdef f
                        where f.adrelid = a.attrelid and f.adnum = a.attnum and a.attgenerated = '' and (
                            case when a.attgenerated = '' then pg_catalog.pg_get_expr(f.adbin, 0) ~ 'nextval\\(' end or exists (
                                select from pg_catalog.pg_depend d
                                join pg_catalog.pg_class s on s.oid = d.refobjid and s.relkind = 'S'
                                where d.classid = 'pg_catalog.pg_attrdef'::regclass and d.objid = f.oid
                                and d.refclassid = 'pg_catalog.pg_class'::regclass)))
                    or not a.atthasdef and exists (
                        select from pg_catalog.pg_type d where d.oid = a.atttypid and d.typdefault ~ 'nextval\\(') as draws,
                    case when a.attgenerated = '' then '{}' else array(
                        select s.attname::text
                        from pg_catalog.pg_attrdef f
                        join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_attrdef'::regclass and d.objid = f.oid
                                                   and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = a.attrelid
                        join pg_catalog.pg_attribute s on s.attrelid = a.attrelid and s.attnum = d.refobjsubid
                        where f.adrelid = a.attrelid and f.adnum = a.attnum and 0 < s.attnum and s.attnum <> a.attnum
                        order by s.attnum) end as made_of,
                    pg_catalog.format_type(a.atttypid, a.atttypmod) as type_name
             from pg_catalog.pg_attribute a
             where a.attrelid = any ($1) and a.attnum > 0 and not a.attisdropped
         ), base as (
             select t.oid as type, t.oid, t.typtype, t.typbasetype, t.typcategory, t.typelem, t.typsubscript,
                    t.typtypmod, null::int4 as modifier, t.typnotnull as is_filled
             from pg_catalog.pg_type t where t.oid in (select atttypid from attribute)
             union all
             select base.type, t.oid, t.typtype, t.typbasetype, t.typcategory, t.typelem, t.typsubscript,
                    t.typtypmod, base.typtypmod, base.is_filled or t.typnotnull
             from base join pg_catalog.pg_type t on t.oid = base.typbasetype
             where base.typtype = 'd'
         )
         select a.attrelid as relation, a.attname::text as column,
                a.atttypid::int8 as type_oid, a.type_name, base.oid::int8 as base_oid,
                case when base.typsubscript::oid = 'pg_catalog.array_subscript_handler'::regproc::oid then 'a'
                     else base.typtype::text end as base_kind,
                not a.is_filled as nullable, not base.is_filled as takes_null, a.attacl is not null as granted, a.has_default, a.draws, a.is_computed, a.made_of,
                case when base.oid < 16384 and coalesce(base.modifier, a.atttypmod) <> -1
                     then pg_catalog.format_type(base.oid, coalesce(base.modifier, a.atttypmod)) end as rounds_to,
                case when base.typtype = 'e' then array(
                    select e.enumlabel::text from pg_catalog.pg_enum e
                    where e.enumtypid = base.oid order by e.enumsortorder) else '{}' end as labels,
                case when base.typsubscript::oid = 'pg_catalog.array_subscript_handler'::regproc::oid then element.has_order
                     else base.typtype <> 'b' or base.oid < 16384 end as built_in,
                own.nspname::text as operators_in
         from attribute a
         join pg_catalog.pg_class r on r.oid = a.attrelid
         join base on base.type = a.atttypid and base.typtype <> 'd'
         cross join lateral (
             -- Arrays compare with operators of pg_catalog, which find those of the elements by themselves.
             select coalesce(pg_catalog.bool_or(
                 b.typtype in ('e', 'r', 'm') or b.typtype = 'b' and (b.oid < 16384 and b.oid::int8 <> all ($2) or exists (
                     select from pg_catalog.pg_opclass o
                     join pg_catalog.pg_am m on m.oid = o.opcmethod and m.amname = 'btree'
                     where o.opcintype = b.oid and o.opcdefault))), false) as has_order
             from pg_catalog.pg_type e
             join pg_catalog.pg_type b on b.oid = case when e.typtype = 'd' then e.typbasetype else e.oid end
             where e.oid = base.typelem
         ) element
         left join lateral (
             -- Those of the default order, if they have the usual names and keys may look there: in the schema of the
             -- relation, or in one that is open to everybody.
             select n.nspname
             from pg_catalog.pg_opclass o
             join pg_catalog.pg_am m on m.oid = o.opcmethod and m.amname = 'btree'
             join pg_catalog.pg_amop p on p.amopfamily = o.opcfamily and p.amoplefttype = o.opcintype
                                      and p.amoprighttype = o.opcintype
             join pg_catalog.pg_operator x on x.oid = p.amopopr
             join pg_catalog.pg_namespace n on n.oid = x.oprnamespace
             where o.opcintype = base.oid and o.opcdefault and base.typtype = 'b' and base.oid >= 16384
             group by n.oid, n.nspname
             having pg_catalog.array_agg(x.oprname::text order by p.amopstrategy) = array['<', '<=', '=', '>=', '>']
                and exists (select from pg_catalog.pg_operator y where y.oprnamespace = n.oid and y.oprname = '<>'
                                                                   and y.oprleft = base.oid and y.oprright = base.oid)
                and (n.oid = r.relnamespace or pg_catalog.has_schema_privilege('public', n.oid, 'usage'))
         ) own on true
         order by a.attrelid, a.attnum",
    )
    .bind(tables.oids())
    .bind(WITHOUT_EQUALITY.map(i64::from).to_vec())
    .fetch_all(conn)
    .await?;
    for row in rows {
        let column = column(&row, structures)?;
        tables.at(row.relation, |table| table.columns.push(column));
    }
    Ok(())
}

fn column(row: &Row, structures: &Structures) -> Result<ColumnInfo, PgError> {
    let oid = structure::oid(row.type_oid)?;
    let ty = FieldType {
        oid,
        name: row.type_name.clone(),
        kind: structure::kind(&row.base_kind),
        base_oid: structure::oid(row.base_oid)?,
        operators: match (row.built_in, &row.operators_in) {
            (true, _) => Operators::BuiltIn,
            (false, Some(schema)) => Operators::In(ident(schema)?),
            (false, None) => Operators::Nowhere,
        },
        nested: structures.nested(oid),
    };
    let filling = match row {
        Row { is_computed: true, .. } => Filling::Database,
        Row { draws: true, .. } => Filling::Sequence,
        Row { has_default: true, .. } => Filling::Default,
        Row { .. } => Filling::Caller,
    };
    let rounds_to = row.rounds_to.as_deref().and_then(BuiltIn::new);
    let made_of = row.made_of.iter().map(|name| ident(name)).collect::<Result<_, _>>()?;
    let name = ident(&row.column)?;
    let (nullable, takes_null, granted) = (row.nullable, row.takes_null, row.granted);
    let labels = row.labels.clone();
    Ok(ColumnInfo { name, ty, nullable, takes_null, granted, filling, rounds_to, labels, made_of })
}
