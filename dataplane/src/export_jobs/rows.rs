//! From what was asked to the rows: one statement, run in the session of the key's own role.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::derive::CursorKey;
use rowgate_core::problem::{Code, Problem};
use rowgate_export::{Compression, FileFormat};
use rowgate_pg::wire::{self, Ask, Query, QueryFailure, QueryFault, Refused};
use rowgate_sql::catalog::Entity;
use rowgate_sql::export_request::{self, ExportRequest, Source};
use rowgate_sql::resolve::Cursors;
use rowgate_sql::rest;
use rowgate_sql::sql_request::Argument;
use rowgate_sql::text::Bind;
use rowgate_sql::user_select::UserSelect;

use super::typing::{ExportTyping, Wanted};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::execute::sql;
use crate::execute::wording::Wording;

/// What PostgreSQL is asked for.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: Arc<str>,
    pub(super) values: Values,
    /// What the columns are called; `None`: as PostgreSQL calls them.
    pub(super) names: Option<Vec<String>>,
    of: Of,
}

#[derive(Debug)]
pub(super) enum Values {
    Bound(Vec<Bind>),
    /// Their types are PostgreSQL's to say.
    Given(Vec<Argument>),
}

/// Where its rows come from, for what is said of a failure.
#[derive(Debug)]
enum Of {
    /// And the oids of what it reads beside.
    Entity(Arc<Entity>, BTreeSet<u32>),
    Query(Box<UserSelect>),
}

impl Statement {
    /// By the catalog of now, for a key that may read all that is asked for.
    pub(super) fn new(
        cursors: &CursorKey,
        context: &KeyContext,
        source: &Source,
    ) -> Result<Statement, RetryReason> {
        match source {
            Source::Entity { name, request } => {
                let scope = context.snapshot.scope(&context.key);
                let cursors = Cursors { key: cursors, caller: context.key.id.as_str() };
                let catalog = &context.snapshot.catalog;
                let rows = export_request::all_rows(catalog, &scope, name, request, cursors);
                let rows = rows.map_err(RetryReason::Refused)?;
                let (text, binds) = rows.sql.into_parts();
                let (values, names) = (Values::Bound(binds), Some(rows.names));
                Ok(Statement { text: text.into(), values, names, of: Of::Entity(rows.entity, rows.beside) })
            }
            Source::Query(request) => {
                sql::may(context, request)?;
                let text = context.text_of(&request.select);
                let values = Values::Given(request.arguments.clone());
                Ok(Statement { text, values, names: None, of: Of::Query(Box::new(request.select.clone())) })
            }
        }
    }

    pub(super) fn entity(&self) -> Option<&Entity> {
        match &self.of {
            Of::Entity(entity, _) => Some(entity),
            Of::Query(_) => None,
        }
    }

    /// Whether a table of it may hold rows that somebody does not see: what PostgreSQL expects of it counts them.
    pub(super) fn hides_rows(&self, context: &KeyContext) -> bool {
        match &self.of {
            Of::Entity(entity, beside) => entity.hides || context.hides_rows_of(beside),
            Of::Query(select) => context.hides_rows(select),
        }
    }

    /// All rows, as the key's own role.
    pub(super) fn query(&self, context: &KeyContext, limit: Duration, typing: Arc<ExportTyping>) -> Query {
        let binds = match &self.values {
            Values::Bound(binds) => binds.clone(),
            Values::Given(_) => Vec::new(),
        };
        Query {
            limit,
            typing: Some(typing),
            values: wire::Values::Rows { max: usize::MAX },
            max_bytes: usize::MAX,
            ..context.query_of(self.text.clone(), binds)
        }
    }

    /// What the failure of its statement means.
    pub(super) fn failed(&self, caller: &Caller, context: &KeyContext, failure: QueryFailure) -> RetryReason {
        let entity = match &self.of {
            Of::Query(select) => return sql::problem::of(caller, context, (select, &WORDING), failure),
            Of::Entity(entity, _) => entity,
        };
        match failure {
            QueryFailure::Declined(problem) => RetryReason::Final(*problem),
            QueryFailure::NoLogin(cause) => {
                tracing::debug!(tenant = %caller.tenant.slug, cause, "the role of a key may not log in");
                RetryReason::Doubtful(Problem::unavailable())
            }
            QueryFailure::Any(wire::Failure::DeadKey) => RetryReason::Doubtful(Problem::unavailable()),
            QueryFailure::Any(failure) => problem_of(caller, context, &WORDING, entity, failure, |_| None),
            QueryFailure::Refused(refused) => of_refused(context, entity, &refused),
        }
    }
}

