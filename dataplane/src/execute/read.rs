//! A read from key to rows.

use rowgate_core::cursor::{self, Position};
use rowgate_core::derive::CursorKey;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::compile::CompiledRead;
use rowgate_sql::rest;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
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

/// Runs what `make` compiles, in the name of the caller's key.
pub async fn run(
    caller: &Caller,
    cursors: &CursorKey,
    wording: &Wording,
    make: impl Fn(&KeyContext) -> Result<CompiledRead, Problem> + Send + Sync,
) -> Result<Answer, Problem> {
    let context = caller.authenticate().await?;
    retry::run(caller, context, &Read { cursors, wording, make }).await
}

struct Read<'a, F> {
    cursors: &'a CursorKey,
    wording: &'a Wording,
    make: F,
}

impl<F: Fn(&KeyContext) -> Result<CompiledRead, Problem> + Send + Sync> Attempt for Read<'_, F> {
    type Answer = Answer;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> Result<Answer, RetryReason> {
        let Read { cursors, wording, make } = self;
        let compiled = make(context).map_err(RetryReason::Refused)?;
        let statement = (compiled.sql, compiled.shape.clone());
        // The last try takes what it gets: where tables change without end, answers must come all the same.
        let page = retry::read(caller, context, !is_last, statement, compiled.take).await;
        let page = page.map_err(|failure| {
            // compiled again, because the statement was moved into the question
            problem_of(caller, context, wording, &compiled.entity, failure, |parameter| {
                let compiled = make(context).ok()?;
                rest::problem::invalid_condition(&compiled, parameter, may_read(context, &compiled.entity))
            })
        })?;
        if page.key.generation > context.snapshot.catalog.generation && !is_last {
            return Err(RetryReason::Behind);
        }
        let after = next(cursors, compiled.binding, page.last.as_ref().filter(|_| page.more));
        let after = after.map_err(|TooLong| {
            RetryReason::Final(Problem::new(Code::InvalidOrderBy, wording.long_position))
        })?;
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
