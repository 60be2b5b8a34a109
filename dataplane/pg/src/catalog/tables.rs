//! The relations that entities stand for, while what is known of each is put together.

use std::collections::HashMap;

use rowgate_sql::catalog::{TableColumns, WriteSupport};
use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use super::ident;
use crate::failure::PgError;

/// By oid, so that every query of more says whose it is in the same way.
pub(super) struct Tables {
    all: Vec<TableColumns>,
    oids: Vec<Oid>,
    places: HashMap<Oid, usize>,
}

impl Tables {
    /// Every table, partitioned table and view that an entity names, by schema and name. Nothing else is known of them yet.
    pub(super) async fn find(conn: &mut PgConnection) -> Result<Tables, PgError> {
        let rows: Vec<(Oid, String, String)> = sqlx::query_as(
            "select distinct c.oid, n.nspname::text, c.relname::text
             from dl.entities e
             join pg_catalog.pg_namespace n on n.nspname = e.definition ->> 'schema'
             join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = e.definition ->> 'object'
                                       and c.relkind in ('r', 'p', 'v')
             where e.definition ->> 'kind' <> 'Procedure'
             order by 2, 3",
        )
        .fetch_all(conn)
        .await?;
        let oids: Vec<Oid> = rows.iter().map(|row| row.0).collect();
        let places = oids.iter().copied().zip(0..).collect();
        let all = rows.into_iter().map(|(_, schema, object)| {
            Ok(TableColumns {
                schema: ident(&schema)?,
                object: ident(&object)?,
                columns: Vec::new(),
                unique: Vec::new(),
                constraints: Vec::new(),
                write_support: WriteSupport::default(),
                hides: true,
                view: None,
                relations: Vec::new(),
            })
        });
        Ok(Tables { all: all.collect::<Result<_, PgError>>()?, oids, places })
    }

    pub(super) fn all(&self) -> &[TableColumns] {
        &self.all
    }

    /// For a query of all of them.
    pub(super) fn oids(&self) -> &[Oid] {
        &self.oids
    }

    /// Notes something of one of them. Others are nobody's.
    pub(super) fn at(&mut self, oid: Oid, note: impl FnOnce(&mut TableColumns)) {
        if let Some(place) = self.places.get(&oid) {
            note(&mut self.all[*place]);
        }
    }
}
