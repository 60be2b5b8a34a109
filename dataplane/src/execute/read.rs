//! A read from key to rows.

use rowgate_core::cursor::{self, Position};
use rowgate_core::derive::CursorKey;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::ReadPage;
use rowgate_sql::compile::{self, CompiledRead};
use rowgate_sql::query::{Document, Query};
use rowgate_sql::rest;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::nested;
use crate::execute::problem::problem_of;
use crate::execute::remaining_rows::RemainingRows;
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::execute::row_version::RowVersion;
use crate::execute::value_diagnosis::may_read;
use crate::execute::wording::Wording;

/// Rows, as JSON, and the cursor of the page after them. Of a long answer this is the beginning, and `tail` knows the
/// cursor.
pub struct Answer {
    pub json: Vec<u8>,
    pub after: Option<String>,
    /// `None` where it was not asked for.
    pub count: Option<Count>,
    pub tail: Option<RemainingRows>,
    /// Of the one row that was asked for, where it keeps its version.
    pub tagged: Option<RowVersion>,
}

/// How many rows there are, on this page and on all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Known(i64),
    /// A page after others has no row that could say it.
    Unsaid,
}

impl Count {
    pub fn known(self) -> Option<i64> {
        match self {
            Count::Known(count) => Some(count),
            Count::Unsaid => None,
        }
    }
}

/// The next page would begin behind values that no cursor holds.
#[derive(Debug, thiserror::Error)]
#[error("the page ends at values that are too long for a cursor")]
pub(crate) struct TooLong;

/// Runs the read that `make` resolves, in the name of the caller's key.
pub async fn run(
    caller: &Caller,
    cursors: &CursorKey,
    wording: &Wording,
    make: impl Fn(&KeyContext) -> Result<Query, Problem> + Send + Sync,
) -> Result<Answer, Problem> {
    let context = caller.authenticate().await?;
    run_as(caller, context, (cursors, wording), make).await
}

/// As [`run`], of a request whose body was read, and which was counted against the rate limit before that.
pub async fn run_with_body(
    caller: &Caller,
    cursors: &CursorKey,
    wording: &Wording,
    make: impl Fn(&KeyContext) -> Result<Query, Problem> + Send + Sync,
) -> Result<Answer, Problem> {
    let context = caller.reauthenticate().await?;
    run_as(caller, context, (cursors, wording), make).await
}

async fn run_as(
    caller: &Caller,
    context: KeyContext,
    (cursors, wording): (&CursorKey, &Wording),
    make: impl Fn(&KeyContext) -> Result<Query, Problem> + Send + Sync,
) -> Result<Answer, Problem> {
    let make = |context: &KeyContext| {
        let query = make(context)?;
        Ok(match query.has_rows_within() {
            true => Compiled::Nested(compile::rows_within(query)),
            false => Compiled::One(compile::read(&query)),
        })
    };
    retry::run(caller, context, &Read { cursors, wording, make }).await
}

/// How many rows there are on all pages of the read that `make` resolves.
pub async fn count(
    caller: &Caller,
    cursors: &CursorKey,
    wording: &Wording,
    make: impl Fn(&KeyContext) -> Result<Query, Problem> + Send + Sync,
) -> Result<Option<i64>, Problem> {
    let context = caller.authenticate().await?;
    let make = |context: &KeyContext| Ok(Compiled::One(compile::count(&make(context)?)));
    let answer = retry::run(caller, context, &Read { cursors, wording, make }).await?;
    Ok(answer.count.and_then(Count::known))
}

/// What a read is sent as.
enum Compiled {
    One(CompiledRead),
    /// Rows stand within its rows.
    Nested(Document),
}

struct Read<'a, F> {
    cursors: &'a CursorKey,
    wording: &'a Wording,
    make: F,
}

impl<F: Fn(&KeyContext) -> Result<Compiled, Problem> + Send + Sync> Attempt for Read<'_, F> {
    type Answer = Answer;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> Result<Answer, RetryReason> {
        let Read { cursors, wording, make } = self;
        let compiled = match make(context).map_err(RetryReason::Refused)? {
            Compiled::One(compiled) => compiled,
            Compiled::Nested(document) => {
                return nested::read(caller, context, (cursors, wording), &document, is_last).await;
            }
        };
        let statement = (compiled.sql, compiled.shape.clone());
        // The last try takes what it gets: where tables change without end, answers must come all the same.
        let page = retry::read(caller, context, !is_last, statement, compiled.take).await;
        let page = page.map_err(|failure| {
            // compiled again, because the statement was moved into the question
            problem_of(caller, context, wording, &compiled.entity, failure, |parameter| {
                let Compiled::One(compiled) = make(context).ok()? else { return None };
                rest::problem::invalid_condition(&compiled, parameter, may_read(context, &compiled.entity))
            })
        })?;
        if page.key.generation > context.snapshot.catalog.generation && !is_last {
            return Err(RetryReason::Behind);
        }
        let after = after(cursors, wording, compiled.binding, &page)?;
        let count = compiled.shape.count.map(|_| match page.count {
            Some(count) => Count::Known(count),
            None if compiled.is_first_page => Count::Known(0),
            None => Count::Unsaid,
        });
        let is_tagged = compiled.is_tagged.then_some(page.last.as_ref()).flatten();
        let tagged = RowVersion::new(context, &compiled.entity, &compiled.shape, is_tagged);
        if page.rest.is_none() {
            // A second look at the same question gave no rows.
            let _first = caller.trace.rows.set(page.n_rows);
        }
        let tail = page.rest.map(|rest| RemainingRows {
            rest,
            cursors: (*cursors).clone(),
            binding: compiled.binding,
            trace: caller.trace.clone(),
        });
        Ok(Answer { json: page.json, after, count, tail, tagged })
    }
}

/// The cursor of the page after this one, where there is one.
pub(super) fn after(
    cursors: &CursorKey,
    wording: &Wording,
    binding: Option<cursor::Binding>,
    page: &ReadPage,
) -> Result<Option<String>, RetryReason> {
    let after = next(cursors, binding, page.last.as_ref().filter(|_| page.more));
    after.map_err(|TooLong| RetryReason::Final(Problem::new(Code::InvalidOrderBy, wording.long_position)))
}

/// The cursor of the page after the row that stands at `last`; without a row, or where no page can follow, there is none.
pub(crate) fn next(
    cursors: &CursorKey,
    binding: Option<cursor::Binding>,
    last: Option<&Position>,
) -> Result<Option<String>, TooLong> {
    let token = binding.zip(last).map(|(binding, last)| cursor::encode(cursors, binding, last));
    match token {
        Some(token) if cursor::MAX_TOKEN_LEN < token.len() => Err(TooLong),
        token => Ok(token),
    }
}
