//! What PostgreSQL can write to a view, by itself or by INSTEAD OF triggers, and which of its columns are those of tables.

use std::collections::{HashMap, HashSet};

use rowgate_sql::catalog::{Definitions, RelationName, ViewInfo, WriteMethod, WriteSupport};
use rowgate_sql::text::Ident;
use sqlx::postgres::types::Oid;
use sqlx::{Connection as _, PgConnection};

use super::ident;
use super::tables::Tables;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    relation: Oid,
    /// One bit for each command that works: 4 UPDATE, 8 INSERT, 16 DELETE.
    events: i32,
    /// `tgtype` of the view's INSTEAD OF triggers in one: 4 INSERT, 8 DELETE, 16 UPDATE.
    own: i32,
    /// And of those of views below it.
    fired: i32,
    /// Columns that are not passed on to a table.
    fixed: Vec<String>,
    under_schemas: Vec<String>,
    under_names: Vec<String>,
}

/// Notes it in each of `tables` that is a view. PostgreSQL says it only with a lock on the view, for which nobody's
/// transaction is waited long: a view that somebody is about to change is taken for one that can be written to, and
/// PostgreSQL answers for itself; and for one that works out all of its columns.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut Tables) -> Result<(), PgError> {
    let mut within = conn.begin().await?;
    sqlx::query("set local lock_timeout = 200").execute(&mut *within).await?;
    let asked = match asked(&mut within, tables.oids()).await {
        Err(error) if is_locked(&error) => None,
        asked => Some(asked?),
    };
    let (rows, definitions) = match asked {
        Some(asked) => {
            within.commit().await?;
            asked
        }
        None => {
            within.rollback().await?;
            let rows = rows(conn, tables.oids(), false).await?;
            let views: Vec<Oid> = rows.iter().map(|row| row.relation).collect();
            (rows, one_by_one(conn, &views).await?)
        }
    };
    for row in rows {
        let mut info = info(&row)?;
        tables.at(row.relation, |table| {
            let name = (table.schema.as_str().to_owned(), table.object.as_str().to_owned());
            let columns = table.columns.iter().map(|column| &column.name);
            let of_tables = columns.filter(|column| definitions.is_of_table(&name, column.as_str()));
            info.of_tables = of_tables.cloned().collect();
            table.view = Some(info);
        });
    }
    Ok(())
}

fn is_locked(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|it| it.code()).as_deref() == Some("55P03")
}

