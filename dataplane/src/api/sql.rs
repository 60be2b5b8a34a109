//! `/api/ddl/sql`: one SELECT that the caller wrote. A POST, because its question is a body; it only reads.

mod answer;
mod wording;

use axum::response::Response;
use rowgate_core::name::Ulid;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::sql_request;

use crate::api::rest::target::RequestTarget;
use crate::api::rest::write_request::{Head, UnreadBody};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::sql;
use crate::server::respond::Refusal;
use wording::WORDING;

/// `POST /api/ddl/sql`
pub(crate) async fn query(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let may = |_: &KeyContext, head: &Head| {
        if !target.query().is_empty() {
            let what = "the options of SQL stand in the body; leave out everything after the ?";
            return Err(Problem::new(Code::BadRequest, what));
        }
        head.fits()
    };
    let statements = Statements::admit(&caller).await?;
    let received = unread.receive(&caller, may).await?;
    let answered = async {
        let request = sql_request::parse(received.body()?)?;
        let explain = request.explain;
        Ok((explain, sql::run(&caller, &WORDING, request).await?))
    };
    let answered = answered.await;
    let (explain, answered) = statements.counted(answered, received.body()?.len())?;
    Ok(if explain { answer::plan(&answered) } else { answer::rows(answered) })
}

/// A longer query is not read at all.
const MAX_COUNTED: usize = 64 << 10;

/// The statements that a key writes, of which many may have been refused.
pub(crate) struct Statements<'c> {
    caller: &'c Caller,
    key: Ulid,
}

impl<'c> Statements<'c> {
    /// Waits until one more may be read.
    pub(crate) async fn admit(caller: &'c Caller) -> Result<Statements<'c>, Problem> {
        let key = caller.reauthenticate().await?.key.id.clone();
        caller.tenant.admit_statement(&key).await?;
        Ok(Statements { caller, key })
    }

    /// The same, of a body of so many bytes.
    pub(crate) fn counted<T>(&self, result: Result<T, Problem>, n_bytes: usize) -> Result<T, Problem> {
        let is_refusal = |problem: &Problem| {
            matches!(problem.code, Code::BadRequest | Code::Forbidden | Code::InvalidSql | Code::InvalidValue)
        };
        if let Err(problem) = &result
            && is_refusal(problem)
        {
            // a value that does not fit was found by PostgreSQL, which the size of the body took no time
            let n_bytes = if problem.code == Code::InvalidValue { 0 } else { n_bytes.min(MAX_COUNTED) };
            self.caller.tenant.count_refusal(&self.key, n_bytes);
        }
        result
    }
}