fn of_refused(context: &KeyContext, entity: &Entity, refused: &Refused) -> RetryReason {
    let sqlstate = refused.cause.sqlstate.as_deref();
    let problem = match refused.why {
        // a grant that is on its way, or one that went away
        QueryFault::Unfit if sqlstate == Some("42501") => {
            let scope = context.snapshot.scope(&context.key);
            let catalog = &context.snapshot.catalog;
            return RetryReason::Denied(rest::not_found(catalog, &scope, entity.name.as_str()));
        }
        // collations that conflict, which PostgreSQL finds out where it compares
        QueryFault::Unfit if sqlstate == Some("42P22") => Problem::new(
            Code::InvalidValue,
            "two texts of filter or orderby have collations that cannot be compared",
        ),
        QueryFault::Unfit | QueryFault::Syntax | QueryFault::Result => {
            tracing::warn!(sqlstate, "the statement of an export does not fit the tables");
            return RetryReason::Changed(Problem::unavailable());
        }
        QueryFault::Writes => {
            Problem::new(Code::BadRequest, "the view of this entity would write; an export only reads")
        }
        QueryFault::Value => Problem::new(
            Code::InvalidValue,
            "a value in filter does not fit its field, or a computation overflows or divides by zero",
        ),
        QueryFault::Resources => Problem::new(Code::TooLarge, WORDING.too_much_memory),
        QueryFault::Raised => Problem::new(
            Code::ProcedureError,
            "a view or a policy that the export reads failed with an error that is not shown to callers",
        ),
    };
    RetryReason::Final(problem)
}

/// Of those that an export can have; the rest is never said.
pub(super) static WORDING: Wording = Wording {
    too_much_memory: "the export needs more memory or temporary files than one session may use; sort, group and aggregate fewer or shorter values",
    long_row: "a row is longer than the data plane reads; select fewer or shorter columns",
    ..crate::api::rest::wording::WORDING
};

/// Asks for the key alone, right before the statement, and whether the catalog is still that of the database.
pub(super) fn check_of(caller: &Caller, context: &KeyContext) -> Ask {
    Ask { watched: Some(context.snapshot.watched.clone()), ..context.check(&caller.credential) }
}

/// Whether the export could run as this key: PostgreSQL reads its values and plans its statement, and reads no row.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn check(
    caller: &Caller,
    cursors: &CursorKey,
    request: &ExportRequest,
) -> Result<(), Problem> {
    let context = caller.reauthenticate().await?;
    retry::run(caller, context, &Check { cursors, request }).await
}

struct Check<'a> {
    cursors: &'a CursorKey,
    request: &'a ExportRequest,
}

impl Attempt for Check<'_> {
    type Answer = ();

    async fn attempt(&self, caller: &Caller, context: &KeyContext, _: bool) -> Result<(), RetryReason> {
        let statement = Statement::new(self.cursors, context, &self.request.source);
        let statement = Arc::new(statement?);
        let (format, _) = formats(self.request);
        let tenant = caller.tenant.clone();
        let typing = ExportTyping::new(tenant, context, statement.clone(), Wanted::Rows(format));
        let limit = Duration::from_millis(context.snapshot.catalog.limits.statement_timeout_ms.into());
        let query = statement.query(context, limit, Arc::new(typing));
        let bound = caller.tenant.queries.bind(check_of(caller, context), query).await;
        bound.map_err(|failure| statement.failed(caller, context, failure))
    }
}

/// As the encoder names them.
pub(super) fn formats(request: &ExportRequest) -> (FileFormat, Compression) {
    let format = match request.format {
        export_request::Format::Csv { safe } => FileFormat::Csv { safe },
        export_request::Format::JsonLines => FileFormat::JsonLines,
        export_request::Format::Parquet => FileFormat::Parquet,
    };
    let compression = match request.compression {
        export_request::Compression::None => Compression::None,
        export_request::Compression::Gzip => Compression::Gzip,
        export_request::Compression::Zstd => Compression::Zstd,
    };
    (format, compression)
}