/// Of those views for which no lock has to be waited for, until so many were waited for that a load would take long.
async fn one_by_one(conn: &mut PgConnection, views: &[Oid]) -> Result<Definitions, sqlx::Error> {
    const MAX_LOCKED: usize = 5;
    let (mut all, mut n_locked) = (Definitions::default(), 0);
    for view in views {
        let mut within = conn.begin().await?;
        sqlx::query("set local lock_timeout = 200").execute(&mut *within).await?;
        match definitions(&mut within, &[*view]).await {
            Ok(more) => {
                within.commit().await?;
                all.extend(more);
            }
            Err(error) if is_locked(&error) => {
                within.rollback().await?;
                tracing::warn!(
                    "the definition of a view is not read, because a table below it is locked: filters by its fields use no index until the catalog is loaded again"
                );
                n_locked += 1;
                if n_locked == MAX_LOCKED {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

async fn asked(conn: &mut PgConnection, views: &[Oid]) -> Result<(Vec<Row>, Definitions), sqlx::Error> {
    let rows = rows(conn, views, true).await?;
    let definitions = match rows.is_empty() {
        true => Definitions::default(),
        false => definitions(conn, views).await?,
    };
    Ok((rows, definitions))
}

/// A view, or what stands below one.
#[derive(sqlx::FromRow)]
struct Below {
    schema: String,
    name: String,
    /// Of a view.
    definition: Option<String>,
    /// The columns that are worked out when they are read.
    generated: Vec<String>,
    columns: Vec<String>,
    /// Of the columns, in their order.
    types: Vec<i64>,
}

/// Of the views and of those below them.
async fn definitions(conn: &mut PgConnection, views: &[Oid]) -> Result<Definitions, sqlx::Error> {
    let rows: Vec<Below> = sqlx::query_as(
        "with recursive under as (
             select c.oid, c.relkind from pg_catalog.pg_class c where c.oid = any ($1) and c.relkind = 'v'
             union
             select b.oid, b.relkind
             from under u
             join pg_catalog.pg_rewrite w on w.ev_class = u.oid and u.relkind = 'v'
             join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
                                        and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid <> u.oid
             join pg_catalog.pg_class b on b.oid = d.refobjid and b.relkind in ('r', 'p', 'v', 'f')
         )
         select n.nspname::text as schema, c.relname::text as name,
                case c.relkind when 'v' then pg_catalog.pg_get_viewdef(c.oid) end as definition,
                array(select a.attname::text from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attgenerated = 'v') as generated,
                array(select a.attname::text from pg_catalog.pg_attribute a where a.attrelid = c.oid order by a.attnum) as columns,
                array(select a.atttypid::int8 from pg_catalog.pg_attribute a where a.attrelid = c.oid order by a.attnum) as types
         from under u join pg_catalog.pg_class c on c.oid = u.oid join pg_catalog.pg_namespace n on n.oid = c.relnamespace",
    )
    .bind(views)
    .fetch_all(conn)
    .await?;
    let (mut texts, mut generated, mut types) = (Vec::new(), HashSet::new(), HashMap::new());
    for row in rows {
        let relation: RelationName = (row.schema, row.name);
        let oids = row.types.into_iter().filter_map(|oid| u32::try_from(oid).ok());
        types.extend(row.columns.into_iter().map(|name| (relation.clone(), name)).zip(oids));
        generated.extend(row.generated.into_iter().map(|column| (relation.clone(), column)));
        texts.extend(row.definition.map(|text| (relation, text)));
    }
    Ok(Definitions::new(texts, generated, types))
}

fn info(row: &Row) -> Result<ViewInfo, PgError> {
    let method = |event: i32, trigger: i32| match (row.events & event, row.fired & trigger) {
        (0, _) => WriteMethod::Unsupported,
        (_, 0) => WriteMethod::Direct,
        _ => WriteMethod::Trigger,
    };
    let fixed = |trigger: i32| -> Result<Vec<Ident>, PgError> {
        let fixed = row.fixed.iter().filter(|_| row.own & trigger == 0);
        fixed.map(|name| ident(name)).collect()
    };
    let under = row.under_schemas.iter().zip(&row.under_names);
    Ok(ViewInfo {
        write_support: WriteSupport { insert: method(8, 4), update: method(4, 16), delete: method(16, 8) },
        under: under
            .map(|(schema, name)| Ok((ident(schema)?, ident(name)?)))
            .collect::<Result<_, PgError>>()?,
        not_inserted: fixed(4)?,
        not_updated: fixed(16)?,
        of_tables: Vec::new(),
    })
}

/// `asks`: PostgreSQL is asked what works. A column is judged by what PostgreSQL passes on, and only where that is all that
/// there is, or all that happens to other commands than those of the view's own triggers.
async fn rows(conn: &mut PgConnection, views: &[Oid], asks: bool) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as(
        "with recursive view as (
             select c.oid from pg_catalog.pg_class c where c.oid = any ($2) and c.relkind = 'v'
         ), under as (
             select oid as root, oid, 'v' as relkind from view
             union
             select u.root, b.oid, b.relkind::text
             from under u
             join pg_catalog.pg_rewrite w on w.ev_class = u.oid and u.relkind = 'v'
             join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
                                        and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid <> u.oid
             join pg_catalog.pg_class b on b.oid = d.refobjid and b.relkind in ('r', 'p', 'v')
         ), fires as (
             select u.root, coalesce(pg_catalog.bit_or(t.tgtype::int4), 0) as fired,
                    coalesce(pg_catalog.bit_or(t.tgtype::int4) filter (where u.oid = u.root), 0) as own
             from under u
             left join pg_catalog.pg_trigger t on t.tgrelid = u.oid and t.tgtype & 64 <> 0
             group by u.root
         ), able as (
             select v.*, f.own, f.fired,
                    case when $1 then pg_catalog.pg_relation_is_updatable(v.oid, true) else 28 end as events,
                    case when $1 then pg_catalog.pg_relation_is_updatable(v.oid, f.own = 0) & 20 = 20 else false end as is_passed_on
             from view v join fires f on f.root = v.oid
         )
         select a.oid as relation, a.events, a.own, a.fired,
                array(select c.attname::text from pg_catalog.pg_attribute c
                      where c.attrelid = a.oid and c.attnum > 0 and not c.attisdropped
                        and case when a.is_passed_on
                                 then not pg_catalog.pg_column_is_updatable(a.oid, c.attnum, a.own = 0) else false end
                      order by c.attnum) as fixed,
                array(select n.nspname::text from under u join pg_catalog.pg_class c on c.oid = u.oid
                      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                      where u.root = a.oid and u.relkind <> 'v' order by c.oid) as under_schemas,
                array(select c.relname::text from under u join pg_catalog.pg_class c on c.oid = u.oid
                      where u.root = a.oid and u.relkind <> 'v' order by c.oid) as under_names
         from able a
         order by 1",
    )
    .bind(asks)
    .bind(views)
    .fetch_all(conn)
    .await
}
