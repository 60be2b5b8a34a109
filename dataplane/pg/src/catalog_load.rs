//! A tenant's catalog, read by the data plane from the tenant's own database in one snapshot.

use rowgate_sql::catalog::{Catalog, Entity, EntityRecord, Limits, PermissionRecord, build};
use rowgate_sql::text::Ident;
use sqlx::types::Json;
use sqlx::{Connection as _, PgConnection};

use crate::failure::PgError;
use crate::fingerprint::{self, Watched};

mod columns;
mod constraints;
mod policies;
mod routines;
mod structure;
mod tables;
mod triggers;
mod views;

pub(crate) use structure::kind;
use tables::Tables;

/// Reads everything that serving needs, as `t<id>_auth`, and what it was read from.
pub async fn load(conn: &mut PgConnection) -> Result<(Catalog, Watched), PgError> {
    let mut open = conn.begin_with("begin isolation level repeatable read, read only").await?;
    let (generation, Json(limits)): (i64, Json<Limits>) =
        sqlx::query_as("select generation, limits from dl.state").fetch_one(&mut *open).await?;
    let entities: Vec<Json<EntityRecord>> =
        sqlx::query_scalar("select definition from dl.entities order by name").fetch_all(&mut *open).await?;
    let sets: Vec<(String, Json<Vec<PermissionRecord>>)> =
        sqlx::query_as("select role::text, permissions from dl.permission_sets")
            .fetch_all(&mut *open)
            .await?;
    // PostgreSQL takes what finds types recursively for so large (a cost of 890,000 for 13 types) that it would compile it
    let settings =
        "select pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('jit', 'off', true)";
    sqlx::query(settings).execute(&mut *open).await?;
    let mut tables = Tables::find(&mut open).await?;
    let structures = structure::structures(&mut open, &tables).await?;
    columns::note(&mut open, &mut tables, &structures).await?;
    constraints::note(&mut open, &mut tables).await?;
    policies::note(&mut open, &mut tables).await?;
    triggers::note(&mut open, &mut tables).await?;
    views::note(&mut open, &mut tables).await?;
    let routines = routines::routines(&mut open, &structures).await?;
    let (watched, unguarded) = fingerprint::watch(&mut open).await?;
    open.rollback().await?;
    let entities = entities.into_iter().map(|Json(record)| record).collect();
    let sets = sets.into_iter().map(|(role, Json(permissions))| (role, permissions)).collect();
    let mut catalog = build(generation, limits, entities, tables.all(), &routines, sets);
    let shows = |entity: &Entity| {
        entity.routine.is_none() && unguarded.contains(&(entity.schema.clone(), entity.object.clone()))
    };
    let shown = catalog.entities.values().filter(|entity| shows(entity)).map(|it| it.name.clone());
    let shown: Vec<_> = shown.collect();
    catalog.unguarded.extend(shown);
    Ok((catalog, watched))
}

pub(crate) fn ident(name: &str) -> Result<Ident, PgError> {
    Ident::new(name).ok_or_else(|| PgError::unexpected("PostgreSQL holds a name that is none"))
}
