//! A tenant's catalog, read by the data plane from the tenant's own database in one snapshot.

use std::collections::HashMap;

use rowgate_sql::catalog::{
    Catalog, Entity, EntityRecord, Limits, PermissionRecord, RelationshipRecord, build,
};
use rowgate_sql::text::Ident;
use sqlx::postgres::types::Oid;
use sqlx::types::Json;
use sqlx::{Connection as _, PgConnection};

use crate::catalog::fingerprint::Watched;
use crate::failure::PgError;
use crate::tenant::read_limits::{limited, of, records, within};

mod columns;
mod constraints;
pub mod fingerprint;
mod policies;
mod routines;
mod structure;
mod tables;
mod triggers;
pub mod types;
mod views;

pub(crate) use structure::kind;
use tables::Tables;

/// Reads everything that serving needs, as `t<id>_lookups`, and what it was read from, within [`bounds`](crate::tenant::read_limits).
pub async fn load(conn: &mut PgConnection) -> Result<(Catalog, Watched), PgError> {
    within("the tenant's database", Box::pin(read(conn))).await
}

async fn read(conn: &mut PgConnection) -> Result<(Catalog, Watched), PgError> {
    let mut open = conn.begin_with("begin isolation level repeatable read, read only").await?;
    let (generation, Json(limits)) = state(&mut open).await.map_err(|error| of("dl.state")(error.into()))?;
    let entities = entities(&mut open).await.map_err(of("dl.entities"))?;
    let sets = sets(&mut open).await.map_err(of("dl.permission_sets"))?;
    // PostgreSQL takes what finds types recursively for so large (a cost of 890,000 for 13 types) that it would compile it
    let settings =
        "select pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('jit', 'off', true)";
    sqlx::query(settings).execute(&mut *open).await?;
    let relationships = relationships(&mut open).await.map_err(of("dl.relationships"))?;
    // each of these reads dl.entities too
    let mut tables = Tables::find(&mut open).await.map_err(of("dl.entities"))?;
    let structures = structure::structures(&mut open, &tables).await.map_err(of("pg_type"))?;
    columns::note(&mut open, &mut tables, &structures).await.map_err(of("pg_attribute"))?;
    constraints::note(&mut open, &mut tables).await.map_err(of("pg_constraint"))?;
    policies::note(&mut open, &mut tables).await.map_err(of("pg_policy"))?;
    triggers::note(&mut open, &mut tables).await.map_err(of("pg_trigger"))?;
    views::note(&mut open, &mut tables).await.map_err(of("pg_rewrite"))?;
    let routines = routines::routines(&mut open, &structures).await.map_err(of("pg_proc"))?;
    let between: Vec<Oid> = relationships.iter().filter_map(|(_, between)| *between).collect();
    let (watched, unguarded, read) =
        fingerprint::watch(&mut open, &between).await.map_err(of("pg_depend"))?;
    open.rollback().await?;
    let mut relations: HashMap<Oid, Vec<u32>> = HashMap::new();
    for (root, oid) in read {
        relations.entry(root).or_default().push(oid.0);
        tables.at(root, |table| table.relations.push(oid.0));
    }
    let entities = entities.into_iter().map(|Json(record)| record).collect();
    let sets = sets.into_iter().map(|(role, Json(permissions))| (role, permissions)).collect();
    let mut catalog = build(generation, limits, entities, tables.all(), &routines, sets);
    let shows = |entity: &Entity| {
        entity.routine.is_none() && unguarded.contains(&(entity.schema.clone(), entity.object.clone()))
    };
    let shown = catalog.entities.values().filter(|entity| shows(entity)).map(|it| it.name.clone());
    let shown: Vec<_> = shown.collect();
    catalog.unguarded.extend(shown);
    let read_between =
        |between: Option<Oid>| between.and_then(|it| relations.get(&it)).cloned().unwrap_or_default();
    let related = relationships.into_iter().map(|(Json(record), between)| (record, read_between(between)));
    catalog.relate(related.collect());
    Ok((catalog, watched))
}

async fn state(conn: &mut PgConnection) -> Result<(i64, Json<Limits>), sqlx::Error> {
    sqlx::query_as("select generation, limits from dl.state").fetch_one(conn).await
}

async fn entities(conn: &mut PgConnection) -> Result<Vec<Json<EntityRecord>>, PgError> {
    let rows = sqlx::query_scalar(limited!("select definition from dl.entities order by name"));
    records(rows.fetch_all(conn).await?)
}

/// Each with the table between, if there is one. None in a database that was made before there were any, and is not migrated yet.
async fn relationships(
    conn: &mut PgConnection,
) -> Result<Vec<(Json<RelationshipRecord>, Option<Oid>)>, PgError> {
    let is_there = "select pg_catalog.to_regclass('dl.relationships') is not null";
    if !sqlx::query_scalar::<_, bool>(is_there).fetch_one(&mut *conn).await? {
        return Ok(Vec::new());
    }
    let rows = sqlx::query_as(limited!(
        "select r.definition, (
             select c.oid from pg_catalog.pg_namespace n join pg_catalog.pg_class c on c.relnamespace = n.oid
             where n.nspname = r.definition -> 'through' ->> 'schema' and c.relname = r.definition -> 'through' ->> 'object'
         ) from dl.relationships r order by r.entity, r.name"
    ));
    records(rows.fetch_all(conn).await?)
}

async fn sets(conn: &mut PgConnection) -> Result<Vec<(String, Json<Vec<PermissionRecord>>)>, PgError> {
    let rows = sqlx::query_as(limited!("select role::text, permissions from dl.permission_sets"));
    records(rows.fetch_all(conn).await?)
}

pub(crate) fn ident(name: &str) -> Result<Ident, PgError> {
    Ident::new(name).ok_or_else(|| PgError::unexpected("PostgreSQL returned an invalid name"))
}
