//! A read of rows within rows: several statements in one batch and one snapshot.

use rowgate_core::derive::CursorKey;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Failure, Nested, ReadPage};
use rowgate_sql::compile::CompiledDocument;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::read::{Answer, Count, after};
use crate::execute::retry::{self, RetryReason};
use crate::execute::wording::Wording;

/// One try of the first read of a document: its rows, with what stands within them, and how many there are where the document has a
/// second read that counts them.
pub(super) async fn read(
    caller: &Caller,
    context: &KeyContext,
    (cursors, wording): (&CursorKey, &Wording),
    compiled: CompiledDocument,
    is_last: bool,
) -> Result<Answer, RetryReason> {
    let is_counted = compiled.levels.get(1).is_some_and(|level| level.is_root_value());
    // no document without a statement is made of a query
    let nested = Nested::rows(compiled, cursors.clone());
    let nested = nested.ok_or_else(|| RetryReason::Final(Problem::internal()))?;
    let binding = nested.first().binding;
    let page = page(caller, context, wording, nested, is_last).await?;
    let after = after(cursors, wording, binding, &page)?;
    let count = is_counted.then(|| Count::Known(page.count.unwrap_or_default()));
    Ok(Answer { json: page.json, after, count, tail: None, tagged: None })
}

/// One try of a document, in one batch.
pub(crate) async fn page(
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
    let _first = caller.trace.rows.set(page.n_rows);
    Ok(page)
}
