//! A read of rows within rows: several statements in one batch and one snapshot.

use rowgate_core::cursor;
use rowgate_core::derive::CursorKey;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Failure, Nested, ReadPage};
use rowgate_sql::compile::CompiledDocument;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::read::{self, Answer, Count, TooLong};
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::execute::wording::Wording;

/// Runs the first read of the document that `make` compiles, in the name of the caller's key: its rows, with what stands within
/// them, and how many there are where the document has a second read that counts them.
pub async fn rows(
    caller: &Caller,
    cursors: &CursorKey,
    wording: &Wording,
    make: impl Fn(&KeyContext) -> Result<CompiledDocument, Problem> + Send + Sync,
) -> Result<Answer, Problem> {
    let context = caller.authenticate().await?;
    retry::run(caller, context, &Rows { cursors, wording, make }).await
}

/// Runs all reads of the document that `make` compiles for a caller whose key is known: the JSON of one object.
pub async fn document(
    caller: &Caller,
    context: KeyContext,
    cursors: &CursorKey,
    wording: &Wording,
    make: impl Fn(&KeyContext) -> Result<CompiledDocument, Problem> + Send + Sync,
) -> Result<Vec<u8>, Problem> {
    retry::run(caller, context, &Document { cursors, wording, make }).await
}

struct Rows<'a, F> {
    cursors: &'a CursorKey,
    wording: &'a Wording,
    make: F,
}

struct Document<'a, F> {
    cursors: &'a CursorKey,
    wording: &'a Wording,
    make: F,
}

impl<F: Fn(&KeyContext) -> Result<CompiledDocument, Problem> + Send + Sync> Attempt for Rows<'_, F> {
    type Answer = Answer;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> Result<Answer, RetryReason> {
        let compiled = (self.make)(context).map_err(RetryReason::Refused)?;
        let is_counted = compiled.levels.get(1).is_some_and(|level| level.is_root_value());
        let nested = Nested::rows(compiled, self.cursors.clone()).ok_or_else(nothing_asked)?;
        let binding = nested.first().binding;
        let page = exchange(caller, context, self.wording, nested, is_last).await?;
        let after = next(self.cursors, self.wording, binding, &page)?;
        let _first = caller.trace.rows.set(page.n_rows);
        let count = is_counted.then(|| Count::Known(page.count.unwrap_or_default()));
        Ok(Answer { json: page.json, after, count, tail: None, tagged: None })
    }
}

impl<F: Fn(&KeyContext) -> Result<CompiledDocument, Problem> + Send + Sync> Attempt for Document<'_, F> {
    type Answer = Vec<u8>;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> Result<Vec<u8>, RetryReason> {
        let compiled = (self.make)(context).map_err(RetryReason::Refused)?;
        let nested = Nested::document(compiled, self.cursors.clone()).ok_or_else(nothing_asked)?;
        let page = exchange(caller, context, self.wording, nested, is_last).await?;
        let _first = caller.trace.rows.set(page.n_rows);
        Ok(page.json)
    }
}

async fn exchange(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    nested: Nested,
    is_last: bool,
) -> Result<ReadPage, RetryReason> {
    let entity = nested.first().entity.clone();
    // The last try takes what it gets: where tables change without end, answers must come all the same.
    let page = retry::read_nested(caller, context, !is_last, nested).await;
    let page = page.map_err(|failure| match failure {
        Failure::TooLong => RetryReason::Final(Problem::new(Code::TooLarge, wording.long_nested)),
        failure => problem_of(caller, context, wording, &entity, failure, |_| None),
    })?;
    if page.key.generation > context.snapshot.catalog.generation && !is_last {
        return Err(RetryReason::Behind);
    }
    Ok(page)
}

/// The cursor of the page after the rows of the first read.
fn next(
    cursors: &CursorKey,
    wording: &Wording,
    binding: Option<cursor::Binding>,
    page: &ReadPage,
) -> Result<Option<String>, RetryReason> {
    let after = read::next(cursors, binding, page.last.as_ref().filter(|_| page.more));
    after.map_err(|TooLong| RetryReason::Final(Problem::new(Code::InvalidOrderBy, wording.long_position)))
}

/// No surface makes such a document.
fn nothing_asked() -> RetryReason {
    RetryReason::Final(Problem::internal())
}
