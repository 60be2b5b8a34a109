//! What PostgreSQL says of the statement of an export: binds are made of it, and the columns of the file.

use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rowgate_export::{Column, FileFormat, formats};
use rowgate_pg::wire::{Described, Failure, QueryFailure, RowForm, Typed, Typing};
use rowgate_sql::catalog::FieldType;
use rowgate_sql::shape::Encoding;
use rowgate_sql::sql_request::{bind, encoding};

use super::rows::{Statement, Values};
use crate::auth::key_context::KeyContext;
use crate::execute::sql::{SqlColumn, distinct};
use crate::tenants::snapshot::Snapshot;
use crate::tenants::tenant::Tenant;

pub(super) struct ExportTyping {
    tenant: Arc<Tenant>,
    snapshot: Arc<Snapshot>,
    statement: Arc<Statement>,
    wanted: Wanted,
    columns: OnceLock<Vec<Column>>,
}

/// What is read of the statement.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Rows(FileFormat),
    /// Its plan, as JSON.
    Plan,
}

impl ExportTyping {
    pub(super) fn new(
        tenant: Arc<Tenant>,
        context: &KeyContext,
        statement: Arc<Statement>,
        wanted: Wanted,
    ) -> ExportTyping {
        let snapshot = context.snapshot.clone();
        ExportTyping { tenant, snapshot, statement, wanted, columns: OnceLock::new() }
    }

    /// `None` before PostgreSQL has said them.
    pub(super) fn columns(&self) -> Option<Vec<Column>> {
        self.columns.get().cloned()
    }

    async fn of(&self, described: &Described) -> Result<Typed, QueryFailure> {
        let declined = |problem| QueryFailure::Declined(Box::new(problem));
        let parameters = described.parameters.iter().map(|oid| (*oid, -1));
        let columns = described.columns.iter().map(|column| (column.oid, column.modifier));
        let ids: Vec<_> = parameters.chain(columns).collect();
        let types = self.snapshot.types(&self.tenant, &ids).await;
        let types = types.map_err(|problem| Failure::Unavailable(problem.message))?;
        let (of_parameters, of_columns) = types.split_at(described.parameters.len());
        let binds = match &self.statement.values {
            Values::Bound(binds) => binds.clone(),
            Values::Given(arguments) => {
                let binds = of_parameters.iter().zip(arguments).map(|(ty, argument)| bind(ty, argument));
                binds.collect::<Result<_, _>>().map_err(declined)?
            }
        };
        let Wanted::Rows(format) = self.wanted else {
            return Ok(Typed { binds, rows: RowForm::Json(vec![Encoding::Json]) });
        };
        let column = |(at, (column, ty)): (usize, (&rowgate_pg::wire::QueryColumn, &Arc<FieldType>))| {
            let name = self.statement.names.as_ref().and_then(|names| names.get(at));
            let name = name.unwrap_or(&column.name).clone();
            SqlColumn { name, ty: ty.clone(), modifier: column.modifier }
        };
        let columns: Vec<_> = described.columns.iter().zip(of_columns).enumerate().map(column).collect();
        distinct(&columns).map_err(declined)?;
        let column = |SqlColumn { name, ty, modifier }| Column { name, encoding: encoding(&ty), modifier };
        let columns: Vec<Column> = columns.into_iter().map(column).collect();
        let rows = RowForm::Wire(formats(format, &columns));
        let _first = self.columns.set(columns);
        Ok(Typed { binds, rows })
    }
}

impl Typing for ExportTyping {
    fn typed<'a>(&'a self, described: &'a Described) -> BoxFuture<'a, Result<Typed, QueryFailure>> {
        self.of(described).boxed()
    }
}
