//! What PostgreSQL says of the parameters and columns of a SELECT, and what is made of it: binds, and how rows are read.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Described, Failure, QueryFailure, RowForm, Typed, Typing};
use rowgate_sql::catalog::FieldType;
use rowgate_sql::sql_request::{Argument, bind, encoding};

use crate::auth::key_context::KeyContext;
use crate::tenants::snapshot::Snapshot;
use crate::tenants::tenant::Tenant;

/// A column of the rows.
#[derive(Debug, Clone)]
pub struct SqlColumn {
    pub name: String,
    pub ty: Arc<FieldType>,
    /// `pg_attribute.atttypmod`; -1 where there is none.
    pub modifier: i32,
}

/// How rows are read of which these are the columns.
pub(crate) type Form = fn(&[SqlColumn]) -> Result<RowForm, Problem>;

pub(crate) struct SqlTyping {
    tenant: Arc<Tenant>,
    snapshot: Arc<Snapshot>,
    arguments: Vec<Argument>,
    form: Form,
    columns: OnceLock<Vec<SqlColumn>>,
}

impl SqlTyping {
    pub(crate) fn new(
        tenant: Arc<Tenant>,
        context: &KeyContext,
        arguments: Vec<Argument>,
        form: Form,
    ) -> SqlTyping {
        let snapshot = context.snapshot.clone();
        SqlTyping { tenant, snapshot, arguments, form, columns: OnceLock::new() }
    }

    /// `None` before PostgreSQL has said them.
    pub(crate) fn columns(&self) -> Option<Vec<SqlColumn>> {
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
        let binds = of_parameters.iter().zip(&self.arguments).map(|(ty, argument)| bind(ty, argument));
        let binds = binds.collect::<Result<_, _>>().map_err(declined)?;
        let column = |(column, ty): (&rowgate_pg::wire::QueryColumn, &Arc<FieldType>)| SqlColumn {
            name: column.name.clone(),
            ty: ty.clone(),
            modifier: column.modifier,
        };
        let columns: Vec<_> = described.columns.iter().zip(of_columns).map(column).collect();
        let rows = (self.form)(&columns).map_err(declined)?;
        let _first = self.columns.set(columns);
        Ok(Typed { binds, rows })
    }
}

impl Typing for SqlTyping {
    fn typed<'a>(&'a self, described: &'a Described) -> BoxFuture<'a, Result<Typed, QueryFailure>> {
        self.of(described).boxed()
    }
}

/// Rows as JSON objects, whose members must have names of their own.
pub(crate) fn as_json(columns: &[SqlColumn]) -> Result<RowForm, Problem> {
    distinct(columns)?;
    Ok(RowForm::Json(columns.iter().map(|column| encoding(&column.ty)).collect()))
}

/// Refuses a name that two columns have: one of them would be lost.
pub(crate) fn distinct(columns: &[SqlColumn]) -> Result<(), Problem> {
    let mut names = HashSet::new();
    match columns.iter().find(|column| !names.insert(column.name.as_str())) {
        None => Ok(()),
        Some(SqlColumn { name, .. }) => {
            let what =
                format!("two columns of the query are named {name:?}; give one of them another name with AS");
            Err(Problem::new(Code::InvalidSql, what))
        }
    }
}
