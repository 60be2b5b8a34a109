//! `/api/ddl/sql`: one SELECT that the caller wrote. A POST, because its question is a body; it only reads.

mod answer;
mod wording;

use axum::response::Response;
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
    let received = unread.receive(&caller, may).await?;
    let answered = async {
        let request = sql_request::parse(received.body()?)?;
        let explain = request.explain;
        Ok((explain, sql::run(&caller, &WORDING, request).await?))
    };
    let answered = answered.await;
    // a refusal may wait, and the memory of its body need not
    drop(received);
    let (explain, answered) = refused_late(&caller, answered).await?;
    Ok(if explain { answer::plan(&answered) } else { answer::rows(answered) })
}

/// The same. Where the statement was refused, and many of the key before it, that is said later.
pub(crate) async fn refused_late<T>(caller: &Caller, result: Result<T, Problem>) -> Result<T, Problem> {
    if result.as_ref().is_err_and(|problem| problem.code == Code::InvalidSql)
        && let Ok(context) = caller.reauthenticate().await
    {
        caller.tenant.delay_refusal(&context.key.id).await;
    }
    result
}
